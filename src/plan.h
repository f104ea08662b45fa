/* What a run will check: which interpreter, whether PyTorch counts, which dynamic loader. Decided before anything runs.
 */
#ifndef KD_PLAN_H
#define KD_PLAN_H

#include "codes.h"
#include "error.h"
#include "interpreter.h"
#include "options.h"
#include "verdict.h"
#include "workload.h"

#include <limits.h>
#include <stdbool.h>

struct plan {
	struct interpreter interpreter; /* found: the python worker runs it */
	enum torch_rule torch_rule;
	char loader[PATH_MAX];   /* of the native worker; "": this image has none */
	char hip_dirs[PATH_MAX]; /* DIR:DIR, see supervise.h */
};

/* `workload` is NULL without PROGRAM. Returns 0, or -1 with *error when an interpreter is needed and cannot be used
 * (INTERPRETER_FAILED; plan->interpreter.is_wrapper tells why). */
int plan_make(struct plan *plan, const struct options *options, const struct workload *workload,
              const char *path_variable, struct error *error);

#endif
