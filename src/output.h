/* The report file: reserved before anything runs, written durably once, never over anything that exists.
 *
 * Four ways to put a whole file under a name, tried in this order on the mount itself, since what a mount can do shows
 * only by trying (FIELD-NOTES 13: NFS has no O_TMPFILE, CIFS, 9p and FUSE may refuse link, object stores any rename):
 *
 *   1  O_TMPFILE, linked by /proc/self/fd/N, or by AT_EMPTY_PATH where there is no /proc (open(2), linkat(2))
 *   2  a temporary name, linked to the final one, then removed
 *   3  a temporary name, renamed with RENAME_NOREPLACE (rename(2))
 *   4  O_EXCL on the final name and one single write: the only way in which a crash can leave a short file
 *
 * In ways 1 to 3 the file is complete, has passed fsync and has shown what close has to say (NFS and FUSE report there)
 * before the name exists. The directory gets its fsync afterwards: if that fails for real, the name is taken away
 * again, for a report that a power loss may swallow is not saved. A kill inside ways 2 and 3, or inside the trial of
 * output_reserve on a mount without O_TMPFILE, can leave a `.kd-preflight-XXXXXXXX.tmp` behind, never a final name.
 *
 * The caller ignores SIGXFSZ, so that RLIMIT_FSIZE answers EFBIG. No heap; single-threaded; not to be used after fork
 * in both processes. */
#ifndef KD_OUTPUT_H
#define KD_OUTPUT_H

#include "error.h"

#include <stddef.h>

struct output {
	int dir_fd;      /* -1: no report file was asked for */
	int file_fd;     /* an O_TMPFILE file that waits for its name, or -1 */
	char name[256];  /* the final name inside dir_fd; for the directory form a fresh one */
	int fresh;       /* the directory form: on EEXIST another fresh name is taken */
	char path[4096]; /* as shown to people, control characters masked (terminal only, never in the report) */
};

void output_init(struct output *output);

/* Looks at PATH before anything runs: a file must not exist (not even as a dangling link, a device or a pipe), its
 * directory must take a new file. A directory, or a path with a trailing '/', gets a fresh name in it; with the
 * trailing
 * '/' a missing directory is made, the last one of the path only, and taken away again should the reservation fail.
 * Nothing appears under the final name yet. Returns 0 or a negative errno with *error filled (-EEXIST: the target
 * exists). Expects an output that was only initialised. */
int output_reserve(struct output *output, const char *path, struct error *error);

/* Writes `length` bytes under the reserved name: all of them or nothing, mode 0644 less the umask. Returns 0 when the
 * file is saved (fsync held, or answered that the file system has none: then, and when the last way was used, *note
 * gets a line for stderr, else note->text is empty). Returns a negative errno otherwise, with nothing of ours under the
 * name (or *error says that it could not be removed). output->name and ->path are then those really used: the directory
 * form may have taken another fresh name. To be called once. `note` and `error` may be NULL. */
int output_write(struct output *output, const char *bytes, size_t length, struct error *note, struct error *error);

/* Closes what is open. Safe on an output that was only initialised, and after a write. */
void output_close(struct output *output);

#endif
