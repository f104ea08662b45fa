#include "native_check.h"

#include "native_failure.h"
#include "native_text.h"

#include "check.h"

/* Volatile, so that no compiler computes the check at build time. */
static const volatile float CHECK_INPUT[CHECK_IN_COUNT] = {1, 2, 3, 4, 2, 0, 1, 2};

/* A quiet NaN that no step of the computation makes: memory that was never written cannot pass as a result. */
static const uint32_t CHECK_POISON = 0x7fc0dead;

struct check {
	struct driver *driver;
	const struct device_facts *facts;
	struct report *report;
	bool several;
	device_address in, out;
};

static void check_poison(float *out)
{
	for (unsigned i = 0; i < CHECK_OUT_COUNT; i++)
		memcpy(&out[i], &CHECK_POISON, sizeof CHECK_POISON);
}

static void check_prepare(float *in, float *out)
{
	for (unsigned i = 0; i < CHECK_IN_COUNT; i++)
		in[i] = CHECK_INPUT[i];
	check_poison(out);
}

static void send_product(struct report *report, const float *out)
{
	report_floats(report, "product", out + CHECK_OUT_PRODUCT, 4);
}

static void send_gradient(struct report *report, const float *out)
{
	report_floats(report, "loss", out + CHECK_OUT_LOSS, 1);
	report_floats(report, "gradient", out + CHECK_OUT_GRADIENT, 4);
}

void check_on_cpu(struct report *report)
{
	float in[CHECK_IN_COUNT], out[CHECK_OUT_COUNT];

	check_prepare(in, out);
	report_stage(report, "product");
	kd_product_host(in, out);
	report_text(report, "computed", "cpu");
	send_product(report, out);
	report_stage(report, "gradient");
	kd_gradient_host(in, out);
	send_gradient(report, out);
}

static void check_failure_report(const struct check *check, struct failure *failure)
{
	/* FIELD-NOTES 23: the first device is often the one inside the processor. */
	if (check->several && check->facts->integrated)
		failure_hint(failure, HINT_INTEGRATED_GPU);
	failure_report(failure, check->driver, check->report);
}

/* Ends the process when `number` says that the driver's last call failed. */
static void must(const struct check *check, int number, const char *during)
{
	struct failure failure;

	if (!number)
		return;
	failure_from_call(&failure, check->driver, number, STEP_WORK, check->report->stage, during);
	check_failure_report(check, &failure);
}

static void check_allocate(struct check *check)
{
	const struct backend *backend = check->driver->backend;
	float in[CHECK_IN_COUNT], out[CHECK_OUT_COUNT];

	check_prepare(in, out);
	report_stage(check->report, "allocation");
	must(check, backend->allocate(check->driver, sizeof in, &check->in), NULL);
	must(check, backend->allocate(check->driver, sizeof out, &check->out), NULL);
	must(check, backend->to_device(check->driver, check->in, in, sizeof in), NULL);
	must(check, backend->to_device(check->driver, check->out, out, sizeof out), NULL);
}

static void check_load(const struct check *check)
{
	const struct backend *backend = check->driver->backend;
	const void *image = backend->image(check->facts->architecture);
	struct failure failure;

	if (image) {
		must(check, backend->load(check->driver, image), NULL);
		return;
	}
	failure_set(&failure, check->report->stage, "RUNTIME_ERROR");
	text_copy(failure.missing, sizeof failure.missing, "code image ");
	text_append(failure.missing, sizeof failure.missing,
	            check->facts->architecture[0] ? check->facts->architecture : "(unknown architecture)");
	failure_hint(&failure, HINT_NO_KERNEL_IMAGE);
	check_failure_report(check, &failure);
}

/* Launches one kernel in the stage just announced, waits for it, and copies everything back, into memory that is
 * poisoned too: a copy that does nothing must not pass either. */
static void check_run(const struct check *check, const char *kernel, float *out)
{
	const struct backend *backend = check->driver->backend;
	const char *during = check->report->stage;
	void *function = NULL;

	check_poison(out);
	must(check, backend->function(check->driver, kernel, &function), NULL);
	must(check, backend->launch(check->driver, function, CHECK_THREADS, check->in, check->out), NULL);
	report_stage(check->report, "synchronization");
	must(check, backend->synchronize(check->driver), during);
	must(check, backend->to_host(check->driver, out, check->out, CHECK_OUT_COUNT * sizeof *out), during);
}

/* A release can bring up what an earlier launch did wrong, so it belongs to the last synchronisation. */
static void check_release(const struct check *check)
{
	const struct backend *backend = check->driver->backend;
	const char *during = "gradient";

	must(check, backend->unload(check->driver), during);
	must(check, backend->free(check->driver, check->out), during);
	must(check, backend->free(check->driver, check->in), during);
	must(check, backend->close(check->driver), during);
}

void check_on_device(struct driver *driver, const struct device_facts *facts, int index, bool several,
                     struct report *report)
{
	struct check check = {driver, facts, report, several, 0, 0};
	float out[CHECK_OUT_COUNT];

	check_allocate(&check);
	report_stage(report, "product");
	check_load(&check);
	check_run(&check, "kd_product", out);
	report_number(report, "computed", index);
	send_product(report, out);
	report_stage(report, "gradient");
	check_run(&check, "kd_gradient", out);
	send_gradient(report, out);
	report_flush(report);
	check_release(&check);
}
