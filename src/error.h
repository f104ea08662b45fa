/* One fixed-size error, owned by the caller: no heap on error paths. */
#ifndef KD_ERROR_H
#define KD_ERROR_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

struct error {
	int number;     /* positive errno, or 0 where no system call failed */
	char text[480]; /* one line for people, without newline: "unable to VERB OBJECT: reason" */
};

/* Fills *err (may be NULL) and returns -number (or -EINVAL when number is 0), so that a leaf can
 * `return error_set(err, errno, "unable to open %s: %s", ...)`. */
__attribute__((format(printf, 3, 4))) static inline int error_set(struct error *err, int number, const char *format,
                                                                  ...)
{
	if (err) {
		va_list args;
		va_start(args, format);
		err->number = number;
		(void)vsnprintf(err->text, sizeof err->text, format, args);
		va_end(args);
	}
	return number ? -number : -EINVAL;
}

#endif
