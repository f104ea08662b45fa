/* One failure of kd-probe, kept until it is known to be the one to report. */
#ifndef KD_NATIVE_FAILURE_H
#define KD_NATIVE_FAILURE_H

#include "native_driver.h"
#include "native_hints.h"
#include "native_report.h"

#include <stdbool.h>

enum { FAILURE_HINTS_MAX = 8 /* RESULT_HINTS_MAX */ };

struct failure {
	const char *stage, *code; /* words of CONTRACT.md 3; literals */
	const char *call;         /* the function that failed, or NULL; static */
	const char *during;       /* the stage whose work was pending, or NULL; literal */
	bool have_number;
	int number;
	char name[64];    /* the driver's own word for the number, or "" */
	char missing[96]; /* library, symbol, code image or group that is not there, or "" */
	enum native_hint hints[FAILURE_HINTS_MAX];
	unsigned hint_count;
};

/* Starts a failure without a driver's number. */
void failure_set(struct failure *failure, const char *stage, const char *code);

/* Adds a hint, once; what does not fit is dropped. */
void failure_hint(struct failure *failure, enum native_hint hint);

/* The failure of the driver's last call: code, name and first hint follow from the number and the step. */
void failure_from_call(struct failure *failure, const struct driver *driver, int number, enum error_step step,
                       const char *stage, const char *during);

/* Says everything, asks `driver` (may be NULL) for its own name of the number, and ends the process. */
__attribute__((noreturn)) void failure_report(const struct failure *failure, struct driver *driver,
                                              struct report *report);

#endif
