/* Starts the workers that the options ask for, in their order, and watches them in one loop until each has ended or
 * been given up: signals, results, deadlines. No threads. */
#ifndef KD_SUPERVISE_H
#define KD_SUPERVISE_H

#include "error.h"
#include "interpreter.h"
#include "options.h"
#include "scratch.h"
#include "signals.h"
#include "strays.h"
#include "verdict.h"
#include "worker.h"

#include <stdbool.h>

enum { SUPERVISE_TMPDIR_MAX = PATH_MAX + 8 /* "TMPDIR=" before it */ };

struct supervision {
	/* set by the caller */
	const struct options *options;
	const struct signals *signals;
	char *const *envp;
	const char *path_variable;             /* PATH, or NULL */
	const struct interpreter *interpreter; /* found: the python worker runs */
	enum torch_rule torch_rule;
	const char *loader;   /* for the native worker, or "" */
	const char *hip_dirs; /* where the interpreter's packages may keep a HIP runtime: DIR:DIR, or "" */
	/* results */
	struct worker_slots slots;
	struct worker python, host;
	struct worker *native[RESULT_DEVICES_MAX]; /* owned */
	struct outcome native_outcomes[RESULT_DEVICES_MAX];
	int native_count;
	int interrupted_by;
	bool killed_for_memory; /* while the workers ran the kernel killed a process of our control group */
	/* the loop's own */
	struct strays strays;
	int payload_fd;
	const char *native_backend; /* static: "auto", "cuda" or "hip" */
	char **native_envp, native_tmpdir[SUPERVISE_TMPDIR_MAX];
	struct scratch python_scratch, native_scratch;
};

/* Runs the workers. Returns 0 when all that was to be said has been said (in the workers' outcomes), or a negative
 * errno with *error when no worker could be run at all. Bounded by the workers' limits; a stopping signal ends it at
 * once. Afterwards no worker runs except unkillable ones. */
int supervise_run(struct supervision *supervision, struct error *error);

/* What the verdict needs, pointing into *supervision. */
struct verdict_input supervise_input(const struct supervision *supervision);

/* Reaps what an interruption left unreaped, for at most 500 ms, and removes the scratch directories. To be called after
 * the verdict has been told. */
void supervise_finish(struct supervision *supervision);

#endif
