/* A minimal TAP producer: ok(condition, "name ...") prints one line, done() prints the plan. */
#ifndef KD_TAP_H
#define KD_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int tap_count, tap_failed;

__attribute__((format(printf, 2, 3))) static inline bool ok(bool passed, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	tap_failed += !passed;
	printf("%sok %d - ", passed ? "" : "not ", ++tap_count);
	(void)vprintf(format, args);
	putchar('\n');
	va_end(args);
	return passed;
}

static inline bool is_string(const char *got, const char *want, const char *name)
{
	bool same = got && want ? strcmp(got, want) == 0 : got == want;
	if (!same)
		printf("# got  '%s'\n# want '%s'\n", got ? got : "(null)", want ? want : "(null)");
	return ok(same, "%s", name);
}

static inline bool is_int(long long got, long long want, const char *name)
{
	if (got != want)
		printf("# got %lld, want %lld\n", got, want);
	return ok(got == want, "%s", name);
}

static inline int done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed != 0;
}

#endif
