/* What goes to stdout, stderr and the termination log: bounded in size and in time, whoever reads it or doesn't. */
#ifndef KD_TERMINAL_H
#define KD_TERMINAL_H

#include "report.h"

#include <stdbool.h>
#include <stddef.h>

/* Takes descriptors 0, 1 and 2 where the starter left them closed, so that none of ours gets their number; reading and
 * writing them then answers EBADF as before. They close themselves at execve. */
void terminal_hold_standard_descriptors(void);

/* Writes all of it, waiting at most about two seconds for a reader that does not read. Returns 0 or a negative errno.
 */
int terminal_write(int fd, const char *bytes, size_t length);

/* One line on stderr: "kd-preflight: " and the text, cut at 1 KB. */
__attribute__((format(printf, 1, 2))) void terminal_line(const char *format, ...);

/* The human lines of a check: one per rung, the verdict with its next action, the hints. `message` (may be NULL) says
 * in words what went wrong before any worker ran; then it and the verdict are one line. */
void terminal_tell(const struct report_facts *facts, const char *message);

/* What a worker printed, marked and with control bytes replaced (--verbose). */
void terminal_show_output(const struct worker *worker, const char *name, enum language language);

/* Appends the one-line verdict to a termination log that exists and is a regular file; anything else is left alone. */
void terminal_log_termination(const char *path, const struct report_facts *facts);

#endif
