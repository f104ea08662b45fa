/* Landlock: where a worker may write, and whom it may reach, as far as the kernel offers. */
#ifndef KD_SANDBOX_LANDLOCK_H
#define KD_SANDBOX_LANDLOCK_H

#include <stdbool.h>

/* Confines the calling process for good, children and exec included. Writes remain possible to a few character devices
 * (with `gpu` also to those of GPU drivers), to the process's own /proc/self/task, and below `scratch` (may be NULL).
 * Reading and executing are left free. Needs no_new_privs or CAP_SYS_ADMIN.
 *
 * Returns the Landlock ABI in force, or 0 when there is none, with *step (static) and *number telling what failed; a
 * kernel without Landlock (ENOSYS, EOPNOTSUPP, EPERM) is not a failure and leaves them alone. A path that is missing
 * costs its own rule and no other. Leaves a descriptor of /proc/self/task open, which must stay so: the rule is bound
 * to that inode, and lost once the kernel drops it from its cache. Async-signal-unsafe (readdir allocates);
 * single-threaded. */
int sandbox_landlock(bool gpu, const char *scratch, const char **step, int *number);

#endif
