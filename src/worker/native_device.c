#include "native_device.h"

#include "native_facts.h"
#include "native_failure.h"
#include "native_library.h"
#include "native_text.h"

enum {
	DEVICE_BACKENDS = 2,
	DEVICE_PATH_MAX = 4096,
	DEVICE_COUNT_MAX = 65535, /* as the protocol takes them */
	DEVICE_FACTS_MAX = 128,   /* RESULT_DEVICES_MAX */
};

/* How far a backend got; doubled, plus one where the vendor's device nodes are here, it decides which is reported. */
enum progress {
	PROGRESS_NONE,
	PROGRESS_FOUND, /* the library is there, something that it needs is not */
	PROGRESS_LOADED,
	PROGRESS_BOUND,
	PROGRESS_STARTED,
	PROGRESS_DEVICES
};

struct attempt {
	struct driver driver;
	enum progress progress;
	bool usable; /* started, and has devices */
	const char *origin;
	int version; /* -1: not told */
	int count;   /* -1: not told */
	struct failure failure;
};

/* Loads `name` and binds it. Returns 0, or -1 with what is missing noted: of several tries the one that got furthest.
 */
static int attempt_library(struct attempt *attempt, const struct backend *backend, const char *name)
{
	char missing[sizeof attempt->failure.missing] = "";
	void *library = library_load(name, missing, sizeof missing);
	const char *lacks = library ? driver_bind(&attempt->driver, backend, library) : missing;
	enum progress progress = library ? PROGRESS_LOADED : PROGRESS_NONE;

	if (!lacks) {
		attempt->progress = PROGRESS_BOUND;
		attempt->origin = library_origin(attempt->driver.symbols[CALL_INIT]);
		attempt->failure.missing[0] = '\0';
		return 0;
	}
	/* "Something that libamdhip64.so.6 needs" tells more than "no libamdhip64.so.7". */
	if (!library && !text_equal(missing, text_base(name)))
		progress = PROGRESS_FOUND;
	if (progress > attempt->progress || !attempt->failure.missing[0]) {
		attempt->progress = progress;
		text_copy(attempt->failure.missing, sizeof attempt->failure.missing, lacks);
	}
	return -1;
}

/* The copies inside Python packages: each soname, and the bare name that PyTorch's wheels use, in each folder. */
static int attempt_folders(struct attempt *attempt, const struct backend *backend, const char *folders)
{
	char path[DEVICE_PATH_MAX];

	while (*folders) {
		size_t length = 0;
		while (folders[length] && folders[length] != ':')
			length++;
		for (size_t i = 0; length && length + 32 < sizeof path; i++) {
			const char *name = backend->libraries[i] ? backend->libraries[i] : "libamdhip64.so";
			memcpy(path, folders, length);
			path[length] = '/';
			text_copy(path + length + 1, sizeof path - length - 1, name);
			if (attempt_library(attempt, backend, path) == 0)
				return 0;
			if (!backend->libraries[i])
				break;
		}
		folders += length + (folders[length] == ':');
	}
	return -1;
}

static int attempt_load(struct attempt *attempt, const struct backend *backend, const char *hip_folders)
{
	attempt->driver.backend = backend;
	failure_set(&attempt->failure, "backend", "GPU_BACKEND_ABSENT");
	/* musl does load glibc's driver libraries where it finds them, and the process then dies in its first driver
	 * call (seen with libcuda 535 and HIP 5.2 both on the path of musl 1.2.3). They need glibc. */
	if (library_is_musl()) {
		text_copy(attempt->failure.missing, sizeof attempt->failure.missing, backend->libraries[0]);
		failure_hint(&attempt->failure, HINT_MUSL_IMAGE);
		return -1;
	}
	for (size_t i = 0; backend->libraries[i]; i++)
		if (attempt_library(attempt, backend, backend->libraries[i]) == 0)
			return 0;
	if (backend == &HIP_BACKEND && attempt_folders(attempt, backend, hip_folders) == 0)
		return 0;
	if (attempt->progress == PROGRESS_NONE)
		facts_library_absent(backend, &attempt->failure);
	return -1;
}

static int attempt_fails(struct attempt *attempt, int number, enum error_step step, char *const environment[])
{
	struct error_facts facts;

	error_look_up(attempt->driver.backend->errors, number, &facts);
	failure_from_call(&attempt->failure, &attempt->driver, number, step,
	                  facts.kind == ERROR_STUB ? "backend" : "device", NULL);
	if (facts.kind == ERROR_STUB)
		attempt->progress = PROGRESS_LOADED; /* it counts as no library */
	if (facts.kind == ERROR_STUB || step == STEP_DEVICE)
		return -1;
	facts_device_failed(attempt->driver.backend, attempt->origin, attempt->count > 0, &attempt->failure);
	/* A mask that hides every device shows as these (101: HIP 5). */
	if (number == 100 || number == 101)
		facts_mask(attempt->driver.backend, environment, &attempt->failure);
	return -1;
}

static int attempt_no_device(struct attempt *attempt, char *const environment[])
{
	failure_set(&attempt->failure, "device", "GPU_UNAVAILABLE");
	attempt->failure.call = driver_call_name(&attempt->driver, CALL_COUNT);
	facts_device_failed(attempt->driver.backend, attempt->origin, false, &attempt->failure);
	facts_mask(attempt->driver.backend, environment, &attempt->failure);
	return -1;
}

/* Initialises and counts. The version is asked first where the driver answers it without a device, since it explains a
 * refusal; but initialisation decides (DESIGN.md 3: a stub fails in both). */
static int attempt_start(struct attempt *attempt, char *const environment[])
{
	struct driver *driver = &attempt->driver;
	const struct backend *backend = driver->backend;
	int number, early = 0, version = -1, count = 0;

	if (backend->version_before_init)
		early = backend->version(driver, &version);
	if (!early)
		attempt->version = version;
	number = backend->init(driver);
	if (number)
		return attempt_fails(attempt, number, STEP_INIT, environment);
	attempt->progress = PROGRESS_STARTED;
	number = backend->count(driver, &count);
	if (number)
		return attempt_fails(attempt, number, STEP_INIT, environment);
	attempt->count = count;
	if (count <= 0)
		return attempt_no_device(attempt, environment);
	attempt->progress = PROGRESS_DEVICES;
	number = early ? driver_note(driver, CALL_VERSION, early) : 0;
	if (!backend->version_before_init)
		number = backend->version(driver, &version);
	if (number)
		return attempt_fails(attempt, number, STEP_DEVICE, environment);
	attempt->version = version;
	attempt->usable = true;
	return 0;
}

static int attempt_rank(const struct attempt *attempt)
{
	return 2 * (int)attempt->progress + facts_vendor_present(attempt->driver.backend);
}

static void report_backend(const struct attempt *attempt, struct report *report)
{
	report_text(report, "backend", attempt->driver.backend->name);
	report_text(report, "library_origin", attempt->origin);
	if (attempt->version >= 0)
		report_number(report, attempt->driver.backend->version_key, attempt->version);
	if (attempt->count >= 0)
		report_number(report, "device_count",
		              attempt->count < DEVICE_COUNT_MAX ? attempt->count : DEVICE_COUNT_MAX);
}

/* Tries the backends in order. Returns with the one that has devices; else reports the one that got furthest. */
static void backend_find(const struct native_options *options, char *const environment[], struct report *report,
                         struct attempt *best)
{
	static const struct backend *const BACKENDS[DEVICE_BACKENDS] = {&CUDA_BACKEND, &HIP_BACKEND};
	static const enum backend_choice CHOICES[DEVICE_BACKENDS] = {BACKEND_CUDA, BACKEND_HIP};
	bool tried = false;

	for (size_t i = 0; i < DEVICE_BACKENDS; i++) {
		struct attempt attempt = {.version = -1, .count = -1};

		if (options->backend != BACKEND_AUTO && options->backend != CHOICES[i])
			continue;
		report_stage(report, "backend");
		if (attempt_load(&attempt, BACKENDS[i], options->hip_dirs) == 0) {
			report_stage(report, "device");
			(void)attempt_start(&attempt, environment);
		}
		if (!tried || attempt_rank(&attempt) > attempt_rank(best))
			*best = attempt;
		tried = true;
		/* With devices the search is over, even when they cannot be used. */
		if (attempt.progress == PROGRESS_DEVICES)
			break;
	}
	if (best->progress >= PROGRESS_LOADED)
		report_backend(best, report);
	if (!best->usable)
		failure_report(&best->failure, &best->driver, report);
}

/* The count and the index that were asked for against what is visible. */
static void selection_check(const struct native_options *options, char *const environment[], struct report *report,
                            const struct attempt *attempt)
{
	bool counted = options->expect < 0 || options->expect == attempt->count;
	struct failure failure;

	if (counted && options->index < attempt->count)
		return;
	failure_set(&failure, "device", "DEVICE_INDEX_INVALID");
	failure.call = driver_call_name(&attempt->driver, CALL_COUNT);
	if (counted)
		failure_hint(&failure, HINT_INDEX_OUT_OF_RANGE);
	facts_mask(attempt->driver.backend, environment, &failure);
	failure_report(&failure, NULL, report);
}

/* Said unless the driver gave nothing, or what no machine has. */
static void report_bytes(struct report *report, const char *key, uint64_t bytes)
{
	if (bytes && bytes <= INT64_MAX)
		report_number(report, key, (long long)bytes);
}

static void report_device(struct report *report, int index, const struct device_facts *facts)
{
	if (index >= DEVICE_FACTS_MAX)
		return;
	report_number(report, "device", index);
	report_text(report, "device_name", facts->name);
	report_text(report, "device_arch", facts->architecture);
	report_bytes(report, "device_memory_total", facts->total_bytes);
	report_text(report, "device_uuid", facts->uuid);
}

/* With list=1, all devices but the chosen one: what one of them answers to these questions fails nobody. */
static void report_others(const struct native_options *options, struct report *report, struct driver *driver, int count)
{
	struct device_facts facts;

	for (int i = 0; options->list && i < count && i < DEVICE_FACTS_MAX; i++) {
		if (i == options->index)
			continue;
		(void)driver->backend->describe(driver, i, options->uuid, &facts);
		report_device(report, i, &facts);
	}
}

static void device_must(struct attempt *attempt, struct driver *driver, int number, enum error_step step,
                        char *const environment[], struct report *report)
{
	if (!number)
		return;
	attempt->driver.failed = driver->failed;
	(void)attempt_fails(attempt, number, step, environment);
	failure_report(&attempt->failure, driver, report);
}

void device_open(const struct native_options *options, char *const environment[], struct report *report,
                 struct driver *driver, struct device_facts *facts, int *count)
{
	struct attempt attempt = {.version = -1, .count = -1};
	uint64_t free_bytes = 0;
	int number;

	backend_find(options, environment, report, &attempt);
	selection_check(options, environment, report, &attempt);
	*driver = attempt.driver;
	*count = attempt.count;
	report_flush(report);
	report_others(options, report, driver, *count);
	number = driver->backend->describe(driver, options->index, options->uuid, facts);
	report_device(report, options->index, facts);
	report_flush(report);
	device_must(&attempt, driver, number, STEP_DEVICE, environment, report);
	device_must(&attempt, driver, driver->backend->open(driver, options->index), STEP_CONTEXT, environment, report);
	device_must(&attempt, driver, driver->backend->memory(driver, &free_bytes), STEP_DEVICE, environment, report);
	if (options->index < DEVICE_FACTS_MAX)
		report_bytes(report, "device_memory_free", free_bytes);
}
