#include "native.h"

#include "native_check.h"
#include "native_device.h"
#include "native_failure.h"
#include "native_library.h"
#include "native_options.h"
#include "native_report.h"
#include "native_sandbox.h"

enum { NATIVE_USAGE = 2 };

/* Nothing foreign has run yet: with the sandbox required, nothing will. */
static void sandbox_stage(const struct native_options *options, struct report *report)
{
	struct failure failure;
	bool holds;

	report_stage(report, "sandbox");
	holds = sandbox_measure(options, report);
	if (holds || options->sandbox != SANDBOX_EXPECT_REQUIRE)
		return;
	failure_set(&failure, "sandbox", "SANDBOX_FAILED");
	failure_report(&failure, NULL, report);
}

/* Without a loader there is no driver to ask; the CPU can still be checked. */
static void loader_stage(const struct native_options *options, bool loaded, struct report *report)
{
	if (loaded) {
		char libc[32];
		library_libc(libc, sizeof libc);
		report_text(report, "libc", libc);
	} else if (options->gpu) {
		struct failure failure;
		failure_set(&failure, "backend", "GPU_BACKEND_ABSENT");
		failure_hint(&failure, HINT_NO_LOADER);
		failure_report(&failure, NULL, report);
	}
}

int native_main(int argc, char *argv[], char *environment[], bool loaded)
{
	struct native_options options;
	struct report report;

	if (!native_options_read(argc, argv, &options))
		return NATIVE_USAGE;
	report_init(&report, options.result_fd);
	sandbox_stage(&options, &report);
	loader_stage(&options, loaded, &report);
	if (options.gpu) {
		struct driver driver;
		struct device_facts facts;
		int count;

		device_open(&options, environment, &report, &driver, &facts, &count);
		check_on_device(&driver, &facts, options.index, count > 1, &report);
	} else {
		check_on_cpu(&report);
	}
	report_stage(&report, "complete");
	report_end(&report, true);
}
