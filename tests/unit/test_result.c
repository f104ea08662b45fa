/* The reader of worker messages: the vocabulary, and everything that is not in it. */
#include "messages.h"
#include "result.h"
#include "tap.h"

#include <stdlib.h>

static struct result result;

static bool feed(enum worker_kind kind, const char *text)
{
	result_init(&result, kind);
	result_feed(&result, text, strlen(text));
	return !result.malformed;
}

static void test_good(void)
{
	static const char PYTHON[] =
	        "stage interpreter\npython_version 3.11.2\npython_implementation cpython\n"
	        "libc glibc 2.36\nno_new_privs 1\nseccomp 1\nstage import\ntorch_version 2.6.0+cu124\n"
	        "torch_cuda 12.4\ntorch_backend cuda\nstage backend\nwait turn\nstage device\n"
	        "torch_gpu_available 1\ntorch_device_count 2\ntorch_arch_list sm_50,sm_90\nstage allocation\n"
	        "computed 1\nstage product\nproduct 40800000 40800000 41200000 41000000\nstage gradient\n"
	        "loss 43440000\ngradient 41800000 41c00000 42200000 42500000\nstage complete\nend pass\n";

	ok(feed(WORKER_PYTHON, PYTHON) && result.ended_pass, "a whole python pass");
	ok(result.computation_count == 1 && result.computations[0].device == 1 &&
	           result.computations[0].have_gradient && result.computations[0].loss == 0x43440000,
	   "its numbers arrive as bits");
	is_string(result.torch_version, "2.6.0+cu124", "its facts arrive");
	ok(result.waiting && result.stage == STAGE_COMPLETE && result.torch_device_count == 2, "and its state");
	result_init(&result, WORKER_PYTHON);
	for (const char *byte = PYTHON; *byte; byte++)
		result_feed(&result, byte, 1);
	ok(!result.malformed && result.ended_pass && result.computations[0].have_product, "the same in single bytes");
	ok(feed(WORKER_NATIVE,
	        "stage device\nbackend cuda\nlibrary_origin system\ndriver_version 12040\ndevice_count 1\n"
	        "device 0\ndevice_name NVIDIA H200\ndevice_arch sm_90\ndevice_memory_total 150754820096\n"
	        "fail GPU_UNAVAILABLE\ncall cuInit\nerror_number 100\nerror_name CUDA_ERROR_NO_DEVICE\n"
	        "hint uvm-missing\nhint uvm-missing\nend fail\n") &&
	           result.failed && result.code == CODE_GPU_UNAVAILABLE && result.error_number == 100 &&
	           result.hint_count == 1,
	   "a native failure");
	ok(result.devices[0].memory_total_bytes == 150754820096ULL, "sizes are 64 bits wide");
}

static void test_bad(void)
{
	static const struct {
		enum worker_kind kind;
		const char *text, *name;
	} CASES[] = {
	        {WORKER_PYTHON, "nonsense 1\n", "an unknown key"},
	        {WORKER_PYTHON, "stage\n", "a key without a value"},
	        {WORKER_PYTHON, "\n", "an empty line"},
	        {WORKER_PYTHON, "stage nowhere\n", "an unknown stage"},
	        {WORKER_PYTHON, "stage arguments\n", "a stage that is the supervisor's"},
	        {WORKER_NATIVE, "stage import\n", "a stage of the other worker"},
	        {WORKER_NATIVE, "torch_version 2\n", "a key of the other worker"},
	        {WORKER_NATIVE, "wait turn\n", "a native worker that waits"},
	        {WORKER_PYTHON, "device 0\n", "a python worker that tells devices"},
	        {WORKER_PYTHON, "fail CHECK_FAILED\nend fail\n", "a verdict on numbers is the supervisor's"},
	        {WORKER_PYTHON, "fail GPU_CHECK_PASSED\n", "a pass that calls itself a failure"},
	        {WORKER_PYTHON, "fail SANDBOX_FAILED\n", "a code that is the supervisor's"},
	        {WORKER_NATIVE, "fail TORCH_MISSING\n", "a code of the other worker"},
	        {WORKER_PYTHON, "end maybe\n", "an unknown end"},
	        {WORKER_PYTHON, "end fail\n", "an end by failure without one"},
	        {WORKER_PYTHON, "fail RUNTIME_ERROR\nend pass\n", "an end by pass after a failure"},
	        {WORKER_PYTHON, "end pass\nstage complete\n", "words after the end"},
	        {WORKER_PYTHON, "loss 43440000\n", "numbers of no computation"},
	        {WORKER_PYTHON, "computed 0\nloss 43440000\nloss 43440000\n", "the same number twice"},
	        {WORKER_PYTHON, "computed 0\nproduct 40800000 40800000 41200000\n", "three numbers of four"},
	        {WORKER_PYTHON, "computed 0\nproduct 40800000  40800000 41200000 41000000\n", "two blanks"},
	        {WORKER_PYTHON, "computed 0\nloss 4344000\n", "seven digits"},
	        {WORKER_PYTHON, "computed 0\nloss 4344000G\n", "no digit"},
	        {WORKER_PYTHON, "computed 0\nloss 0X434400\n", "a prefix"},
	        {WORKER_PYTHON, "computed gpu\n", "an unknown device"},
	        {WORKER_PYTHON, "computed -1\n", "a negative device"},
	        {WORKER_PYTHON, "computed 70000\n", "a device out of range"},
	        {WORKER_NATIVE, "device 128\n", "a device beyond the table"},
	        {WORKER_NATIVE, "device_name X\n", "a fact of no device"},
	        {WORKER_NATIVE, "device_count -1\n", "a negative count"},
	        {WORKER_NATIVE, "device_count 1\ndevice_count 1\n", "a count twice"},
	        {WORKER_NATIVE, "device_count 99999999999999999999\n", "a count beyond its type"},
	        {WORKER_NATIVE, "backend rocm\n", "an unknown backend"},
	        {WORKER_NATIVE, "library_origin /usr/lib\n", "an unknown origin"},
	        {WORKER_NATIVE, "library_origin a b\n", "two words for one"},
	        {WORKER_PYTHON, "seccomp 2\n", "a flag that is neither 0 nor 1"},
	        {WORKER_PYTHON, "hint rm-rf\n", "an unknown hint"},
	        {WORKER_PYTHON, "during import\n", "nothing can be pending there"},
	        {WORKER_PYTHON, "torch_version a\001b\n", "a control byte"},
	        {WORKER_PYTHON, "torch_version \303\244\n", "a byte above 7 bits"},
	        {WORKER_PYTHON, "torch_version 2.6\r\n", "a carriage return"},
	};

	for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
		ok(!feed(CASES[i].kind, CASES[i].text), "malformed: %s", CASES[i].name);
	char *flood = malloc(RESULT_TOTAL_MAX * 2);
	memset(flood, 'a', RESULT_TOTAL_MAX * 2);
	result_init(&result, WORKER_PYTHON);
	result_feed(&result, flood, RESULT_TOTAL_MAX * 2);
	ok(result.malformed, "malformed: a line without an end");
	result_init(&result, WORKER_PYTHON);
	for (int i = 0; i < RESULT_TOTAL_MAX / 13 + 2; i++)
		result_feed(&result, "stage import\n", 13);
	ok(result.malformed, "malformed: more than the bound in all");
	free(flood);
}

/* What a worker says, and what of it a report may hold. */
static void test_cleaning(void)
{
	static const struct {
		enum worker_kind kind;
		const char *key, *said;
		size_t offset;
		const char *kept;
	} CASES[] = {
#define TOLD(kind, key, said, member, kept) {kind, key, said, offsetof(struct result, member), kept}
	        TOLD(WORKER_PYTHON, "torch_version", "2.6.0a0+df5bbc09d1.nv24.12", torch_version,
	             "2.6.0a0+df5bbc09d1.nv24.12"),
	        TOLD(WORKER_PYTHON, "torch_version", "1.13.0a0", torch_version, "1.13.0a0"),
	        TOLD(WORKER_PYTHON, "torch_version", "2.6.0.dev20260101+cpu", torch_version, "2.6.0.dev20260101+cpu"),
	        TOLD(WORKER_PYTHON, "torch_version", "wJalrXUtnFEMI-K7MDENG", torch_version, ""),
	        TOLD(WORKER_PYTHON, "torch_version", "2.6 /etc/passwd", torch_version, "2.6"),
	        TOLD(WORKER_PYTHON, "torch_cuda", "build-host.corp.example", torch_cuda, ""),
	        TOLD(WORKER_PYTHON, "torch_hip", "6.3.42131-fa1d09cbd", torch_hip, "6.3.42131-fa1d09cbd"),
	        TOLD(WORKER_PYTHON, "python_version", "3.14.0rc1", python_version, "3.14.0rc1"),
	        TOLD(WORKER_PYTHON, "torch_arch_list", "sm_50,home/alice,sm_120a,compute_90,alice@host,gfx9-4-generic",
	             torch_arch_list, "sm_50,sm_120a,compute_90,gfx9-4-generic"),
	        TOLD(WORKER_PYTHON, "error_name", "OutOfMemoryError", error_name, "OutOfMemoryError"),
	        TOLD(WORKER_PYTHON, "error_name", "TOKEN=abc", error_name, "TOKEN"),
	        TOLD(WORKER_PYTHON, "call", "import torch", call, "import torch"),
	        TOLD(WORKER_PYTHON, "call", "see /etc/x", call, "see "),
	        TOLD(WORKER_PYTHON, "missing", "libcudnn.so.9", missing, "libcudnn.so.9"),
	        TOLD(WORKER_PYTHON, "missing", "/usr/lib/x.so", missing, ""),
	        TOLD(WORKER_PYTHON, "missing", "alice@build-host", missing, ""),
	        TOLD(WORKER_NATIVE, "missing", "code image gfx1036", missing, "code image gfx1036"),
	        TOLD(WORKER_NATIVE, "libc", "glibc 2.36", libc, "glibc 2.36"),
	        TOLD(WORKER_NATIVE, "libc", "glibc of alice", libc, ""),
	        TOLD(WORKER_NATIVE, "device 0\ndevice_name", "AMD Radeon RX 7900 XT/XTX", devices[0].name,
	             "AMD Radeon RX 7900 XT/XTX"),
	        TOLD(WORKER_NATIVE, "device 0\ndevice_name", "NVIDIA H200", devices[0].name, "NVIDIA H200"),
	        TOLD(WORKER_NATIVE, "device 0\ndevice_name", "GPU-1234abcd-1 alice", devices[0].name, ""),
	        TOLD(WORKER_NATIVE, "device 0\ndevice_name", "card of alice@host in home/alice", devices[0].name,
	             "card of alice_host in home_alice"),
	        TOLD(WORKER_NATIVE, "device 0\ndevice_arch", "sm_90", devices[0].architecture, "sm_90"),
	        TOLD(WORKER_NATIVE, "device 0\ndevice_arch", "alice", devices[0].architecture, ""),
	        TOLD(WORKER_NATIVE, "device 0\ndevice_uuid", "MIG-0b1e/1/2", devices[0].uuid, "MIG-0b1e/1/2"),
	        TOLD(WORKER_NATIVE, "device 0\ndevice_uuid", "alice", devices[0].uuid, ""),
#undef TOLD
	};
	char line[RESULT_LINE_MAX + 8];

	for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
		(void)snprintf(line, sizeof line, "%s %s\n", CASES[i].key, CASES[i].said);
		ok(feed(CASES[i].kind, line), "taken: %s", CASES[i].said);
		is_string((const char *)&result + CASES[i].offset, CASES[i].kept, "and kept as its shape allows");
	}
	(void)snprintf(line, sizeof line, "torch_version %0200d\n", 1);
	ok(feed(WORKER_PYTHON, line) && strlen(result.torch_version) == sizeof result.torch_version - 1,
	   "an over-long text is cut");
	ok(!feed(WORKER_PYTHON, "hint sandbox-off\n") && !feed(WORKER_NATIVE, "hint fault-in-package\n"),
	   "a hint that is the supervisor's");
}

int main(void)
{
	test_good();
	test_bad();
	test_cleaning();
	return done();
}
