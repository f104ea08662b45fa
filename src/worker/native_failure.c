#include "native_failure.h"

#include "native_text.h"

#include <limits.h>

void failure_set(struct failure *failure, const char *stage, const char *code)
{
	*failure = (struct failure){.stage = stage, .code = code};
}

void failure_hint(struct failure *failure, enum native_hint hint)
{
	if (hint == HINT_NONE || failure->hint_count == FAILURE_HINTS_MAX)
		return;
	for (unsigned i = 0; i < failure->hint_count; i++)
		if (failure->hints[i] == hint)
			return;
	failure->hints[failure->hint_count++] = hint;
}

void failure_from_call(struct failure *failure, const struct driver *driver, int number, enum error_step step,
                       const char *stage, const char *during)
{
	struct error_facts facts;

	error_look_up(driver->backend->errors, number, &facts);
	failure_set(failure, stage, error_code(facts.kind, step));
	failure->call = driver_call_name(driver, driver->failed);
	failure->during = during;
	failure->have_number = true;
	failure->number = number;
	text_copy(failure->name, sizeof failure->name, facts.name);
	failure_hint(failure, facts.hint);
}

void failure_report(const struct failure *failure, struct driver *driver, struct report *report)
{
	const char *name = NULL;

	report_stage(report, failure->stage);
	report_text(report, "fail", failure->code);
	report_text(report, "call", failure->call);
	if (failure->have_number)
		report_number(report, "error_number", failure->number < -INT_MAX ? -INT_MAX : failure->number);
	report_text(report, "missing", failure->missing);
	report_text(report, "during", failure->during);
	for (unsigned i = 0; i < failure->hint_count; i++)
		report_text(report, "hint", native_hint_id(failure->hints[i]));
	/* Flushed first: a driver that has just failed may crash on being asked. */
	report_flush(report);
	if (driver && failure->have_number)
		name = driver->backend->error_name(driver, failure->number);
	report_text(report, "error_name", name && name[0] ? name : failure->name);
	report_end(report, false);
}
