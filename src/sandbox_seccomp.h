/* The filters of a worker, put into the calling process. They were made of the policy when kd-preflight was built
 * (sandbox_generate.c); what differs from run to run is filled in here. */
#ifndef KD_SANDBOX_SECCOMP_H
#define KD_SANDBOX_SECCOMP_H

#include "sandbox_policy.h"

#include <linux/filter.h>
#include <stdbool.h>
#include <sys/types.h>

/* What the policy's values are in this run. */
struct sandbox_seccomp {
	bool clone3_refused; /* an outer filter answers EPERM to clone3; so must ours, or the workload meets what we did
	                        not */
	unsigned kind;       /* one POLICY_* kind */
	bool writes_confined; /* Landlock is in force */
	pid_t own_pid, parent_pid;
	int exec_fd;
	const char *exec_path; /* NULL: the path of execveat is not tested (no such address, sandbox.h) */
};

enum { SANDBOX_PROGRAM_MAX = 768 }; /* instructions; the build fails beyond */

struct sandbox_program {
	unsigned short length;
	struct sock_filter code[SANDBOX_PROGRAM_MAX];
};

/* The two filters, in the order in which they are loaded: the boundary, and the answers (sandbox_compile.h). */
enum sandbox_filter { SANDBOX_BOUNDARY, SANDBOX_ANSWERS, SANDBOX_FILTERS };

/* A word that is known at run time only, in the constant of one instruction: what the generated table is made of. */
enum sandbox_word { WORD_OWN_PID, WORD_PARENT_PID, WORD_EXEC_FD, WORD_PATH_LOW, WORD_PATH_HIGH, SANDBOX_WORDS };

struct sandbox_blank {
	uint16_t at; /* instruction of its program */
	uint16_t word;
};

/* Where a program and its blanks are in the generated arrays. */
struct sandbox_extent {
	uint16_t code, length, blank, blanks;
};

/* One filter with its blanks filled in. Pure, async-signal-safe. */
void sandbox_seccomp_fill(enum sandbox_filter which, const struct sandbox_seccomp *values,
                          struct sandbox_program *program);

/* Loads both filters. Needs no_new_privs or CAP_SYS_ADMIN. Returns 0 or a negative errno, with *step naming what failed
 * (static). Async-signal-safe. Single-threaded processes only. */
int sandbox_seccomp_load(const struct sandbox_seccomp *values, const char **step);

#endif
