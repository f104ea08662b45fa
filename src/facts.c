#include "facts.h"

#include <stddef.h>
#include <string.h>

#define DIGITS  "0123456789"
#define LOWER   "abcdefghijklmnopqrstuvwxyz"
#define UPPER   "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define LETTERS LOWER UPPER

enum { VERSION_TAG_MAX = 8, VERSION_LOCAL_MAX = 32, ARCHITECTURE_MAX = 24 };

static void keep_while(char *text, const char *accepted)
{
	text[strspn(text, accepted)] = '\0';
}

static void drop_unless(char *text, bool fits)
{
	if (!fits)
		text[0] = '\0';
}

static bool consists_of(const char *text, const char *accepted)
{
	return strspn(text, accepted) == strlen(text);
}

/* PEP 440 and what PyTorch, CUDA and ROCm make of it. */
static void clean_version(char *text)
{
	size_t end = strspn(text, DIGITS ".");
	size_t tag = strspn(text + end, LOWER), local = 0;

	if (tag > 0 && tag <= VERSION_TAG_MAX)
		end += tag + strspn(text + end + tag, DIGITS);
	if (text[end] == '+' || text[end] == '-')
		local = strspn(text + end + 1, DIGITS LETTERS "._-");
	if (local > 0)
		end += 1 + (local < VERSION_LOCAL_MAX ? local : VERSION_LOCAL_MAX);
	text[strspn(text, DIGITS) > 0 ? end : 0] = '\0';
}

static bool is_architecture(const char *text, size_t length)
{
	static const char *const PREFIXES[] = {"sm_", "compute_", "gfx"};

	for (size_t i = 0; i < sizeof PREFIXES / sizeof *PREFIXES; i++) {
		size_t prefix = strlen(PREFIXES[i]);
		if (length > prefix && length <= ARCHITECTURE_MAX && strncmp(text, PREFIXES[i], prefix) == 0)
			return strspn(text + prefix, DIGITS) > 0 &&
			       strspn(text + prefix, DIGITS LOWER "-_") >= length - prefix;
	}
	return false;
}

static void clean_architectures(char *text)
{
	char *to = text;

	for (const char *from = text; *from;) {
		size_t length = strcspn(from, ",");
		bool more = from[length] == ',';
		if (is_architecture(from, length)) {
			if (to > text)
				*to++ = ',';
			memmove(to, from, length);
			to += length;
		}
		from += length + more;
	}
	*to = '\0';
}

/* "GPU-" or "MIG-" and four hexadecimal digits begin a UUID, which a report tells only where it was asked for. */
static void clean_device_name(char *text)
{
	for (char *at = text; *at; at++) {
		bool is_uuid = strncmp(at, "GPU-", 4) == 0 || strncmp(at, "MIG-", 4) == 0;
		if (is_uuid && strspn(at + 4, DIGITS "abcdefABCDEF") >= 4)
			*at = '\0';
		else if (!strchr(DIGITS LETTERS " ()[]_.,+-/", *at))
			*at = '_';
		if (!*at)
			break;
	}
	/* a slash stays only between two characters of one word, once: "RX 7900 XT/XTX" */
	char *slash = strchr(text, '/');
	bool is_path = slash && (slash == text || !strchr(DIGITS UPPER, slash[-1]) || !slash[1] ||
	                         !strchr(DIGITS UPPER, slash[1]) || strchr(slash + 1, '/'));
	for (; is_path && slash; slash = strchr(slash, '/'))
		*slash = '_';
}

static void clean_libc(char *text)
{
	static const char GLIBC[] = "glibc ";
	bool is_glibc = strncmp(text, GLIBC, strlen(GLIBC)) == 0 && consists_of(text + strlen(GLIBC), DIGITS ".");

	drop_unless(text, is_glibc || strcmp(text, "musl") == 0);
}

void facts_clean(enum fact fact, char *text)
{
	switch (fact) {
	case FACT_WORD:
		break;
	case FACT_VERSION:
		clean_version(text);
		break;
	case FACT_IDENTIFIER:
		keep_while(text, DIGITS LETTERS "_");
		break;
	case FACT_CALL:
		keep_while(text, DIGITS LETTERS "_. ");
		break;
	case FACT_MISSING:
		drop_unless(text, consists_of(text, DIGITS LETTERS "_.+- "));
		break;
	case FACT_LIBC:
		clean_libc(text);
		break;
	case FACT_ARCHITECTURE:
		drop_unless(text, is_architecture(text, strlen(text)));
		break;
	case FACT_ARCHITECTURES:
		clean_architectures(text);
		break;
	case FACT_DEVICE_NAME:
		clean_device_name(text);
		break;
	case FACT_DEVICE_UUID:
		drop_unless(text, (strncmp(text, "GPU-", 4) == 0 || strncmp(text, "MIG-", 4) == 0) &&
		                          consists_of(text + 4, DIGITS LETTERS "-/"));
		break;
	}
}
