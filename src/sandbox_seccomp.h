/* The policy of sandbox_policy.h, built by libseccomp and loaded into the calling process. */
#ifndef KD_SANDBOX_SECCOMP_H
#define KD_SANDBOX_SECCOMP_H

#include "sandbox_policy.h"

#include <stdbool.h>
#include <sys/types.h>

/* What the policy's values are in this run. */
struct sandbox_seccomp {
	unsigned kind;        /* one POLICY_* kind */
	bool writes_confined; /* Landlock is in force */
	pid_t own_pid, parent_pid;
	int exec_fd;
	const char *exec_path; /* NULL: the path of execveat is not tested (no such address, sandbox.h) */
};

/* Builds and loads the filter. Needs no_new_privs or CAP_SYS_ADMIN. Returns 0 or a negative errno, with *step naming
 * what failed (static). Allocates; what libseccomp caches stays until the exec. Single-threaded processes only. */
int sandbox_seccomp_load(const struct sandbox_seccomp *values, const char **step);

/* The same filter as BPF instructions (struct sock_filter) written to `fd`, for tests. */
int sandbox_seccomp_export(const struct sandbox_seccomp *values, int fd);

#endif
