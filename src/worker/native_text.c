#include "native_text.h"

#include <limits.h>

void *memcpy(void *restrict to, const void *restrict from, size_t length)
{
	unsigned char *target = to;
	const unsigned char *source = from;

	while (length--)
		*target++ = *source++;
	return to;
}

void *memmove(void *to, const void *from, size_t length)
{
	unsigned char *target = to;
	const unsigned char *source = from;

	if (target <= source)
		return memcpy(to, from, length);
	while (length--)
		target[length] = source[length];
	return to;
}

void *memset(void *to, int byte, size_t length)
{
	unsigned char *target = to;

	while (length--)
		*target++ = (unsigned char)byte;
	return to;
}

int memcmp(const void *left, const void *right, size_t length)
{
	const unsigned char *a = left, *b = right;

	for (; length; length--, a++, b++)
		if (*a != *b)
			return *a - *b;
	return 0;
}

size_t strlen(const char *text)
{
	size_t length = 0;

	while (text[length])
		length++;
	return length;
}

size_t text_copy(char *to, size_t size, const char *from)
{
	to[0] = '\0';
	return text_append(to, size, from);
}

size_t text_append(char *to, size_t size, const char *from)
{
	size_t length = strlen(to);

	while (from && *from && length + 1 < size)
		to[length++] = *from++;
	to[length] = '\0';
	return length;
}

size_t text_append_number(char *to, size_t size, long long number)
{
	char digits[24];
	size_t at = sizeof digits - 1;
	unsigned long long rest = number < 0 ? -(unsigned long long)number : (unsigned long long)number;

	digits[at] = '\0';
	do
		digits[--at] = (char)('0' + rest % 10);
	while (rest /= 10);
	if (number < 0)
		digits[--at] = '-';
	return text_append(to, size, digits + at);
}

bool text_equal(const char *left, const char *right)
{
	while (*left && *left == *right) {
		left++;
		right++;
	}
	return *left == *right;
}

bool text_starts(const char *text, const char *prefix)
{
	while (*prefix)
		if (*text++ != *prefix++)
			return false;
	return true;
}

bool text_contains(const char *text, const char *part)
{
	for (; *text; text++)
		if (text_starts(text, part))
			return true;
	return false;
}

const char *text_base(const char *path)
{
	const char *base = path;

	for (; *path; path++)
		if (*path == '/')
			base = path + 1;
	return base;
}

bool text_number(const char *text, int *number)
{
	long long value = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		value = value * 10 + (*text - '0');
		if (value > INT_MAX)
			return false;
	}
	*number = (int)value;
	return true;
}
