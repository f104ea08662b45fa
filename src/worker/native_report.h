/* What kd-probe says to the supervisor: lines of the protocol in result.h. */
#ifndef KD_NATIVE_REPORT_H
#define KD_NATIVE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REPORT_BUFFER = 2048, REPORT_TEXT_MAX = 120 };

/* Lines wait in the buffer until the next stage, failure, end or flush, so that what is known is out before foreign
 * code gets the chance to hang or crash. */
struct report {
	int fd;
	const char *stage; /* last announced, or NULL */
	size_t length;
	char buffer[REPORT_BUFFER];
};

void report_init(struct report *report, int fd);

/* `KEY VALUE`; the value is cut to REPORT_TEXT_MAX bytes, and bytes that are not printable ASCII become '?'. Nothing is
 * said when the value is NULL or empty. */
void report_text(struct report *report, const char *key, const char *value);
void report_number(struct report *report, const char *key, long long number);

/* `KEY H ...`: the bits of each float32. */
void report_floats(struct report *report, const char *key, const float *values, size_t count);

/* `stage NAME`, once per change, and flushes. `name` must be a literal: it is kept. */
void report_stage(struct report *report, const char *name);

/* Writes out what waits. Ends the process (status 1) when nobody reads any more. */
void report_flush(struct report *report);

/* The last line; then the process ends with status 0. */
__attribute__((noreturn)) void report_end(struct report *report, bool pass);

#endif
