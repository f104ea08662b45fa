/* The few string and memory functions that kd-probe needs, since it has no libc. */
#ifndef KD_NATIVE_TEXT_H
#define KD_NATIVE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* As in C: compilers emit calls to them, so they must exist under these names. */
void *memcpy(void *restrict to, const void *restrict from, size_t length);
void *memmove(void *to, const void *from, size_t length);
void *memset(void *to, int byte, size_t length);
int memcmp(const void *left, const void *right, size_t length);
size_t strlen(const char *text);

/* Copies `from` (NULL counts as "") into a field of `size` > 0 bytes, cut to fit, always terminated. Returns its
 * length. */
size_t text_copy(char *to, size_t size, const char *from);

/* The same, appending to the text already in `to`. */
size_t text_append(char *to, size_t size, const char *from);

/* Appends a number in decimal. */
size_t text_append_number(char *to, size_t size, long long number);

bool text_equal(const char *left, const char *right);
bool text_starts(const char *text, const char *prefix);
bool text_contains(const char *text, const char *part);

/* The part after the last '/', within `path`. */
const char *text_base(const char *path);

/* Reads a whole decimal number, 0 to INT_MAX. Returns false, and leaves *number, for anything else. */
bool text_number(const char *text, int *number);

#endif
