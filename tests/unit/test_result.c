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

static void test_cleaning(void)
{
	char line[RESULT_LINE_MAX + 8] = "torch_version ";

	ok(feed(WORKER_NATIVE, "device 0\ndevice_name AMD Radeon RX 7900 XT/XTX\n"), "a slash inside a name");
	is_string(result.devices[0].name, "AMD Radeon RX 7900 XT/XTX", "stays");
	ok(feed(WORKER_PYTHON, "missing /usr/lib/x.so\n") && !strchr(result.missing, '/'), "a path does not stay one");
	ok(feed(WORKER_PYTHON, "call see /etc/x\n") && !strchr(result.call, '/'), "nor inside a text");
	memset(line + 14, '1', 200);
	(void)snprintf(line + 214, sizeof line - 214, "\n");
	ok(feed(WORKER_PYTHON, line) && strlen(result.torch_version) == sizeof result.torch_version - 1,
	   "an over-long text is cut");
}

int main(void)
{
	test_good();
	test_bad();
	test_cleaning();
	return done();
}
