#include "result.h"

#include "facts.h"
#include "messages.h"

#include <stdlib.h>
#include <string.h>

enum { PYTHON = 1 << WORKER_PYTHON, NATIVE = 1 << WORKER_NATIVE, BOTH = PYTHON | NATIVE };

enum field {
	FIELD_STAGE,
	FIELD_WAIT,
	FIELD_FAIL,
	FIELD_DURING,
	FIELD_HINT,
	FIELD_COMPUTED,
	FIELD_VALUES,
	FIELD_DEVICE,
	FIELD_END,
	FIELD_INT,
	FIELD_LONG,
	FIELD_TEXT,
	FIELD_DEVICE_TEXT,
	FIELD_DEVICE_BYTES,
};

/* The vocabulary: who may say it, how it is read, where it goes. */
static const struct key {
	const char *name;
	int who;
	enum field field;
	size_t offset, size; /* of the member of struct result, or of struct device_facts for FIELD_DEVICE_* */
	int maximum;         /* FIELD_INT */
	enum fact fact;      /* the shape of a text */
	const char *words;   /* FACT_WORD: the only values, each between blanks */
} KEYS[] = {
#define STORED(key, who, member, fact, words)                                                                          \
	{                                                                                                              \
		key, who, FIELD_TEXT, offsetof(struct result, member), sizeof((struct result *)0)->member, 0, fact,    \
		        words                                                                                          \
	}
#define WORDS(key, who, member, words) STORED(key, who, member, FACT_WORD, words)
#define TEXT(key, who, member, fact)   STORED(key, who, member, fact, NULL)
#define INT(key, who, member, maximum)                                                                                 \
	{                                                                                                              \
		key, who, FIELD_INT, offsetof(struct result, member), 0, maximum, FACT_WORD, NULL                      \
	}
#define LONG(key, who, member)                                                                                         \
	{                                                                                                              \
		key, who, FIELD_LONG, offsetof(struct result, member), 0, 0, FACT_WORD, NULL                           \
	}
#define PLAIN(key, who, field)                                                                                         \
	{                                                                                                              \
		key, who, field, 0, 0, 0, FACT_WORD, NULL                                                              \
	}
#define DEVICE_TEXT(key, member, fact)                                                                                 \
	{                                                                                                              \
		key, NATIVE, FIELD_DEVICE_TEXT, offsetof(struct device_facts, member),                                 \
		        sizeof((struct device_facts *)0)->member, 0, fact, NULL                                        \
	}
#define DEVICE_BYTES(key, member)                                                                                      \
	{                                                                                                              \
		key, NATIVE, FIELD_DEVICE_BYTES, offsetof(struct device_facts, member), 0, 0, FACT_WORD, NULL          \
	}
        PLAIN("stage", BOTH, FIELD_STAGE),
        PLAIN("wait", PYTHON, FIELD_WAIT),
        INT("no_new_privs", BOTH, no_new_privs, 1),
        INT("seccomp", BOTH, seccomp, 1),
        INT("writes_confined", BOTH, writes_confined, 1),
        TEXT("libc", BOTH, libc, FACT_LIBC),
        PLAIN("fail", BOTH, FIELD_FAIL),
        TEXT("call", BOTH, call, FACT_CALL),
        LONG("error_number", BOTH, error_number),
        TEXT("error_name", BOTH, error_name, FACT_IDENTIFIER),
        TEXT("missing", BOTH, missing, FACT_MISSING),
        PLAIN("during", BOTH, FIELD_DURING),
        PLAIN("hint", BOTH, FIELD_HINT),
        PLAIN("computed", BOTH, FIELD_COMPUTED),
        PLAIN("product", BOTH, FIELD_VALUES),
        PLAIN("loss", BOTH, FIELD_VALUES),
        PLAIN("gradient", BOTH, FIELD_VALUES),
        PLAIN("end", BOTH, FIELD_END),
        TEXT("python_version", PYTHON, python_version, FACT_VERSION),
        TEXT("python_implementation", PYTHON, python_implementation, FACT_IDENTIFIER),
        TEXT("torch_version", PYTHON, torch_version, FACT_VERSION),
        TEXT("torch_cuda", PYTHON, torch_cuda, FACT_VERSION),
        TEXT("torch_hip", PYTHON, torch_hip, FACT_VERSION),
        WORDS("torch_backend", PYTHON, torch_backend, " cuda hip none "),
        TEXT("torch_arch_list", PYTHON, torch_arch_list, FACT_ARCHITECTURES),
        INT("torch_gpu_available", PYTHON, torch_gpu_available, 1),
        INT("torch_device_count", PYTHON, torch_device_count, 65535),
        WORDS("backend", NATIVE, backend, " cuda hip "),
        WORDS("library_origin", NATIVE, library_origin, " system compat stub wsl python-package other "),
        LONG("driver_version", NATIVE, driver_version),
        LONG("runtime_version", NATIVE, runtime_version),
        INT("device_count", NATIVE, device_count, 65535),
        PLAIN("device", NATIVE, FIELD_DEVICE),
        DEVICE_TEXT("device_name", name, FACT_DEVICE_NAME),
        DEVICE_TEXT("device_arch", architecture, FACT_ARCHITECTURE),
        DEVICE_TEXT("device_uuid", uuid, FACT_DEVICE_UUID),
        DEVICE_BYTES("device_memory_total", memory_total_bytes),
        DEVICE_BYTES("device_memory_free", memory_free_bytes),
#undef STORED
#undef WORDS
#undef TEXT
#undef INT
#undef LONG
#undef PLAIN
#undef DEVICE_TEXT
#undef DEVICE_BYTES
};

void result_init(struct result *result, enum worker_kind kind)
{
	memset(result, 0, sizeof *result);
	result->kind = kind;
	result->stage = kind == WORKER_PYTHON ? STAGE_INTERPRETER : STAGE_BACKEND;
	result->no_new_privs = result->seccomp = result->writes_confined = -1;
	result->torch_gpu_available = result->torch_device_count = -1;
	result->driver_version = result->runtime_version = -1;
	result->device_count = result->current_device = -1;
}

static bool is(const char *value, const char *word)
{
	return strcmp(value, word) == 0;
}

/* Up to 18 decimal digits, as they fit a long everywhere we build. */
static bool read_number(const char *value, long maximum, long *out)
{
	size_t length = strlen(value);

	if (length == 0 || length > 18 || strspn(value, "0123456789") != length)
		return false;
	*out = strtol(value, NULL, 10);
	return *out <= maximum;
}

static bool read_signed(const char *value, long *out)
{
	bool negative = *value == '-';

	if (!read_number(value + negative, 0x7fffffffL, out))
		return false;
	*out = negative ? -*out : *out;
	return true;
}

/* Cut and cleaned rather than refused: an odd name must not turn a working device into a failed worker. */
static bool store_text(char *target, size_t size, enum fact fact, const char *value)
{
	if (target[0] || !value[0])
		return false;
	size_t length = strlen(value) < size ? strlen(value) : size - 1;
	memcpy(target, value, length);
	target[length] = '\0';
	facts_clean(fact, target);
	return true;
}

/* " a b c " holds the value as one of its words. */
static bool has_word(const char *words, const char *value)
{
	size_t length = strlen(value);

	for (const char *at = words; length && (at = strstr(at, value)); at++)
		if (at > words && at[-1] == ' ' && at[length] == ' ')
			return !strchr(value, ' ');
	return false;
}

/* `count` groups of exactly eight lower-case hexadecimal digits, one space between. */
static bool read_bits(const char *value, uint32_t *out, size_t count)
{
	if (strlen(value) != count * 9 - 1)
		return false;
	for (size_t i = 0; i < count; i++) {
		const char *group = value + i * 9;
		if (strspn(group, "0123456789abcdef") != 8 || (i + 1 < count && group[8] != ' '))
			return false;
		out[i] = (uint32_t)strtoul(group, NULL, 16);
	}
	return true;
}

static bool store_values(struct result *result, const char *name, const char *value)
{
	if (result->computation_count == 0)
		return false;
	struct computation *last = &result->computations[result->computation_count - 1];
	bool *have = is(name, "product") ? &last->have_product
	             : is(name, "loss")  ? &last->have_loss
	                                 : &last->have_gradient;
	uint32_t *target = is(name, "product") ? last->product : is(name, "loss") ? &last->loss : last->gradient;
	if (*have || !read_bits(value, target, is(name, "loss") ? 1 : 4))
		return false;
	*have = true;
	return true;
}

static bool begin_computation(struct result *result, const char *value)
{
	long device = RESULT_CPU;

	if (result->computation_count == RESULT_DEVICES_MAX ||
	    (!is(value, "cpu") && !read_number(value, 65535, &device)))
		return false;
	result->computations[result->computation_count++] = (struct computation){.device = (int)device};
	return true;
}

static bool begin_device(struct result *result, const char *value)
{
	long device;

	if (!read_number(value, RESULT_DEVICES_MAX - 1, &device))
		return false;
	result->current_device = (int)device;
	result->devices[device].seen = true;
	return true;
}

/* What a worker may decide by itself; the native one also that its own acts found the sandbox open. Wrong numbers,
 * time and death are the supervisor's to tell. */
static bool store_failure(struct result *result, const char *value)
{
	static const struct {
		enum code code;
		int who;
	} CODES[] = {
	        {CODE_TORCH_MISSING, PYTHON}, {CODE_TORCH_IMPORT_FAILED, PYTHON}, {CODE_GPU_BACKEND_ABSENT, BOTH},
	        {CODE_GPU_UNAVAILABLE, BOTH}, {CODE_DEVICE_INDEX_INVALID, BOTH},  {CODE_OUT_OF_MEMORY, BOTH},
	        {CODE_RUNTIME_ERROR, BOTH},   {CODE_SANDBOX_FAILED, NATIVE},
	};
	enum code code;

	if (result->failed || !code_from_name(value, strlen(value), &code))
		return false;
	for (size_t i = 0; i < sizeof CODES / sizeof *CODES; i++) {
		if (CODES[i].code != code || !(CODES[i].who & 1 << result->kind))
			continue;
		result->failed = true;
		result->code = code;
		return true;
	}
	return false;
}

/* A worker climbs: it may enter the stages of its rungs, in any order for several devices, but claims no other's. */
static bool store_stage(struct result *result, const char *value)
{
	enum stage stage;

	if (!stage_from_name(value, strlen(value), &stage) || stage < STAGE_SANDBOX)
		return false;
	if (result->kind == WORKER_NATIVE && (stage == STAGE_INTERPRETER || stage == STAGE_IMPORT))
		return false;
	result->stage = stage;
	return true;
}

/* Hints about things that no worker can know. */
static bool is_supervisors(enum hint hint)
{
	static const enum hint OURS[] = {HINT_CPU_ONLY_PACKAGE, HINT_FAULT_IN_PACKAGE, HINT_KILLED_FOR_MEMORY,
	                                 HINT_NATIVE_DISAGREES, HINT_NO_LOADER,        HINT_PYTHON_IS_WRAPPER,
	                                 HINT_REPORT_NOT_SAVED, HINT_SANDBOX_OFF,      HINT_SANDBOX_WEAK};

	for (size_t i = 0; i < sizeof OURS / sizeof *OURS; i++)
		if (OURS[i] == hint)
			return true;
	return false;
}

static bool store_hint(struct result *result, const char *value)
{
	enum hint hint;

	if (!messages_hint_from_id(value, strlen(value), &hint) || is_supervisors(hint))
		return false;
	for (int i = 0; i < result->hint_count; i++)
		if (result->hints[i] == (int)hint)
			return true;
	if (result->hint_count == RESULT_HINTS_MAX)
		return false;
	result->hints[result->hint_count++] = (int)hint;
	return true;
}

static bool store_end(struct result *result, const char *value)
{
	result->ended = true;
	result->ended_pass = is(value, "pass");
	return result->ended_pass ? !result->failed : is(value, "fail") && result->failed;
}

static bool store_int(struct result *result, const struct key *key, const char *value)
{
	int *target = (int *)(void *)((char *)result + key->offset);
	long number;

	if (*target != -1 || !read_number(value, key->maximum, &number))
		return false;
	*target = (int)number;
	return true;
}

static bool store_device_fact(struct result *result, const struct key *key, const char *value)
{
	long number;

	if (result->current_device < 0)
		return false;
	char *target = (char *)&result->devices[result->current_device] + key->offset;
	if (key->field == FIELD_DEVICE_TEXT)
		return store_text(target, key->size, key->fact, value);
	if (!read_number(value, 0x7fffffffffffffffL, &number))
		return false;
	*(uint64_t *)(void *)target = (uint64_t)number;
	return true;
}

static bool store(struct result *result, const struct key *key, const char *value)
{
	switch (key->field) {
	case FIELD_STAGE:
		return store_stage(result, value);
	case FIELD_WAIT:
		result->waiting = true;
		return is(value, "turn");
	case FIELD_FAIL:
		return store_failure(result, value);
	case FIELD_DURING:
		result->have_during = true;
		return stage_from_name(value, strlen(value), &result->during) && result->during >= STAGE_ALLOCATION;
	case FIELD_HINT:
		return store_hint(result, value);
	case FIELD_COMPUTED:
		return begin_computation(result, value);
	case FIELD_VALUES:
		return store_values(result, key->name, value);
	case FIELD_DEVICE:
		return begin_device(result, value);
	case FIELD_END:
		return store_end(result, value);
	case FIELD_INT:
		return store_int(result, key, value);
	case FIELD_LONG:
		result->have_error_number |= key->offset == offsetof(struct result, error_number);
		return read_signed(value, (long *)(void *)((char *)result + key->offset));
	case FIELD_TEXT:
		return (!key->words || has_word(key->words, value)) &&
		       store_text((char *)result + key->offset, key->size, key->fact, value);
	case FIELD_DEVICE_TEXT:
	case FIELD_DEVICE_BYTES:
		return store_device_fact(result, key, value);
	}
	return false;
}

/* One line without its newline; false when it is not in the grammar. */
static bool take_line(struct result *result, char *line)
{
	char *value = strchr(line, ' ');

	if (result->ended || !value)
		return false;
	*value++ = '\0';
	for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
		if (is(line, KEYS[i].name))
			return (KEYS[i].who & 1 << result->kind) && store(result, &KEYS[i], value);
	return false;
}

static bool take_byte(struct result *result, char byte)
{
	if (++result->total > RESULT_TOTAL_MAX)
		return false;
	if (byte == '\n') {
		result->line[result->line_length] = '\0';
		result->line_length = 0;
		return take_line(result, result->line);
	}
	if (byte < ' ' || byte > '~' || result->line_length + 1 >= RESULT_LINE_MAX)
		return false;
	result->line[result->line_length++] = byte;
	return true;
}

void result_feed(struct result *result, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length && !result->malformed; i++)
		result->malformed = !take_byte(result, bytes[i]);
}
