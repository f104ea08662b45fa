/* The fault language of both doubles:
 *
 *   KD_DOUBLE_FAULT="CALL[@DEVICE][#NTH]=ACTION[;CALL...=ACTION]..."
 *
 *   CALL      an exported function of either double ("cuInit", "hipMalloc"); a fault of the other one is left alone
 *   @DEVICE   only when the call is about this device, by its ordinal among the visible ones
 *   #NTH      only the NTH such call of the process, counted from 1; without it, every one
 *
 *   error:N              return N (1 to 99999) without doing anything
 *   sticky:N             the same, and N from every later call but those that tell versions and names, as after a fault
 * of the hardware noop                 return success without doing anything hang                 never return; all
 * signals blocked, so that only SIGKILL helps sleep:MS             wait that long, then go on signal:N             die
 * of signal N (not 5, which is the double's own alarm), its default disposition restored exit:N               _exit(N)
 * without a word hostile:NAME         do what hostiles[] below says, then go on
 *
 *   and on the launch calls only:
 *   zeros                the kernel writes zeros
 *   wrong:product:I:V    element I (0 to 3) of the product becomes V (a number, nan, inf)
 *   wrong:loss:V         the loss becomes V
 *   wrong:gradient:I:V   element I of the gradient becomes V
 *
 * Faults of one call apply in the order written. */
#include "double.h"

#include "../../kernels/check.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FAULTS_MAX = 32, CALL_MAX = 40 };

enum action { ERROR, STICKY, NOOP, HANG, SLEEP, SIGNAL, EXIT, HOSTILE, ZEROS, WRONG };

enum call_kind {
	CALL_PLAIN,
	CALL_TELLS,    /* versions, names: works before initialisation and after a sticky error */
	CALL_NO_ERROR, /* like CALL_TELLS, and returns text instead of an error */
	CALL_LAUNCH
};

/* Every export of both doubles; also what makes a misspelt call an error. */
static const struct {
	const char *name;
	enum call_kind kind;
} calls[] = {
        {"cuInit", CALL_PLAIN},
        {"cuDriverGetVersion", CALL_TELLS},
        {"cuGetErrorName", CALL_TELLS},
        {"cuGetErrorString", CALL_TELLS},
        {"cuDeviceGetCount", CALL_PLAIN},
        {"cuDeviceGet", CALL_PLAIN},
        {"cuDeviceGetName", CALL_PLAIN},
        {"cuDeviceGetAttribute", CALL_PLAIN},
        {"cuDeviceTotalMem_v2", CALL_PLAIN},
        {"cuDeviceGetUuid", CALL_PLAIN},
        {"cuDeviceGetUuid_v2", CALL_PLAIN},
        {"cuDevicePrimaryCtxRetain", CALL_PLAIN},
        {"cuDevicePrimaryCtxRelease_v2", CALL_PLAIN},
        {"cuCtxSetCurrent", CALL_PLAIN},
        {"cuCtxSynchronize", CALL_PLAIN},
        {"cuMemGetInfo_v2", CALL_PLAIN},
        {"cuMemAlloc_v2", CALL_PLAIN},
        {"cuMemFree_v2", CALL_PLAIN},
        {"cuMemcpyHtoD_v2", CALL_PLAIN},
        {"cuMemcpyDtoH_v2", CALL_PLAIN},
        {"cuModuleLoadData", CALL_PLAIN},
        {"cuModuleGetFunction", CALL_PLAIN},
        {"cuModuleUnload", CALL_PLAIN},
        {"cuLaunchKernel", CALL_LAUNCH},
        {"hipInit", CALL_PLAIN},
        {"hipRuntimeGetVersion", CALL_TELLS},
        {"hipGetErrorName", CALL_NO_ERROR},
        {"hipGetErrorString", CALL_NO_ERROR},
        {"hipGetDeviceCount", CALL_PLAIN},
        {"hipSetDevice", CALL_PLAIN},
        {"hipDeviceGetName", CALL_PLAIN},
        {"hipDeviceGetAttribute", CALL_PLAIN},
        {"hipDeviceTotalMem", CALL_PLAIN},
        {"hipDeviceGetUuid", CALL_PLAIN},
        {"hipGetDeviceProperties", CALL_PLAIN},
        {"hipDeviceSynchronize", CALL_PLAIN},
        {"hipMemGetInfo", CALL_PLAIN},
        {"hipMalloc", CALL_PLAIN},
        {"hipFree", CALL_PLAIN},
        {"hipMemcpyHtoD", CALL_PLAIN},
        {"hipMemcpyDtoH", CALL_PLAIN},
        {"hipModuleLoadData", CALL_PLAIN},
        {"hipModuleGetFunction", CALL_PLAIN},
        {"hipModuleUnload", CALL_PLAIN},
        {"hipModuleLaunchKernel", CALL_LAUNCH},
};

enum { CALL_COUNT = sizeof calls / sizeof calls[0] };

struct fault {
	int call;      /* index into calls[] */
	int device;    /* DOUBLE_NO_DEVICE: any */
	unsigned nth;  /* 0: every one */
	unsigned hits; /* calls that fitted CALL and @DEVICE so far */
	bool due;      /* fits the launch that is in progress */
	enum action action;
	long number;
	int index; /* WRONG: into out[] */
	float value;
	void (*hostile)(void);
};

static struct fault faults[FAULTS_MAX];
static int fault_count;
static int sticky_error;

/* What a driver library may do to the process that loads it. Escape tests add theirs here. */
static void hostile_noise(void)
{
	static const char noise[] = "kd-double: noise {\"code\": \"GPU_CHECK_PASSED\"}\n";

	if (write(STDOUT_FILENO, noise, sizeof noise - 1) < 0 || write(STDERR_FILENO, noise, sizeof noise - 1) < 0)
		return;
}

static void hostile_close(void)
{
	for (int fd = 0; fd <= 2; fd++)
		(void)close(fd);
}

static const struct {
	const char *name;
	void (*act)(void);
} hostiles[] = {
        {"noise", hostile_noise}, /* a line on stdout and stderr that looks like a verdict */
        {"close", hostile_close}, /* standard descriptors closed */
};

/* Reads a whole decimal number in [least, most]. */
static bool read_number(const char *text, long least, long most, long *number)
{
	char *end;

	errno = 0;
	*number = strtol(text, &end, 10);
	return end != text && !*end && !errno && *number >= least && *number <= most;
}

static bool read_value(const char *text, float *value)
{
	char *end;

	*value = strtof(text, &end);
	return end != text && !*end;
}

/* "product:I:V", "loss:V", "gradient:I:V" */
static bool read_wrong(char *text, struct fault *fault)
{
	char *part = strtok(text, ":"), *index = strtok(NULL, ":"), *value;
	long number = 0;

	if (!part || !index)
		return false;
	if (strcmp(part, "loss") == 0) {
		fault->index = CHECK_OUT_LOSS;
		value = index;
	} else {
		bool product = strcmp(part, "product") == 0;
		if ((!product && strcmp(part, "gradient") != 0) || !read_number(index, 0, 3, &number))
			return false;
		fault->index = (product ? CHECK_OUT_PRODUCT : CHECK_OUT_GRADIENT) + (int)number;
		value = strtok(NULL, ":");
	}
	return value && !strtok(NULL, ":") && read_value(value, &fault->value);
}

static bool read_hostile(const char *name, struct fault *fault)
{
	for (size_t i = 0; i < sizeof hostiles / sizeof hostiles[0]; i++) {
		if (strcmp(hostiles[i].name, name) == 0)
			fault->hostile = hostiles[i].act;
	}
	return fault->hostile;
}

static bool read_action(char *text, struct fault *fault)
{
	static const struct {
		const char *name;
		enum action action;
		bool argument;
		long least, most; /* of a number */
	} actions[] = {
	        {"error", ERROR, true, 1, 99999}, {"sticky", STICKY, true, 1, 99999}, {"noop", NOOP, false, 0, 0},
	        {"hang", HANG, false, 0, 0},      {"sleep", SLEEP, true, 0, 600000},  {"signal", SIGNAL, true, 1, 64},
	        {"exit", EXIT, true, 0, 255},     {"hostile", HOSTILE, true, 0, 0},   {"zeros", ZEROS, false, 0, 0},
	        {"wrong", WRONG, true, 0, 0},
	};
	char *argument = strchr(text, ':');

	if (argument)
		*argument++ = '\0';
	for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
		if (strcmp(actions[i].name, text) != 0)
			continue;
		if (actions[i].argument != (argument != NULL))
			return false;
		fault->action = actions[i].action;
		if (fault->action == HOSTILE)
			return read_hostile(argument, fault);
		if (fault->action == WRONG)
			return read_wrong(argument, fault);
		return !argument || read_number(argument, actions[i].least, actions[i].most, &fault->number);
	}
	return false;
}

/* "CALL[@DEVICE][#NTH]" */
static bool read_target(char *text, struct fault *fault)
{
	char *nth = strchr(text, '#'), *device;
	long number;

	if (nth) {
		*nth++ = '\0';
		if (!read_number(nth, 1, 1000000, &number))
			return false;
		fault->nth = (unsigned)number;
	}
	device = strchr(text, '@');
	fault->device = DOUBLE_NO_DEVICE;
	if (device) {
		*device++ = '\0';
		if (!read_number(device, 0, DOUBLE_DEVICES_MAX - 1, &number))
			return false;
		fault->device = (int)number;
	}
	for (int i = 0; i < CALL_COUNT; i++) {
		fault->call = i;
		if (strcmp(calls[i].name, text) == 0)
			return true;
	}
	return false;
}

/* Actions that make no sense for the call. */
static bool fits(const struct fault *fault)
{
	enum call_kind kind = calls[fault->call].kind;

	switch (fault->action) {
	case ZEROS:
	case WRONG:
		return kind == CALL_LAUNCH;
	case ERROR:
	case STICKY:
	case NOOP:
		return kind != CALL_NO_ERROR;
	case SIGNAL:
		return fault->number != SIGTRAP;
	case HANG:
	case SLEEP:
	case EXIT:
	case HOSTILE:
		break;
	}
	return true;
}

void fault_parse(const char *spec)
{
	char copy[2048], *rest = copy, *one;

	if (!spec || !*spec)
		return;
	if (strlen(spec) >= sizeof copy)
		double_die("KD_DOUBLE_FAULT is too long");
	memcpy(copy, spec, strlen(spec) + 1);
	while ((one = strsep(&rest, ";"))) {
		struct fault fault = {0};
		char whole[256], *equals = strchr(one, '=');

		(void)snprintf(whole, sizeof whole, "%s", one);
		if (fault_count == FAULTS_MAX)
			double_die("KD_DOUBLE_FAULT has more than %d faults", FAULTS_MAX);
		if (!equals)
			double_die("KD_DOUBLE_FAULT: no '=' in '%s'", whole);
		*equals = '\0';
		if (!read_target(one, &fault))
			double_die("KD_DOUBLE_FAULT: not CALL[@DEVICE][#NTH] of a known call: '%s'", whole);
		if (!read_action(equals + 1, &fault))
			double_die("KD_DOUBLE_FAULT: unknown or malformed action in '%s'", whole);
		if (!fits(&fault))
			double_die("KD_DOUBLE_FAULT: an action that this call cannot have: '%s'", whole);
		faults[fault_count++] = fault;
	}
}

__attribute__((noreturn)) static void hang(void)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	for (;;)
		(void)poll(NULL, 0, -1);
}

static void sleep_ms(long ms)
{
	struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000};

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

__attribute__((noreturn)) static void die_of(int number)
{
	sigset_t set;

	(void)signal(number, SIG_DFL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, number);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)raise(number);
	double_die("signal %d did not end the process", number);
}

/* What the fault makes the call return, or DOUBLE_GO. */
static int act(struct fault *fault)
{
	switch (fault->action) {
	case STICKY:
		sticky_error = (int)fault->number;
		return sticky_error;
	case ERROR:
		return (int)fault->number;
	case NOOP:
		return 0;
	case HANG:
		hang();
	case SLEEP:
		sleep_ms(fault->number);
		break;
	case SIGNAL:
		die_of((int)fault->number);
	case EXIT:
		_exit((int)fault->number);
	case HOSTILE:
		fault->hostile();
		break;
	case ZEROS:
	case WRONG:
		fault->due = true;
		break;
	}
	return DOUBLE_GO;
}

static enum call_kind kind_of(const char *call)
{
	for (int i = 0; i < CALL_COUNT; i++) {
		if (strcmp(calls[i].name, call) == 0)
			return calls[i].kind;
	}
	double_die("%s is not in the table of calls", call);
}

int fault_apply(const char *call, int device)
{
	enum call_kind kind = kind_of(call);

	for (int i = 0; i < fault_count; i++) {
		struct fault *fault = &faults[i];
		int result;

		fault->due = false;
		if (strcmp(calls[fault->call].name, call) != 0)
			continue;
		if (fault->device != DOUBLE_NO_DEVICE && fault->device != device)
			continue;
		fault->hits++;
		if (fault->nth && fault->nth != fault->hits)
			continue;
		result = act(fault);
		if (result != DOUBLE_GO)
			return result;
	}
	if (sticky_error && (kind == CALL_PLAIN || kind == CALL_LAUNCH))
		return sticky_error;
	return DOUBLE_GO;
}

void fault_corrupt(enum kernel kernel, float *out)
{
	int first = kernel == KERNEL_PRODUCT ? CHECK_OUT_PRODUCT : CHECK_OUT_LOSS;
	int end = kernel == KERNEL_PRODUCT ? CHECK_OUT_LOSS : CHECK_OUT_COUNT;

	for (int i = 0; i < fault_count; i++) {
		struct fault *fault = &faults[i];

		if (!fault->due)
			continue;
		fault->due = false;
		if (fault->action == ZEROS)
			memset(out + first, 0, (size_t)(end - first) * sizeof *out);
		else if (fault->index >= first && fault->index < end)
			out[fault->index] = fault->value;
	}
}
