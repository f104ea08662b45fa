/* The report, schema version 1 (CONTRACT.md 4, report.schema.json), built with cJSON. */
#ifndef KD_REPORT_H
#define KD_REPORT_H

#include "host.h"
#include "options.h"
#include "supervise.h"
#include "verdict.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* All that a report is made from. Everything is borrowed. */
struct report_facts {
	const struct options *options;
	const struct verdict *verdict;
	const struct supervision *supervision; /* NULL: nothing was run */
	const struct host_facts *host;         /* NULL: not asked */
	time_t started_at;
	int64_t duration_ms;
	bool workload_given, workload_starting;
};

/* The report as text, indented or on one line, with a final newline. malloc'd, the caller frees; NULL without
 * memory. */
char *report_text(const struct report_facts *facts, bool indented);

/* The one-line verdict for a termination log, at most 1,024 bytes with its newline, in `line`. Returns its length. */
size_t report_termination_line(const struct report_facts *facts, char *line, size_t size);

#endif
