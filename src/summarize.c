#include "summarize.h"

#include "codes.h"

#include <cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	VALUE_SIZE = 64,
	VALUES_MAX = 256, /* different values told apart in one field; the rest of a wild folder shares the last */
	SHOWN_SIZE = 4 * 256,
};

/* What reports are compared by. */
enum field { FIELD_CODE, FIELD_STAGE, FIELD_DRIVER, FIELD_DEVICES, FIELD_TORCH, FIELD_COUNT };

static const struct {
	const char *key, *label;
} FIELDS[FIELD_COUNT] = {
        [FIELD_CODE] = {"code", "code"},
        [FIELD_STAGE] = {"stage", "stage"},
        [FIELD_DRIVER] = {"driver_version", "driver"},
        [FIELD_DEVICES] = {"visible_device_count", "devices"},
        [FIELD_TORCH] = {"pytorch_version", "PyTorch"},
};

struct values {
	int count, usual;
	struct {
		char text[VALUE_SIZE];
		unsigned reports;
	} list[VALUES_MAX];
};

/* A file: a report, or with `problem` (static) none. */
struct entry {
	char *name;
	const char *problem;
	uint16_t value[FIELD_COUNT];
};

struct summary {
	struct entry *entries;
	size_t count, room, reports, damaged;
	struct values fields[FIELD_COUNT];
	unsigned counts[CODE_COUNT][STAGE_COUNT];
	bool failed;
	enum code worst_code;
	enum stage worst_stage;
	int exit_status;
	char *buffer; /* SUMMARIZE_FILE_MAX + 2 */
};

/* What one report says. */
struct facts {
	enum code code;
	enum stage stage;
	int exit_status;
	char text[FIELD_COUNT][VALUE_SIZE];
};

/* ---- foreign text ---- */

/* Length of the UTF-8 sequence at `text`, its value in *point; 0 where there is none (RFC 3629: no surrogates, nothing
 * above U+10FFFF, shortest form only). */
static size_t decode(const unsigned char *text, uint32_t *point)
{
	static const uint32_t LEAST[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = text[0] < 0x80 ? 1 : text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : text[0] >= 0xc0 ? 2 : 0;
	if (length <= 1) {
		*point = text[0];
		return length;
	}
	*point = text[0] & (0xffu >> (length + 1));
	for (size_t i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		*point = *point << 6 | (text[i] & 0x3f);
	}
	bool valid = text[0] < 0xf8 && *point >= LEAST[length] && *point <= 0x10ffff && *point >> 11 != 0x1b;
	return valid ? length : 0;
}

/* Control characters of both sets (C1 are commands to a terminal too), and those that reorder what is shown. */
static bool is_harmful(uint32_t point)
{
	return point < 0x20 || (point >= 0x7f && point < 0xa0) || (point >= 0x2028 && point <= 0x202e) ||
	       (point >= 0x2066 && point <= 0x2069) || point == 0x200e || point == 0x200f || point == 0x61c ||
	       point == 0xfeff;
}

/* Copies `text`, cut to what fits in whole characters. Returns `shown`. */
static const char *clean(char *shown, size_t size, const char *text)
{
	size_t used = 0;
	for (const unsigned char *at = (const unsigned char *)text; *at;) {
		uint32_t point = 0;
		size_t length = decode(at, &point);
		bool masked = length == 0 || is_harmful(point);
		size_t needed = masked ? 1 : length;
		if (used + needed >= size)
			break;
		memcpy(shown + used, masked ? (const unsigned char *)"?" : at, needed);
		used += needed;
		at += length ? length : 1;
	}
	shown[used] = '\0';
	return shown;
}

/* ---- one report ---- */

static const cJSON *member(const cJSON *object, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* A text that may be null or, with its object, missing. False for another type. */
static bool take_text(const cJSON *object, const char *key, char *text)
{
	const cJSON *item = member(object, key);
	const char *value = item ? cJSON_GetStringValue(item) : NULL;
	if (item && !value && !cJSON_IsNull(item))
		return false;
	(void)clean(text, VALUE_SIZE, value ? value : "none");
	return true;
}

/* Likewise for a whole number; what is null leaves the text as it is. */
static bool take_count(const cJSON *object, const char *key, char *text)
{
	const cJSON *item = member(object, key);
	if (!item || cJSON_IsNull(item))
		return true;
	double number = cJSON_IsNumber(item) ? item->valuedouble : -1;
	if (!(number >= 0 && number <= 65536) || number != (double)(int)number)
		return false;
	(void)snprintf(text, VALUE_SIZE, "%d", (int)number);
	return true;
}

static bool take_verdict(const cJSON *report, struct facts *facts)
{
	const cJSON *status = member(report, "status"), *code = member(report, "code");
	const cJSON *stage = member(report, "stage"), *number = member(report, "exit_code");
	if (!cJSON_IsString(status) || !cJSON_IsString(code) || !cJSON_IsString(stage) || !cJSON_IsNumber(number))
		return false;
	if (!code_from_name(code->valuestring, strlen(code->valuestring), &facts->code) ||
	    !stage_from_name(stage->valuestring, strlen(stage->valuestring), &facts->stage))
		return false;
	bool passed = code_is_pass(facts->code);
	if (strcmp(status->valuestring, passed ? "passed" : "failed") != 0 ||
	    (passed && facts->stage != STAGE_COMPLETE))
		return false;
	/* 128 and the signal's number, which only the report knows. */
	bool interrupted = facts->code == CODE_INTERRUPTED;
	double exit_status = code_exit_status(facts->code, 0);
	if (interrupted ? !(number->valuedouble > 128 && number->valuedouble <= 255)
	                : number->valuedouble < exit_status || number->valuedouble > exit_status)
		return false;
	facts->exit_status = (int)number->valuedouble;
	return true;
}

/* NULL, or what is wrong with the report. */
static const char *take_facts(const cJSON *report, struct facts *facts)
{
	const cJSON *version = member(report, "schema_version"), *driver = member(report, "driver");
	const cJSON *pytorch = member(report, "pytorch");
	if (!cJSON_IsObject(report) || !cJSON_IsNumber(version))
		return "not a report";
	if (version->valuedouble < 1 || version->valuedouble > 1)
		return "a schema version that this program does not know";
	(void)snprintf(facts->text[FIELD_DEVICES], VALUE_SIZE, "none");
	bool sound = take_verdict(report, facts) && take_text(driver, "driver_version", facts->text[FIELD_DRIVER]) &&
	             take_text(pytorch, "version", facts->text[FIELD_TORCH]) &&
	             take_count(pytorch, "visible_device_count", facts->text[FIELD_DEVICES]) &&
	             take_count(driver, "visible_device_count", facts->text[FIELD_DEVICES]);
	if (!sound)
		return "a report whose values do not fit together";
	(void)snprintf(facts->text[FIELD_CODE], VALUE_SIZE, "%s", code_name(facts->code));
	(void)snprintf(facts->text[FIELD_STAGE], VALUE_SIZE, "%s", stage_name(facts->stage));
	return NULL;
}

static const char *parse(const char *text, size_t length, struct facts *facts)
{
	/* cJSON ends a string at an escaped NUL, and would take what stands before it for the whole. */
	if (memchr(text, '\0', length) || strstr(text, "\\u0000"))
		return "not JSON of a report";
	cJSON *report = cJSON_ParseWithLengthOpts(text, length + 1, NULL, true);
	if (!report)
		return "not JSON";
	const char *problem = take_facts(report, facts);
	cJSON_Delete(report);
	return problem;
}

/* Fills buffer with the file and a NUL. Opened only after it has been seen to be a regular file: opening a device can
 * act, opening a pipe can wait. Returns NULL or the problem. */
static const char *read_file(int dir_fd, const char *name, char *buffer, size_t *length)
{
	struct stat found;
	if (fstatat(dir_fd, name, &found, AT_SYMLINK_NOFOLLOW) < 0)
		return "unreadable";
	if (!S_ISREG(found.st_mode))
		return "not a regular file";
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return "unreadable";
	*length = 0;
	ssize_t got = 1;
	while (got > 0 && *length <= SUMMARIZE_FILE_MAX) {
		got = read(fd, buffer + *length, SUMMARIZE_FILE_MAX + 1 - *length);
		if (got > 0)
			*length += (size_t)got;
		else if (got < 0 && errno == EINTR)
			got = 1;
	}
	(void)close(fd);
	buffer[*length] = '\0';
	if (got < 0)
		return "unreadable";
	return *length > SUMMARIZE_FILE_MAX ? "larger than 256 KiB" : NULL;
}

/* ---- many ---- */

static uint16_t intern(struct values *values, const char *text)
{
	int i = 0;
	while (i < values->count && strcmp(values->list[i].text, text) != 0)
		i++;
	if (i == VALUES_MAX - 1)
		text = "(others)";
	if (i == VALUES_MAX)
		i = VALUES_MAX - 1;
	if (i == values->count) {
		(void)snprintf(values->list[i].text, VALUE_SIZE, "%s", text);
		values->count++;
	}
	values->list[i].reports++;
	return (uint16_t)i;
}

static void count_report(struct summary *summary, struct entry *entry, const struct facts *facts)
{
	for (int field = 0; field < FIELD_COUNT; field++)
		entry->value[field] = intern(&summary->fields[field], facts->text[field]);
	summary->reports++;
	summary->counts[facts->code][facts->stage]++;
	if (code_is_pass(facts->code))
		return;
	bool worse = facts->stage < summary->worst_stage ||
	             (facts->stage == summary->worst_stage && facts->code < summary->worst_code);
	if (!summary->failed || worse) {
		summary->failed = true;
		summary->worst_code = facts->code;
		summary->worst_stage = facts->stage;
		summary->exit_status = facts->exit_status;
	}
}

static void read_reports(struct summary *summary, int dir_fd, FILE *err)
{
	char shown[SHOWN_SIZE];
	for (size_t i = 0; i < summary->count; i++) {
		struct entry *entry = &summary->entries[i];
		struct facts facts = {0};
		size_t length;
		entry->problem = read_file(dir_fd, entry->name, summary->buffer, &length);
		if (!entry->problem)
			entry->problem = parse(summary->buffer, length, &facts);
		if (!entry->problem) {
			count_report(summary, entry, &facts);
			continue;
		}
		summary->damaged++;
		(void)fprintf(err, "kd-preflight: skipped %s: %s\n", clean(shown, sizeof shown, entry->name),
		              entry->problem);
	}
}

static void find_usual(struct summary *summary)
{
	for (int field = 0; field < FIELD_COUNT; field++) {
		struct values *values = &summary->fields[field];
		for (int i = 1; i < values->count; i++)
			if (values->list[i].reports > values->list[values->usual].reports)
				values->usual = i;
	}
}

static bool is_report_name(const char *name)
{
	size_t length = strlen(name);
	return name[0] != '.' && length > 5 && strcmp(name + length - 5, ".json") == 0;
}

static bool add_name(struct summary *summary, const char *name)
{
	if (summary->count == summary->room) {
		size_t room = summary->room ? 2 * summary->room : 256;
		struct entry *entries = realloc(summary->entries, room * sizeof *entries);
		if (!entries)
			return false;
		summary->entries = entries;
		summary->room = room;
	}
	char *copy = strdup(name);
	if (!copy)
		return false;
	summary->entries[summary->count++] = (struct entry){.name = copy};
	return true;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

/* 0, or a positive errno. In order of their names, so that the same folder gives the same table. */
static int list_names(struct summary *summary, DIR *stream)
{
	for (;;) {
		errno = 0;
		const struct dirent *found = readdir(stream);
		if (!found && errno)
			return errno;
		if (!found)
			break;
		if (is_report_name(found->d_name) && !add_name(summary, found->d_name))
			return ENOMEM;
	}
	if (summary->count)
		qsort(summary->entries, summary->count, sizeof *summary->entries, compare_names);
	return 0;
}

/* ---- telling ---- */

static const char *text_of(const struct summary *summary, const struct entry *entry, int field)
{
	return summary->fields[field].list[entry->value[field]].text;
}

static const char *usual_text(const struct summary *summary, int field)
{
	return summary->fields[field].list[summary->fields[field].usual].text;
}

static bool differs(const struct summary *summary, const struct entry *entry, int field)
{
	return entry->value[field] != summary->fields[field].usual;
}

static bool is_odd(const struct summary *summary, const struct entry *entry)
{
	bool odd = false;
	for (int field = 0; field < FIELD_COUNT && !entry->problem; field++)
		odd |= differs(summary, entry, field);
	return odd;
}

static void tell_odd_one(const struct summary *summary, const struct entry *entry, FILE *out)
{
	char shown[SHOWN_SIZE];
	const char *separator = ":";
	(void)fprintf(out, "  %s", clean(shown, sizeof shown, entry->name));
	for (int field = 0; field < FIELD_COUNT; field++) {
		if (!differs(summary, entry, field))
			continue;
		(void)fprintf(out, "%s %s %s", separator, FIELDS[field].label, text_of(summary, entry, field));
		separator = ",";
	}
	(void)fputc('\n', out);
}

static void tell_text(const struct summary *summary, FILE *out)
{
	size_t odd = 0;
	(void)fprintf(out, "%zu reports, %zu files skipped\n\n%8s  %-23s %s\n", summary->reports, summary->damaged,
	              "reports", "code", "stage");
	for (int code = 0; code < CODE_COUNT; code++)
		for (int stage = 0; stage < STAGE_COUNT; stage++)
			if (summary->counts[code][stage])
				(void)fprintf(out, "%8u  %-23s %s\n", summary->counts[code][stage],
				              code_name((enum code)code), stage_name((enum stage)stage));
	(void)fputs("\nusual:", out);
	for (int field = 0; field < FIELD_COUNT; field++)
		(void)fprintf(out, "%s %s %s", field ? "," : "", FIELDS[field].label, usual_text(summary, field));
	for (size_t i = 0; i < summary->count; i++)
		odd += is_odd(summary, &summary->entries[i]);
	(void)fprintf(out, "\nodd ones out: %zu\n", odd);
	for (size_t i = 0; i < summary->count; i++)
		if (is_odd(summary, &summary->entries[i]))
			tell_odd_one(summary, &summary->entries[i], out);
	if (summary->failed)
		(void)fprintf(out, "\nworst: %s at %s, exit status %d\n", code_name(summary->worst_code),
		              stage_name(summary->worst_stage), summary->exit_status);
	else
		(void)fputs("\nall passed\n", out);
}

/* A number where it is one, null where a report has none. */
static void add_value(cJSON *object, int field, const char *text)
{
	if (strcmp(text, "none") == 0)
		(void)cJSON_AddNullToObject(object, FIELDS[field].key);
	else if (field == FIELD_DEVICES && text[0] != '(')
		(void)cJSON_AddNumberToObject(object, FIELDS[field].key, (double)strtol(text, NULL, 10));
	else
		(void)cJSON_AddStringToObject(object, FIELDS[field].key, text);
}

static cJSON *add_file(cJSON *list, const struct entry *entry)
{
	char shown[SHOWN_SIZE];
	cJSON *object = cJSON_CreateObject();
	(void)cJSON_AddStringToObject(object, "file", clean(shown, sizeof shown, entry->name));
	if (!cJSON_AddItemToArray(list, object)) {
		cJSON_Delete(object);
		return NULL;
	}
	return object;
}

static void add_counts(const struct summary *summary, cJSON *list)
{
	for (int code = 0; code < CODE_COUNT; code++) {
		for (int stage = 0; stage < STAGE_COUNT; stage++) {
			if (!summary->counts[code][stage])
				continue;
			cJSON *row = cJSON_CreateObject();
			(void)cJSON_AddStringToObject(row, "code", code_name((enum code)code));
			(void)cJSON_AddStringToObject(row, "stage", stage_name((enum stage)stage));
			(void)cJSON_AddNumberToObject(row, "reports", summary->counts[code][stage]);
			(void)cJSON_AddItemToArray(list, row);
		}
	}
}

static void add_files(const struct summary *summary, cJSON *odd, cJSON *skipped)
{
	for (size_t i = 0; i < summary->count; i++) {
		const struct entry *entry = &summary->entries[i];
		if (entry->problem) {
			(void)cJSON_AddStringToObject(add_file(skipped, entry), "problem", entry->problem);
			continue;
		}
		if (!is_odd(summary, entry))
			continue;
		cJSON *differences = cJSON_AddObjectToObject(add_file(odd, entry), "differs");
		for (int field = 0; field < FIELD_COUNT; field++)
			if (differs(summary, entry, field))
				add_value(differences, field, text_of(summary, entry, field));
	}
}

static void tell_json(const struct summary *summary, FILE *out)
{
	cJSON *document = cJSON_CreateObject();
	(void)cJSON_AddNumberToObject(document, "schema_version", 1);
	(void)cJSON_AddNumberToObject(document, "reports", (double)summary->reports);
	(void)cJSON_AddNumberToObject(document, "exit_code", summary->exit_status);
	cJSON *worst =
	        summary->failed ? cJSON_AddObjectToObject(document, "worst") : cJSON_AddNullToObject(document, "worst");
	if (summary->failed) {
		(void)cJSON_AddStringToObject(worst, "code", code_name(summary->worst_code));
		(void)cJSON_AddStringToObject(worst, "stage", stage_name(summary->worst_stage));
	}
	add_counts(summary, cJSON_AddArrayToObject(document, "counts"));
	cJSON *usual = cJSON_AddObjectToObject(document, "usual");
	for (int field = 0; field < FIELD_COUNT; field++)
		add_value(usual, field, usual_text(summary, field));
	cJSON *odd = cJSON_AddArrayToObject(document, "odd");
	add_files(summary, odd, cJSON_AddArrayToObject(document, "skipped"));
	char *text = cJSON_Print(document);
	cJSON_Delete(document);
	(void)fprintf(out, "%s\n", text ? text : "null");
	free(text);
}

/* ---- the run ---- */

static int fail(FILE *err, const char *dir, int number)
{
	char shown[SHOWN_SIZE];
	(void)fprintf(err, "kd-preflight: unable to summarize %s: %s; name a folder of reports\n",
	              clean(shown, sizeof shown, dir), number ? strerror(number) : "it holds no report");
	return code_exit_status(CODE_USAGE_ERROR, 0);
}

static int summarize(struct summary *summary, DIR *stream, const char *dir, int json, FILE *out, FILE *err)
{
	int number = list_names(summary, stream);
	if (number)
		return fail(err, dir, number);
	read_reports(summary, dirfd(stream), err);
	if (summary->reports == 0)
		return fail(err, dir, 0);
	find_usual(summary);
	if (json)
		tell_json(summary, out);
	else
		tell_text(summary, out);
	if ((fflush(out) != 0 || ferror(out)) && summary->exit_status == 0)
		return code_exit_status(CODE_OUTPUT_WRITE_FAILED, 0);
	return summary->exit_status;
}

int summarize_run(const char *dir, int json, FILE *out, FILE *err)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		int number = errno;
		if (fd >= 0)
			(void)close(fd);
		return fail(err, dir, number);
	}
	struct summary *summary = calloc(1, sizeof *summary);
	if (summary)
		summary->buffer = malloc(SUMMARIZE_FILE_MAX + 2);
	int status =
	        summary && summary->buffer ? summarize(summary, stream, dir, json, out, err) : fail(err, dir, ENOMEM);
	(void)closedir(stream);
	for (size_t i = 0; summary && i < summary->count; i++)
		free(summary->entries[i].name);
	if (summary) {
		free(summary->entries);
		free(summary->buffer);
	}
	free(summary);
	return status;
}
