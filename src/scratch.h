/* The private directory of a worker: the only place where it may write, removed afterwards. */
#ifndef KD_SCRATCH_H
#define KD_SCRATCH_H

#include <limits.h>

struct scratch {
	char path[PATH_MAX]; /* "": none */
};

/* Makes a fresh directory (mode 0700) below the first place where Python's tempfile would have found one: TMPDIR, TEMP,
 * TMP, /tmp, /var/tmp, /usr/tmp, the working directory. Where none can take one the path stays "", as the workload
 * would have had no temporary directory either: that is no failure. */
void scratch_create(struct scratch *scratch, char *const envp[]);

/* Removes it (then the path is "") with what the worker left in it, following no link, bounded in depth and number of
 * entries. */
void scratch_remove(struct scratch *scratch);

#endif
