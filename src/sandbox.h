/* The sandbox of a worker: limits, no_new_privs, Landlock, seccomp; entered by the forked child just before it
 * becomes the worker. The supervisor itself is never sandboxed, since it will exec the workload. */
#ifndef KD_SANDBOX_H
#define KD_SANDBOX_H

#include "error.h"
#include "result.h"

#include <stdbool.h>

enum sandbox_mode { SANDBOX_REQUIRE, SANDBOX_BEST_EFFORT, SANDBOX_OFF };

struct sandbox_request {
	enum sandbox_mode mode;
	enum worker_kind kind;
	bool gpu;    /* the worker may load a GPU driver: character devices and the driver's socket are allowed */
	int exec_fd; /* the one descriptor that execveat may start: K, opened close-on-exec by the caller; RLIMIT_NOFILE
	                becomes K, so every descriptor that the worker is to keep must be below it */
	const char *scratch; /* the private directory the worker may write below, or NULL */
};

/* What was put up, as the kernel answered; written by the child, reported through its result pipe. */
struct sandbox_state {
	bool no_new_privs, seccomp;
	int landlock_abi;   /* 0: none */
	int failed_errno;   /* of the first step that failed, else 0 */
	const char *failed; /* static: "prctl(PR_SET_NO_NEW_PRIVS)", "seccomp", "landlock_restrict_self" ... or NULL */
	const char *exec_path; /* the empty string, at the only address that execveat may be given; never NULL */
	bool exec_sealed;      /* that address is in force: without it an absolute path would start a second program */
};

/* Puts the sandbox up in the calling process (single-threaded, freshly forked). Returns 0, or a negative errno when
 * `mode` is SANDBOX_REQUIRE and no_new_privs or seccomp could not be had; never because of Landlock alone. Fills *state
 * in every case. Allocates (readdir) and leaves at most one descriptor open, below exec_fd (/proc/self/task, which
 * must stay open: DESIGN.md 3). */
int sandbox_enter(const struct sandbox_request *request, struct sandbox_state *state, struct error *error);

/* The one exec that the filter lets through: execveat(exec_fd, state->exec_path, ..., AT_EMPTY_PATH), in or out of a
 * sandbox. Returns only on failure, a negative errno. */
int sandbox_exec(int exec_fd, const struct sandbox_state *state, char *const argv[], char *const envp[]);

#endif
