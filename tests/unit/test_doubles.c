/* test_doubles LIBCUDA LIBAMDHIP64: drives both driver doubles through dlopen, as a client does. Each case runs in a
 * process of its own, since a double reads its environment once and keeps its state. */
#include "tap.h"

#include "../../build/kernels/images.h"
#include "../../kernels/check.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CUDA, HIP, BACKENDS };

static const char *library_path[BACKENDS];
static const char *const backend_name[BACKENDS] = {"cuda", "hip"};

/* The calls, under one signature: a handle or address is 64 bits. */
static struct {
	int backend;
	void *library;
} gpu;

static void *symbol(const char *name)
{
	void *address = dlsym(gpu.library, name);

	if (!address) {
		(void)fprintf(stderr, "no symbol %s\n", name);
		_exit(99);
	}
	return address;
}

#define CALL(type, name) ((type)(uintptr_t)symbol(name))

typedef int launch_call(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                        void **);

static void open_double(int backend)
{
	gpu.backend = backend;
	gpu.library = dlopen(library_path[backend], RTLD_NOW);
	if (!gpu.library) {
		(void)fprintf(stderr, "%s\n", dlerror());
		_exit(98);
	}
}

static const char *pick(const char *cuda, const char *hip)
{
	return gpu.backend == CUDA ? cuda : hip;
}

static int gpu_init(void)
{
	return CALL(int (*)(unsigned), pick("cuInit", "hipInit"))(0);
}

static int gpu_count(int *count)
{
	return CALL(int (*)(int *), pick("cuDeviceGetCount", "hipGetDeviceCount"))(count);
}

/* Context and all. */
static int gpu_select(int device)
{
	void *context = NULL;
	int error;

	if (gpu.backend == HIP)
		return CALL(int (*)(int), "hipSetDevice")(device);
	error = CALL(int (*)(void **, int), "cuDevicePrimaryCtxRetain")(&context, device);
	return error ? error : CALL(int (*)(void *), "cuCtxSetCurrent")(context);
}

static int gpu_alloc(uint64_t *address, size_t size)
{
	return CALL(int (*)(uint64_t *, size_t), pick("cuMemAlloc_v2", "hipMalloc"))(address, size);
}

static int gpu_free(uint64_t address)
{
	return CALL(int (*)(uint64_t), pick("cuMemFree_v2", "hipFree"))(address);
}

static int gpu_upload(uint64_t to, const void *from, size_t size)
{
	return CALL(int (*)(uint64_t, const void *, size_t), pick("cuMemcpyHtoD_v2", "hipMemcpyHtoD"))(to, from, size);
}

static int gpu_download(void *to, uint64_t from, size_t size)
{
	return CALL(int (*)(void *, uint64_t, size_t), pick("cuMemcpyDtoH_v2", "hipMemcpyDtoH"))(to, from, size);
}

static int gpu_load(void **module, const void *image)
{
	return CALL(int (*)(void **, const void *), pick("cuModuleLoadData", "hipModuleLoadData"))(module, image);
}

static int gpu_function(void **function, void *module, const char *name)
{
	return CALL(int (*)(void **, void *, const char *),
	            pick("cuModuleGetFunction", "hipModuleGetFunction"))(function, module, name);
}

static int gpu_unload(void *module)
{
	return CALL(int (*)(void *), pick("cuModuleUnload", "hipModuleUnload"))(module);
}

static int gpu_launch(void *function, unsigned blocks, unsigned threads, uint64_t in, uint64_t out)
{
	void *arguments[] = {&in, &out};

	return CALL(launch_call *, pick("cuLaunchKernel", "hipModuleLaunchKernel"))(function, blocks, 1, 1, threads, 1,
	                                                                            1, 0, NULL, arguments, NULL);
}

static int gpu_synchronise(void)
{
	return CALL(int (*)(void), pick("cuCtxSynchronize", "hipDeviceSynchronize"))();
}

static const void *image_for(const char *architecture)
{
	if (gpu.backend == CUDA)
		return kernel_ptx;
	for (unsigned i = 0; i < kernel_image_count; i++) {
		if (strcmp(kernel_images[i].architecture, architecture) == 0)
			return kernel_images[i].bytes;
	}
	return NULL;
}

/* The whole climb on one device. Returns the first error; *step names it. */
static int climb(int device, const char *architecture, float out[CHECK_OUT_COUNT], const char **step)
{
	static const float in[CHECK_IN_COUNT] = {1, 2, 3, 4, 2, 0, 1, 2};
	uint64_t in_address = 0, out_address = 0;
	void *module = NULL, *product = NULL, *gradient = NULL;
	int error;

#define STEP(name, call)                                                                                               \
	do {                                                                                                           \
		*step = (name);                                                                                        \
		error = (call);                                                                                        \
		if (error)                                                                                             \
			return error;                                                                                  \
	} while (0)

	STEP("init", gpu_init());
	STEP("select", gpu_select(device));
	STEP("alloc in", gpu_alloc(&in_address, sizeof in));
	STEP("alloc out", gpu_alloc(&out_address, CHECK_OUT_COUNT * sizeof *out));
	STEP("upload", gpu_upload(in_address, in, sizeof in));
	STEP("load", gpu_load(&module, image_for(architecture)));
	STEP("product", gpu_function(&product, module, "kd_product"));
	STEP("gradient", gpu_function(&gradient, module, "kd_gradient"));
	STEP("launch product", gpu_launch(product, 1, 4, in_address, out_address));
	STEP("launch gradient", gpu_launch(gradient, 1, 4, in_address, out_address));
	STEP("synchronise", gpu_synchronise());
	STEP("download", gpu_download(out, out_address, CHECK_OUT_COUNT * sizeof *out));
	STEP("unload", gpu_unload(module));
	STEP("free in", gpu_free(in_address));
	STEP("free out", gpu_free(out_address));
#undef STEP
	*step = "end";
	return 0;
}

/* A case runs in a child; its exit status is 0 when `body` returned true. */
struct outcome {
	bool exited;
	int number; /* exit status or signal */
	long elapsed_ms;
	char noise[1024]; /* what it wrote on stderr */
};

typedef bool case_body(const void *argument);

static long now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* `environment`: NAME=VALUE words separated by blanks. kill_after_ms: SIGTERM then, and SIGKILL as much later. */
static struct outcome in_child(int backend, const char *environment, case_body *body, const void *argument,
                               long kill_after_ms)
{
	struct outcome outcome = {0};
	long start = now_ms();
	int ends[2], status = 0;
	size_t length = 0;
	ssize_t got;
	pid_t child;

	(void)fflush(NULL);
	if (pipe(ends) < 0)
		exit(1);
	child = fork();
	if (child == 0) {
		char copy[1024], *rest = copy, *word;

		(void)dup2(ends[1], STDERR_FILENO);
		(void)dup2(ends[1], STDOUT_FILENO);
		(void)close(ends[0]);
		(void)close(ends[1]);
		(void)snprintf(copy, sizeof copy, "%s", environment);
		while ((word = strsep(&rest, " "))) {
			char *equals = strchr(word, '=');
			if (equals) {
				*equals = '\0';
				(void)setenv(word, equals + 1, 1);
			}
		}
		open_double(backend);
		_exit(body(argument) ? 0 : 1);
	}
	(void)close(ends[1]);
	if (kill_after_ms) {
		struct timespec wait = {.tv_sec = kill_after_ms / 1000, .tv_nsec = (kill_after_ms % 1000) * 1000000};
		(void)nanosleep(&wait, NULL);
		(void)kill(child, SIGTERM);
		(void)nanosleep(&wait, NULL);
		(void)kill(child, SIGKILL);
	}
	while (length < sizeof outcome.noise - 1 &&
	       (got = read(ends[0], outcome.noise + length, sizeof outcome.noise - 1 - length)) > 0)
		length += (size_t)got;
	(void)close(ends[0]);
	(void)waitpid(child, &status, 0);
	outcome.exited = WIFEXITED(status);
	outcome.number = outcome.exited ? WEXITSTATUS(status) : WTERMSIG(status);
	outcome.elapsed_ms = now_ms() - start;
	return outcome;
}

static bool passes(int backend, const char *environment, case_body *body, const void *argument)
{
	struct outcome outcome = in_child(backend, environment, body, argument, 0);
	bool passed = outcome.exited && outcome.number == 0;

	if (!passed)
		printf("# %s %d: %s\n", outcome.exited ? "exit" : "signal", outcome.number, outcome.noise);
	return passed;
}

/* Expectations inside a child: the first that fails is told on stderr. */
static bool same(int got, int want, const char *what)
{
	if (got != want)
		(void)fprintf(stderr, "%s: got %d, want %d\n", what, got, want);
	return got == want;
}

/* ---- a computation ---- */

struct want {
	const char *architecture;
	int device;
	int error;                  /* of the climb */
	const char *step;           /* where, with error */
	float out[CHECK_OUT_COUNT]; /* without */
};

#define POISON (-0x1.4b4b4ap-52F) /* 0xA5A5A5A5, fresh memory read as a float */

static const float RIGHT[CHECK_OUT_COUNT] = {4, 4, 10, 8, 196, 16, 24, 40, 52};

static bool body_climb(const void *argument)
{
	const struct want *want = argument;
	float out[CHECK_OUT_COUNT] = {0};
	const char *step = "";
	int error = climb(want->device, want->architecture, out, &step);

	if (!same(error, want->error, step))
		return false;
	if (error)
		return strcmp(step, want->step) == 0;
	for (int i = 0; i < CHECK_OUT_COUNT; i++) {
		bool equal = isnan(want->out[i]) ? isnan(out[i]) : out[i] == want->out[i];
		if (!equal) {
			(void)fprintf(stderr, "out[%d] = %g, want %g\n", i, (double)out[i], (double)want->out[i]);
			return false;
		}
	}
	return true;
}

static bool climbs(int backend, const char *environment)
{
	struct want want = {.architecture = "gfx942"};

	memcpy(want.out, RIGHT, sizeof RIGHT);
	return passes(backend, environment, body_climb, &want);
}

static bool fails_at(int backend, const char *environment, const char *step, int error)
{
	struct want want = {.architecture = "gfx942", .error = error, .step = step};

	return passes(backend, environment, body_climb, &want);
}

static void test_computes(int backend)
{
	ok(climbs(backend, ""), "%s: computes the fixed values", backend_name[backend]);
}

/* ---- strictness ---- */

static bool body_before_init(const void *argument)
{
	int count;
	uint64_t address;
	void *module;

	(void)argument;
	return same(gpu_count(&count), 3, "count") && same(gpu_select(0), 3, "select") &&
	       same(gpu_alloc(&address, 4), 3, "alloc") && same(gpu_load(&module, image_for("gfx942")), 3, "load") &&
	       same(gpu_synchronise(), 3, "synchronise") &&
	       same(CALL(int (*)(int *), pick("cuDriverGetVersion", "hipRuntimeGetVersion"))(&count), 0, "version");
}

static bool body_without_context(const void *argument)
{
	uint64_t address = 0;
	void *module, *context = NULL;
	char byte = 0;

	(void)argument;
	if (!same(gpu_init(), 0, "init"))
		return false;
	return same(gpu_alloc(&address, 4), 201, "alloc") && same(gpu_free(address), 201, "free") &&
	       same(gpu_upload(address, &byte, 1), 201, "upload") &&
	       same(gpu_download(&byte, address, 1), 201, "download") &&
	       same(gpu_load(&module, kernel_ptx), 201, "load") && same(gpu_synchronise(), 201, "synchronise") &&
	       same(CALL(int (*)(int), "cuDevicePrimaryCtxRelease_v2")(0), 201, "release without retain") &&
	       same(CALL(int (*)(void **, int), "cuDevicePrimaryCtxRetain")(&context, 0), 0, "retain") &&
	       same(gpu_alloc(&address, 4), 201, "retained is not current") &&
	       same(CALL(int (*)(void *), "cuCtxSetCurrent")(&byte), 201, "foreign context") &&
	       same(CALL(int (*)(void *), "cuCtxSetCurrent")(context), 0, "set current") &&
	       same(gpu_alloc(&address, 4), 0, "alloc with context") &&
	       same(CALL(int (*)(int), "cuDevicePrimaryCtxRelease_v2")(0), 0, "release") &&
	       same(CALL(int (*)(int), "cuDevicePrimaryCtxRelease_v2")(0), 201, "release twice") &&
	       same(gpu_free(address), 201, "memory died with the context");
}

static bool body_memory(const void *argument)
{
	uint64_t address = 0, other = 0;
	unsigned char bytes[64];
	size_t available = 0, total = 0;
	bool held;

	(void)argument;
	if (!same(gpu_init(), 0, "init") || !same(gpu_select(0), 0, "select") ||
	    !same(gpu_alloc(&address, 48), 0, "alloc"))
		return false;
	held = same(gpu_download(bytes, address, 48), 0, "download fresh");
	for (int i = 0; i < 48; i++)
		held = held && bytes[i] == 0xA5;
	held = held && same(gpu_alloc(&other, 0), 1, "alloc of nothing") &&
	       same(gpu_download(bytes, address, 49), 1, "over the end") &&
	       same(gpu_download(bytes, address + 40, 9), 1, "over the end from inside") &&
	       same(gpu_download(bytes, address + 40, 8), 0, "up to the end") &&
	       same(gpu_upload(address - 1, bytes, 1), 1, "before the start") &&
	       same(gpu_upload(address, NULL, 1), 1, "from NULL") &&
	       same(gpu_upload(address, bytes, 0), 1, "nothing") && same(gpu_free(address + 4), 1, "free inside") &&
	       same(gpu_free(address), 0, "free") && same(gpu_free(address), 1, "free twice") &&
	       same(gpu_download(bytes, address, 4), 1, "after free") && same(gpu_alloc(&other, 4), 0, "alloc again") &&
	       same(other != address, 1, "addresses are not reused");
	held = held &&
	       same(CALL(int (*)(size_t *, size_t *), pick("cuMemGetInfo_v2", "hipMemGetInfo"))(&available, &total), 0,
	            "memory info");
	held = held && same(total == 1073741824 && available < total, 1, "KD_DOUBLE_MEMORY");
	held = held && same(gpu_alloc(&other, available + 1), 2, "more than there is");
	/* An address is none of this process: mincore tells without touching. */
	held = held && same(mincore((void *)(uintptr_t)(address & ~UINT64_C(0xfff)), 1, bytes) < 0 && errno == ENOMEM,
	                    1, "not readable by the host");
	return held;
}

static bool body_modules(const void *argument)
{
	static char forged[16384];
	uint64_t in = 0, out = 0;
	void *module = NULL, *function = NULL;
	const char *image = image_for("gfx942");
	size_t size = gpu.backend == CUDA ? sizeof kernel_ptx : 0;
	bool held;

	(void)argument;
	for (unsigned i = 0; gpu.backend == HIP && i < kernel_image_count; i++) {
		if (kernel_images[i].bytes == (const unsigned char *)image)
			size = kernel_images[i].size;
	}
	memcpy(forged, image, size);
	if (!same(gpu_init(), 0, "init") || !same(gpu_select(0), 0, "select") ||
	    !same(gpu_alloc(&in, 32), 0, "alloc in") || !same(gpu_alloc(&out, 36), 0, "alloc out"))
		return false;
	held = same(gpu_load(&module, forged), 0, "a copy of the shipped image");
	forged[size / 2] ^= 1;
	held = held && same(gpu_load(&module, forged), 200, "one bit changed") &&
	       same(gpu_load(&module, "x"), 200, "not an image") && same(gpu_load(&module, NULL), 1, "no image") &&
	       same(gpu_load(&module, image), 0, "load") &&
	       same(gpu_function(&function, module, "kd_sum"), 500, "unknown function") &&
	       same(gpu_function(&function, &in, "kd_product"), 400, "unknown module") &&
	       same(gpu_function(&function, module, "kd_product"), 0, "function") &&
	       same(gpu_launch(module, 1, 4, in, out), 400, "a module is no function") &&
	       same(gpu_launch(function, 2, 4, in, out), 1, "two blocks") &&
	       same(gpu_launch(function, 1, 5, in, out), 1, "five threads") &&
	       same(gpu_launch(function, 1, 4, in + 4, out), 700, "in over its end") &&
	       same(gpu_launch(function, 1, 4, in, out + 4), 700, "out over its end") &&
	       same(gpu_launch(function, 1, 4, in, 0), 700, "out nowhere") &&
	       same(gpu_launch(function, 1, 4, in, out), 0, "launch") && same(gpu_unload(module), 0, "unload") &&
	       same(gpu_unload(module), 400, "unload twice") &&
	       same(gpu_launch(function, 1, 4, in, out), 400, "after unload");
	return held;
}

static bool body_other_device(const void *argument)
{
	uint64_t address = 0;
	void *module = NULL, *function = NULL;
	float out[CHECK_OUT_COUNT];

	(void)argument;
	return same(gpu_init(), 0, "init") && same(gpu_select(0), 0, "select 0") &&
	       same(gpu_alloc(&address, 36), 0, "alloc") && same(gpu_load(&module, image_for("gfx942")), 0, "load") &&
	       same(gpu_select(1), 0, "select 1") && same(gpu_download(out, address, 36), 1, "memory of device 0") &&
	       same(gpu_function(&function, module, "kd_product"), 400, "module of device 0") &&
	       same(gpu_select(2), 101, "no such device") && same(gpu_select(-1), 101, "negative device");
}

static void test_strict(int backend)
{
	const char *name = backend_name[backend];

	ok(passes(backend, "", body_before_init, NULL), "%s: nothing works before initialisation but versions", name);
	if (backend == CUDA)
		ok(passes(backend, "", body_without_context, NULL), "%s: no current context, contexts counted", name);
	ok(passes(backend, "KD_DOUBLE_MEMORY=1073741824", body_memory, NULL), "%s: copies inside live allocations only",
	   name);
	ok(passes(backend, "", body_modules, NULL), "%s: shipped images, known functions, the one launch", name);
	ok(passes(backend, "KD_DOUBLE_DEVICES=2", body_other_device, NULL), "%s: devices are apart", name);
	ok(fails_at(backend, "KD_DOUBLE_DEVICES=0", "init", 100), "%s: no device", name);
}

static void test_images(void)
{
	static const struct {
		const char *environment, *image;
		int error;
	} cases[] = {
	        {"KD_DOUBLE_ARCH=gfx1100", "gfx1100", 0},
	        {"KD_DOUBLE_ARCH=gfx1100", "gfx11-generic", 0},
	        {"KD_DOUBLE_ARCH=gfx1100", "gfx1101", 209},
	        {"KD_DOUBLE_ARCH=gfx1100", "gfx12-generic", 209},
	        {"KD_DOUBLE_ARCH=gfx1036", "gfx10-3-generic", 0},
	        {"KD_DOUBLE_ARCH=gfx1036 KD_DOUBLE_DRIVER_VERSION=60241133", "gfx10-3-generic", 209},
	        {"KD_DOUBLE_ARCH=gfx90a:sramecc+:xnack-", "gfx90a", 0},
	        {"KD_DOUBLE_ARCH=sm_90,gfx906", "gfx906", 0},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct want want = {.architecture = cases[i].image, .error = cases[i].error, .step = "load"};
		memcpy(want.out, RIGHT, sizeof RIGHT);
		ok(passes(HIP, cases[i].environment, body_climb, &want), "hip: %s, image %s: %d", cases[i].environment,
		   cases[i].image, cases[i].error);
	}
}

/* ---- facts ---- */

static bool body_facts_cuda(const void *argument)
{
	char name[64];
	uint8_t uuid[16];
	size_t total = 0;
	int device = -1, major = 0, minor = 0, version = 0;
	const char *text = NULL;

	(void)argument;
	return same(gpu_init(), 0, "init") && same(CALL(int (*)(int *, int), "cuDeviceGet")(&device, 1), 0, "get") &&
	       same(CALL(int (*)(char *, int, int), "cuDeviceGetName")(name, 64, device), 0, "name") &&
	       same(strcmp(name, "kd-double GPU 1"), 0, name) &&
	       same(CALL(int (*)(int *, int, int), "cuDeviceGetAttribute")(&major, 75, device), 0, "major") &&
	       same(CALL(int (*)(int *, int, int), "cuDeviceGetAttribute")(&minor, 76, device), 0, "minor") &&
	       same(major * 10 + minor, 121, "capability") &&
	       same(CALL(int (*)(size_t *, int), "cuDeviceTotalMem_v2")(&total, device), 0, "total") &&
	       same(total == UINT64_C(17179869184), 1, "total memory") &&
	       same(CALL(int (*)(void *, int), "cuDeviceGetUuid")(uuid, device), 0, "uuid") &&
	       same(uuid[0], 0xd1, "uuid") &&
	       same(CALL(int (*)(int *), "cuDriverGetVersion")(&version), 0, "version") &&
	       same(version, 13000, "version") &&
	       same(CALL(int (*)(int, const char **), "cuGetErrorName")(802, &text), 0, "error name") &&
	       same(strcmp(text, "CUDA_ERROR_SYSTEM_NOT_READY"), 0, text) &&
	       same(CALL(int (*)(int, const char **), "cuGetErrorName")(12345, &text), 1, "unknown error") &&
	       same(text == NULL, 1, "no name");
}

static bool body_facts_hip(const void *argument)
{
	char name[64], properties[4096] = {0}, uuid[17] = {0};
	size_t total = 0;
	int version = 0;

	(void)argument;
	memset(properties, 'x', sizeof properties);
	if (!same(gpu_init(), 0, "init") ||
	    !same(CALL(int (*)(void *, int), "hipGetDeviceProperties")(properties, 1), 0, "properties") ||
	    !same(strcmp(properties + 396, "gfx1100"), 0, properties + 396) ||
	    !same(properties[792], 'x', "no byte more"))
		return false;
	memcpy(&total, properties + 256, sizeof total);
	return same(total == UINT64_C(17179869184), 1, "total memory") &&
	       same(CALL(int (*)(char *, int, int), "hipDeviceGetName")(name, 64, 1), 0, "name") &&
	       same(strcmp(name, "kd-double GPU 1"), 0, name) && same(strcmp(name, properties), 0, properties) &&
	       same(CALL(int (*)(void *, int), "hipDeviceGetUuid")(uuid, 1), 0, "uuid") &&
	       same(strcmp(uuid, "d10b1e0000004b44"), 0, uuid) &&
	       same(CALL(int (*)(int *), "hipRuntimeGetVersion")(&version), 0, "version") &&
	       same(version, 70200000, "version") &&
	       same(strcmp(CALL(const char *(*)(int), "hipGetErrorName")(209), "hipErrorNoBinaryForGpu"), 0, "name") &&
	       same(strcmp(CALL(const char *(*)(int), "hipGetErrorName")(12345), "hipErrorUnknown"), 0, "unknown");
}

static void test_facts(void)
{
	ok(passes(CUDA, "KD_DOUBLE_DEVICES=2 KD_DOUBLE_ARCH=sm_90,sm_121 KD_DOUBLE_DRIVER_VERSION=13000",
	          body_facts_cuda, NULL),
	   "cuda: name, architecture, memory, UUID, version, error names");
	ok(passes(HIP, "KD_DOUBLE_DEVICES=2 KD_DOUBLE_ARCH=gfx1036,gfx1100 KD_DOUBLE_DRIVER_VERSION=70200000",
	          body_facts_hip, NULL),
	   "hip: name, architecture, memory, UUID, version, error names");
}

/* ---- masks ---- */

/* Visible devices as digits: "20" is device 2, then 0; "" is none. */
static bool body_visible(const void *argument)
{
	const char *want = argument;
	char got[70] = "", name[64];
	int count = 0, error = gpu_init();

	if (!*want)
		return same(error, 100, "init") && (gpu.backend == CUDA ? same(gpu_count(&count), 3, "count")
		                                                        : same(gpu_count(&count), 100, "count"));
	if (!same(error, 0, "init") || !same(gpu_count(&count), 0, "count"))
		return false;
	for (int i = 0; i < count; i++) {
		(void)CALL(int (*)(char *, int, int), pick("cuDeviceGetName", "hipDeviceGetName"))(name, 64, i);
		got[i] = name[strlen(name) - 1];
	}
	return same(strcmp(got, want), 0, got);
}

static void test_masks(void)
{
	static const struct {
		int backend;
		const char *environment, *visible;
	} cases[] = {
	        {CUDA, "", "0123"},
	        {CUDA, "CUDA_VISIBLE_DEVICES=", ""},
	        {CUDA, "CUDA_VISIBLE_DEVICES=-1", ""},
	        {CUDA, "CUDA_VISIBLE_DEVICES=NoDevFiles", ""},
	        {CUDA, "CUDA_VISIBLE_DEVICES=2,0", "20"},
	        {CUDA, "CUDA_VISIBLE_DEVICES=1,9,2", "1"},
	        {CUDA, "CUDA_VISIBLE_DEVICES=1,-1,2", "1"},
	        {CUDA, "CUDA_VISIBLE_DEVICES=4294967296", ""},
	        {CUDA, "CUDA_VISIBLE_DEVICES=1,1", ""},
	        {CUDA, "CUDA_VISIBLE_DEVICES=GPU-d2", "2"},
	        {CUDA, "CUDA_VISIBLE_DEVICES=GPU-d30b1e00-0000-4b44-8000-000000000001,GPU-d0", "30"},
	        {CUDA, "CUDA_VISIBLE_DEVICES=GPU-d", ""},
	        {CUDA, "CUDA_VISIBLE_DEVICES=GPU-ff", ""},
	        {CUDA, "CUDA_VISIBLE_DEVICES=MIG-d0", ""},
	        {CUDA, "HIP_VISIBLE_DEVICES=1", "0123"},
	        {HIP, "", "0123"},
	        {HIP, "HIP_VISIBLE_DEVICES=", "0123"},
	        {HIP, "CUDA_VISIBLE_DEVICES=", "0123"},
	        {HIP, "HIP_VISIBLE_DEVICES=-1", ""},
	        {HIP, "HIP_VISIBLE_DEVICES=3,1", "31"},
	        {HIP, "HIP_VISIBLE_DEVICES=3,1,1,x,0", "31"},
	        {HIP, "HIP_VISIBLE_DEVICES=01", ""},
	        {HIP, "CUDA_VISIBLE_DEVICES=2", "2"},
	        {HIP, "CUDA_VISIBLE_DEVICES=2 HIP_VISIBLE_DEVICES=1", "1"},
	        {HIP, "CUDA_VISIBLE_DEVICES=2 HIP_VISIBLE_DEVICES=", "2"},
	        {HIP, "HIP_VISIBLE_DEVICES=GPU-d20b1e0000004b44", "2"},
	        {HIP, "ROCR_VISIBLE_DEVICES=", ""},
	        {HIP, "ROCR_VISIBLE_DEVICES=2,0", "20"},
	        {HIP, "ROCR_VISIBLE_DEVICES=gpu-D3", "3"},
	        {HIP, "ROCR_VISIBLE_DEVICES=2,2,1", "2"},
	        {HIP, "ROCR_VISIBLE_DEVICES=3,2 HIP_VISIBLE_DEVICES=1", "2"},
	        {HIP, "ROCR_VISIBLE_DEVICES=3 HIP_VISIBLE_DEVICES=1", ""},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char environment[160];
		(void)snprintf(environment, sizeof environment, "KD_DOUBLE_DEVICES=4 %s", cases[i].environment);
		ok(passes(cases[i].backend, environment, body_visible, cases[i].visible), "%s: %s shows [%s]",
		   backend_name[cases[i].backend], *cases[i].environment ? cases[i].environment : "no mask",
		   cases[i].visible);
	}
}

/* ---- exclusive ---- */

static bool body_select(const void *argument)
{
	const int *want = argument;

	return same(gpu_init(), 0, "init") && same(gpu_select(want[0]), want[1], "select");
}

static bool body_reselect(const void *argument)
{
	(void)argument;
	for (int i = 0; i < 2; i++) {
		if (!same(gpu_init(), 0, "init") || !same(gpu_select(0), 0, "select") ||
		    !same(CALL(int (*)(int), "cuDevicePrimaryCtxRelease_v2")(0), 0, "release"))
			return false;
	}
	return true;
}

static void test_exclusive(int backend)
{
	static const char lock[] = "kd-double:/tmp/unit:1";
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int busy[2] = {1, backend == CUDA ? 46 : 216}, other[2] = {0, 0}, after[2] = {1, 0};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char environment[] = "KD_DOUBLE_DEVICES=2 KD_DOUBLE_EXCLUSIVE=/tmp/unit";

	memcpy(address.sun_path + 1, lock, sizeof lock - 1);
	ok(bind(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof lock)) ==
	           0,
	   "%s: another process holds device 1", backend_name[backend]);
	ok(passes(backend, environment, body_select, busy), "%s: a context on it is refused", backend_name[backend]);
	ok(passes(backend, environment, body_select, other), "%s: device 0 is free", backend_name[backend]);
	(void)close(fd);
	ok(passes(backend, environment, body_select, after), "%s: device 1 is free again", backend_name[backend]);
	if (backend == CUDA)
		ok(passes(backend, environment, body_reselect, NULL), "cuda: the lock goes with the context");
}

/* ---- faults ---- */

static bool fault_passes(int backend, const char *cuda_call, const char *hip_call, const char *rest, case_body *body,
                         const void *argument)
{
	char environment[256];

	(void)snprintf(environment, sizeof environment, "KD_DOUBLE_FAULT=%s%s", backend == CUDA ? cuda_call : hip_call,
	               rest);
	return passes(backend, environment, body, argument);
}

/* Every call of the climb returns the error it is told to, at its step. */
static void test_fault_errors(int backend)
{
	static const struct {
		const char *call[BACKENDS], *step;
	} steps[] = {
	        {{"cuInit", "hipInit"}, "init"},
	        {{"cuDevicePrimaryCtxRetain", "hipSetDevice"}, "select"},
	        {{"cuCtxSetCurrent", "hipSetDevice"}, "select"},
	        {{"cuMemAlloc_v2", "hipMalloc"}, "alloc in"},
	        {{"cuMemAlloc_v2#2", "hipMalloc#2"}, "alloc out"},
	        {{"cuMemAlloc_v2@0#2", "hipMalloc@0#2"}, "alloc out"},
	        {{"cuMemcpyHtoD_v2", "hipMemcpyHtoD"}, "upload"},
	        {{"cuModuleLoadData", "hipModuleLoadData"}, "load"},
	        {{"cuModuleGetFunction", "hipModuleGetFunction"}, "product"},
	        {{"cuModuleGetFunction#2", "hipModuleGetFunction#2"}, "gradient"},
	        {{"cuLaunchKernel", "hipModuleLaunchKernel"}, "launch product"},
	        {{"cuLaunchKernel#2", "hipModuleLaunchKernel#2"}, "launch gradient"},
	        {{"cuCtxSynchronize", "hipDeviceSynchronize"}, "synchronise"},
	        {{"cuMemcpyDtoH_v2", "hipMemcpyDtoH"}, "download"},
	        {{"cuModuleUnload", "hipModuleUnload"}, "unload"},
	        {{"cuMemFree_v2", "hipFree"}, "free in"},
	        {{"cuMemFree_v2#2", "hipFree#2"}, "free out"},
	};
	struct want want = {.architecture = "gfx942", .error = 719};

	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		want.step = steps[i].step;
		ok(fault_passes(backend, steps[i].call[CUDA], steps[i].call[HIP], "=error:719", body_climb, &want),
		   "%s: %s=error:719 at %s", backend_name[backend], steps[i].call[backend], steps[i].step);
	}
	memcpy(want.out, RIGHT, sizeof RIGHT);
	want.error = 0;
	ok(fault_passes(backend, "cuMemAlloc_v2@1", "hipMalloc@1", "=error:2", body_climb, &want),
	   "%s: a fault of another device is left alone", backend_name[backend]);
	ok(fault_passes(backend, "cuMemAlloc_v2#3", "hipMalloc#3", "=error:2", body_climb, &want),
	   "%s: a fault of a third call that never comes", backend_name[backend]);
	ok(fault_passes(backend, "hipInit", "cuInit", "=error:100", body_climb, &want),
	   "%s: a fault of the other library is left alone", backend_name[backend]);
}

static bool body_sticky(const void *argument)
{
	float out[CHECK_OUT_COUNT];
	const char *step = "";
	int count = 0, version = 0;

	(void)argument;
	return same(climb(0, "gfx942", out, &step), 700, step) && same(strcmp(step, "synchronise"), 0, step) &&
	       same(gpu_count(&count), 700, "count") && same(gpu_free(1), 700, "free") &&
	       same(CALL(int (*)(int *), pick("cuDriverGetVersion", "hipRuntimeGetVersion"))(&version), 0, "version");
}

static bool body_noop_count(const void *argument)
{
	int count = -7;

	(void)argument;
	return same(gpu_init(), 0, "init") && same(gpu_count(&count), 0, "count") && same(count, -7, "untouched");
}

/* The product is element 0 to 3, the loss 4, the gradient 5 to 8. A wrong product makes what follows from it wrong. */
static void test_fault_numbers(int backend)
{
	static const struct {
		const char *rest;
		float out[CHECK_OUT_COUNT];
	} cases[] = {
	        {"#1=wrong:product:2:11", {4, 4, 11, 8, 217, 16, 24, 44, 54}},
	        {"=wrong:loss:195.5", {4, 4, 10, 8, 195.5F, 16, 24, 40, 52}},
	        {"=wrong:loss:nan", {4, 4, 10, 8, NAN, 16, 24, 40, 52}},
	        {"=wrong:gradient:3:-inf", {4, 4, 10, 8, 196, 16, 24, 40, -INFINITY}},
	        {"=wrong:gradient:0:0", {4, 4, 10, 8, 196, 0, 24, 40, 52}},
	        {"=zeros", {0, 0, 0, 0, 0, 0, 0, 0, 0}},
	        {"#1=zeros", {0, 0, 0, 0, 0, 0, 0, 0, 0}},
	        {"#2=zeros", {4, 4, 10, 8, 0, 0, 0, 0, 0}},
	        {"#2=noop", {4, 4, 10, 8, POISON, POISON, POISON, POISON, POISON}},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct want want = {.architecture = "gfx942"};
		memcpy(want.out, cases[i].out, sizeof want.out);
		ok(fault_passes(backend, "cuLaunchKernel", "hipModuleLaunchKernel", cases[i].rest, body_climb, &want),
		   "%s: launch%s", backend_name[backend], cases[i].rest);
	}
	ok(fault_passes(backend, "cuDeviceGetCount", "hipGetDeviceCount", "=noop", body_noop_count, NULL),
	   "%s: noop succeeds and touches nothing", backend_name[backend]);
	ok(fault_passes(backend, "cuCtxSynchronize", "hipDeviceSynchronize", "=sticky:700", body_sticky, NULL),
	   "%s: a sticky error stays", backend_name[backend]);
}

static struct outcome fault_outcome(int backend, const char *rest, long kill_after_ms)
{
	struct want want = {.architecture = "gfx942"};
	char environment[256];

	memcpy(want.out, RIGHT, sizeof RIGHT);
	(void)snprintf(environment, sizeof environment, "KD_DOUBLE_FAULT=%s%s", backend == CUDA ? "cuInit" : "hipInit",
	               rest);
	return in_child(backend, environment, body_climb, &want, kill_after_ms);
}

static void test_fault_deaths(int backend)
{
	static const int signals[] = {SIGSEGV, SIGABRT, SIGKILL, SIGILL, SIGBUS, SIGSYS};
	const char *name = backend_name[backend];
	struct outcome outcome;

	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
		char rest[32];
		(void)snprintf(rest, sizeof rest, "=signal:%d", signals[i]);
		outcome = fault_outcome(backend, rest, 0);
		ok(!outcome.exited && outcome.number == signals[i] && !*outcome.noise, "%s: dies of signal %d", name,
		   signals[i]);
	}
	outcome = fault_outcome(backend, "=exit:0", 0);
	ok(outcome.exited && outcome.number == 0 && !*outcome.noise && outcome.elapsed_ms < 2000, "%s: exits silently",
	   name);
	outcome = fault_outcome(backend, "=exit:7", 0);
	ok(outcome.exited && outcome.number == 7 && !*outcome.noise, "%s: exits with 7", name);
	outcome = fault_outcome(backend, "=hang", 150);
	ok(!outcome.exited && outcome.number == SIGKILL, "%s: a hang outlives SIGTERM", name);
	outcome = fault_outcome(backend, "=sleep:300", 0);
	ok(outcome.exited && outcome.number == 0 && outcome.elapsed_ms >= 300, "%s: sleeps, then goes on", name);
	outcome = fault_outcome(backend, "=hostile:noise", 0);
	ok(outcome.exited && outcome.number == 0 && strstr(outcome.noise, "GPU_CHECK_PASSED"), "%s: makes noise", name);
	outcome = fault_outcome(backend, "=hostile:close", 0);
	ok(outcome.exited && outcome.number == 0, "%s: closes standard descriptors, then computes", name);
}

static bool body_nothing(const void *argument)
{
	(void)argument;
	return true;
}

/* A wrong setting kills at load time, before any call. */
static void test_refuses(int backend)
{
	static const char *const settings[] = {
	        "KD_DOUBLE_FAULT=cuIntt=error:1",
	        "KD_DOUBLE_FAULT=cuInit",
	        "KD_DOUBLE_FAULT=cuInit=",
	        "KD_DOUBLE_FAULT=cuInit=eror:1",
	        "KD_DOUBLE_FAULT=cuInit=error",
	        "KD_DOUBLE_FAULT=cuInit=error:x",
	        "KD_DOUBLE_FAULT=cuInit=error:0",
	        "KD_DOUBLE_FAULT=cuInit=error:1x",
	        "KD_DOUBLE_FAULT=cuInit#0=error:1",
	        "KD_DOUBLE_FAULT=cuInit@x=error:1",
	        "KD_DOUBLE_FAULT=cuInit#1@0=error:1",
	        "KD_DOUBLE_FAULT=cuInit=hang:1",
	        "KD_DOUBLE_FAULT=cuInit=signal:0",
	        "KD_DOUBLE_FAULT=cuInit=signal:5",
	        "KD_DOUBLE_FAULT=cuInit=exit:256",
	        "KD_DOUBLE_FAULT=cuInit=zeros",
	        "KD_DOUBLE_FAULT=cuInit=wrong:loss:1",
	        "KD_DOUBLE_FAULT=cuLaunchKernel=wrong:loss",
	        "KD_DOUBLE_FAULT=cuLaunchKernel=wrong:loss:",
	        "KD_DOUBLE_FAULT=cuLaunchKernel=wrong:loss:0:1",
	        "KD_DOUBLE_FAULT=cuLaunchKernel=wrong:product:4:1",
	        "KD_DOUBLE_FAULT=cuLaunchKernel=wrong:product:1",
	        "KD_DOUBLE_FAULT=cuLaunchKernel=wrong:sum:1:1",
	        "KD_DOUBLE_FAULT=cuInit=error:1;",
	        "KD_DOUBLE_FAULT=;cuInit=error:1",
	        "KD_DOUBLE_FAULT=cuInit=error:1;cuInt=hang",
	        "KD_DOUBLE_FAULT=cuInit=hostile:nobody",
	        "KD_DOUBLE_FAULT=hipGetErrorName=error:1",
	        "KD_DOUBLE_DEVICES=x",
	        "KD_DOUBLE_DEVICES=65",
	        "KD_DOUBLE_DEVICES=",
	        "KD_DOUBLE_ARCH=hopper",
	        "KD_DOUBLE_MEMORY=16G",
	        "KD_DOUBLE_DRIVER_VERSION=12.4",
	        "KD_DOUBLE_LOG=/nonexistent/log",
	        "KD_DOUBLE_LOG=fd:77",
	};

	for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
		struct outcome outcome = in_child(backend, settings[i], body_nothing, NULL, 0);
		ok(!outcome.exited && outcome.number == SIGTRAP && strncmp(outcome.noise, "kd-double: ", 11) == 0,
		   "%s: %s is refused loudly", backend_name[backend], settings[i]);
	}
}

static void test_log(int backend)
{
	struct want want = {.architecture = "gfx942"};
	struct outcome outcome;

	memcpy(want.out, RIGHT, sizeof RIGHT);
	outcome = in_child(backend, "KD_DOUBLE_LOG=stderr", body_climb, &want, 0);
	ok(strstr(outcome.noise, backend == CUDA ? " cuInit -1 0\n" : " hipInit -1 0\n") &&
	           strstr(outcome.noise, backend == CUDA ? " cuMemFree_v2 0 0\n" : " hipFree 0 0\n"),
	   "%s: logs to stderr", backend_name[backend]);
	outcome = in_child(backend, "KD_DOUBLE_LOG=fd:1", body_climb, &want, 0);
	ok(strstr(outcome.noise, "kd-double ") != NULL, "%s: logs to a descriptor", backend_name[backend]);
}

int main(int argc, char **argv)
{
	static const char *const masks[] = {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"};

	if (argc != 3) {
		(void)fprintf(stderr, "usage: test_doubles LIBCUDA LIBAMDHIP64\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++)
		(void)unsetenv(masks[i]);
	for (int backend = 0; backend < BACKENDS; backend++) {
		library_path[backend] = argv[1 + backend];
		test_computes(backend);
		test_strict(backend);
		test_exclusive(backend);
		test_fault_errors(backend);
		test_fault_numbers(backend);
		test_fault_deaths(backend);
		test_refuses(backend);
		test_log(backend);
	}
	test_images();
	test_facts();
	test_masks();
	return done();
}
