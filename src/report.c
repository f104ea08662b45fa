#include "report.h"

#include "signals.h"

#include <cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

enum { TERMINATION_LINE_MAX = 1024 };

/* cJSON leaves out what it has no memory for, and says so nowhere: a report with a hole must not pass for one. */
static bool memory_ran_out;

static void *allocate(size_t size)
{
	void *memory = malloc(size);

	memory_ran_out |= !memory;
	return memory;
}

static void add_text(cJSON *object, const char *key, const char *text)
{
	if (text && *text)
		(void)cJSON_AddStringToObject(object, key, text);
	else
		(void)cJSON_AddNullToObject(object, key);
}

static void add_number_or_null(cJSON *object, const char *key, double number, bool known)
{
	if (known)
		(void)cJSON_AddNumberToObject(object, key, number);
	else
		(void)cJSON_AddNullToObject(object, key);
}

/* -1: not told */
static void add_tristate(cJSON *object, const char *key, int value)
{
	if (value < 0)
		(void)cJSON_AddNullToObject(object, key);
	else
		(void)cJSON_AddBoolToObject(object, key, value);
}

static void add_hints(cJSON *report, const struct report_facts *facts)
{
	cJSON *hints = cJSON_AddArrayToObject(report, "hints");

	for (int i = 0; i < facts->verdict->hint_count; i++) {
		cJSON *hint = cJSON_CreateObject();
		add_text(hint, "id", messages_hint_id(facts->verdict->hints[i]));
		add_text(hint, "text", messages_hint_text(facts->verdict->hints[i], facts->options->language));
		(void)cJSON_AddItemToArray(hints, hint);
	}
}

static void add_if_text(cJSON *object, const char *key, const char *text)
{
	if (text && *text)
		(void)cJSON_AddStringToObject(object, key, text);
}

/* Only what is known, in the order of the schema; null when nothing is. */
static void add_detail(cJSON *report, const struct detail *detail)
{
	cJSON *object = cJSON_CreateObject();
	char unknown[16];

	if (detail->have) {
		add_if_text(object, "call", detail->call);
		if (detail->have_error_number)
			(void)cJSON_AddNumberToObject(object, "error_number", (double)detail->error_number);
		add_if_text(object, "error_name", detail->error_name);
		if (detail->signal)
			add_if_text(object, "signal", signals_name(detail->signal, unknown));
		add_if_text(object, "missing", detail->missing);
		add_if_text(object, "expected", detail->expected);
		add_if_text(object, "observed", detail->observed);
		if (detail->have_during)
			add_if_text(object, "during", stage_name(detail->during));
		if (detail->unkillable)
			(void)cJSON_AddTrueToObject(object, "unkillable");
		if (detail->elapsed_ms >= 0)
			(void)cJSON_AddNumberToObject(object, "elapsed_ms", (double)detail->elapsed_ms);
	}
	if (cJSON_GetArraySize(object) == 0) {
		cJSON_Delete(object);
		object = cJSON_CreateNull();
	}
	(void)cJSON_AddItemToObject(report, "detail", object);
}

static void add_requested(cJSON *report, const struct options *options)
{
	cJSON *object = cJSON_AddObjectToObject(report, "requested");

	add_text(object, "device", options_device_word(options->device));
	if (options->device_index == OPTIONS_INDEX_ALL)
		add_text(object, "device_index", "all");
	else
		(void)cJSON_AddNumberToObject(object, "device_index", options->device_index);
	add_number_or_null(object, "expect_devices", options->expect_devices,
	                   options->expect_devices != OPTIONS_EXPECT_OFF);
	(void)cJSON_AddNumberToObject(object, "timeout_s", options->timeout_s);
	add_text(object, "framework", options_framework_word(options->framework));
	add_text(object, "sandbox", options_sandbox_word(options->sandbox));
}

/* The first native worker: it lists the devices. NULL when none ran. */
static const struct result *first_native(const struct report_facts *facts)
{
	return facts->supervision && facts->supervision->native_count ? &facts->supervision->native[0]->result : NULL;
}

static const struct result *python_result(const struct report_facts *facts)
{
	return facts->supervision ? &facts->supervision->python.result : NULL;
}

static void add_runtime(cJSON *report, const struct report_facts *facts)
{
	cJSON *object = cJSON_AddObjectToObject(report, "runtime");
	const struct result *python = python_result(facts), *native = first_native(facts);
	struct utsname name;

	add_text(object, "python_version", python ? python->python_version : NULL);
	add_text(object, "python_implementation", python ? python->python_implementation : NULL);
	bool known = uname(&name) == 0;
	add_text(object, "system", known ? name.sysname : NULL);
	add_text(object, "machine", known ? name.machine : NULL);
	add_text(object, "libc", python && python->libc[0] ? python->libc : native ? native->libc : NULL);
}

static void add_pytorch(cJSON *report, const struct report_facts *facts)
{
	const struct result *python = python_result(facts);

	if (!python || !facts->verdict->torch_checked || !python->torch_backend[0]) {
		(void)cJSON_AddNullToObject(report, "pytorch");
		return;
	}
	cJSON *object = cJSON_AddObjectToObject(report, "pytorch");
	add_text(object, "version", python->torch_version);
	add_text(object, "cuda", python->torch_cuda);
	add_text(object, "hip", python->torch_hip);
	add_text(object, "backend", strcmp(python->torch_backend, "none") == 0 ? NULL : python->torch_backend);
	add_tristate(object, "gpu_available", python->torch_gpu_available);
	add_number_or_null(object, "visible_device_count", python->torch_device_count, python->torch_device_count >= 0);
	if (!python->torch_arch_list[0]) {
		(void)cJSON_AddNullToObject(object, "arch_list");
		return;
	}
	cJSON *list = cJSON_AddArrayToObject(object, "arch_list");
	for (const char *rest = python->torch_arch_list; *rest;) {
		char name[64];
		size_t length = strcspn(rest, ",");
		(void)snprintf(name, sizeof name, "%.*s", (int)length, rest);
		if (length > 0)
			(void)cJSON_AddItemToArray(list, cJSON_CreateString(name));
		rest += length + (rest[length] == ',');
	}
}

/* cuDriverGetVersion: 1000 * major + 10 * minor. hipRuntimeGetVersion: 10^7 * major + 10^5 * minor + patch. */
static void add_version(cJSON *object, const char *key, long version, bool is_cuda)
{
	char text[48] = "";

	if (version > 0 && is_cuda)
		(void)snprintf(text, sizeof text, "%ld.%ld", version / 1000, version % 1000 / 10);
	else if (version > 0)
		(void)snprintf(text, sizeof text, "%ld.%ld.%ld", version / 10000000, version / 100000 % 100,
		               version % 100000);
	add_text(object, key, text);
}

static const struct outcome *outcome_of_device(const struct supervision *supervision, int device)
{
	int requested = supervision->options->device_index;

	if (requested == OPTIONS_INDEX_ALL)
		return device < supervision->native_count ? &supervision->native_outcomes[device] : NULL;
	return device == requested ? &supervision->native_outcomes[0] : NULL;
}

static void add_device(cJSON *devices, const struct supervision *supervision, int index)
{
	const struct outcome *outcome = outcome_of_device(supervision, index);
	const struct device_facts *own = outcome ? &outcome->result->devices[index] : NULL;
	const struct device_facts *listed = &supervision->native[0]->result.devices[index];
	const struct device_facts *device = own && own->seen ? own : listed;
	enum code code = outcome ? verdict_of_device(outcome, index) : CODE_COUNT;

	if (!device->seen)
		return;
	cJSON *object = cJSON_CreateObject();
	(void)cJSON_AddNumberToObject(object, "index", index);
	add_text(object, "name", device->name);
	add_text(object, "architecture", device->architecture);
	add_number_or_null(object, "memory_total_bytes", (double)device->memory_total_bytes,
	                   device->memory_total_bytes > 0);
	add_number_or_null(object, "memory_free_bytes", (double)device->memory_free_bytes,
	                   device->memory_free_bytes > 0);
	add_text(object, "code", code == CODE_COUNT ? NULL : code_name(code));
	if (supervision->options->device_uuid)
		add_text(object, "uuid", device->uuid);
	(void)cJSON_AddItemToArray(devices, object);
}

static void add_driver(cJSON *report, const struct report_facts *facts)
{
	const struct result *native = first_native(facts);

	if (!native || !native->backend[0] || facts->options->device == DEVICE_CPU) {
		(void)cJSON_AddNullToObject(report, "driver");
		return;
	}
	cJSON *object = cJSON_AddObjectToObject(report, "driver");
	bool is_cuda = strcmp(native->backend, "cuda") == 0;
	add_text(object, "backend", native->backend);
	add_text(object, "library_origin", native->library_origin);
	add_version(object, "driver_version", native->driver_version, is_cuda);
	add_version(object, "runtime_version", native->runtime_version, is_cuda);
	add_number_or_null(object, "visible_device_count", native->device_count, native->device_count >= 0);
	cJSON *devices = cJSON_AddArrayToObject(object, "devices");
	for (int i = 0; i < RESULT_DEVICES_MAX; i++)
		add_device(devices, facts->supervision, i);
}

/* "cpu", "cuda:0", "hip:all"; "" when no worker decided. */
static void describe_device(const struct report_facts *facts, char *text, size_t size)
{
	const struct outcome *by = facts->verdict->by;
	const struct options *options = facts->options;

	text[0] = '\0';
	if (!by || by->result->computation_count == 0)
		return;
	const char *backend = by->result->kind == WORKER_PYTHON ? by->result->torch_backend : by->result->backend;
	if (options->device == DEVICE_CPU)
		(void)snprintf(text, size, "cpu");
	else if (options->device_index == OPTIONS_INDEX_ALL)
		(void)snprintf(text, size, "%s:all", backend);
	else
		(void)snprintf(text, size, "%s:%d", backend, options->device_index);
}

static void add_execution(cJSON *report, const struct report_facts *facts)
{
	const struct verdict *verdict = facts->verdict;
	cJSON *object = cJSON_AddObjectToObject(report, "execution");
	char device[32];

	describe_device(facts, device, sizeof device);
	add_text(object, "device", device);
	add_text(object, "by", !device[0] ? NULL : verdict->by->result->kind == WORKER_PYTHON ? "torch" : "native");
	(void)cJSON_AddBoolToObject(object, "product_verified", verdict->product_verified);
	(void)cJSON_AddBoolToObject(object, "gradient_verified", verdict->gradient_verified);
	/* NaN and infinity are no JSON numbers: cJSON writes null for them, and `detail.observed` names them. */
	add_number_or_null(object, "loss", (double)verdict->loss, verdict->have_loss);
}

static void add_host_check(cJSON *report, const struct host_facts *host)
{
	if (!host) {
		(void)cJSON_AddNullToObject(report, "host_check");
		return;
	}
	cJSON *object = cJSON_AddObjectToObject(report, "host_check");
	add_text(object, "source", host->source);
	add_text(object, "driver_version", host->driver_version);
	cJSON *memory = cJSON_AddArrayToObject(object, "memory_total_bytes");
	for (int i = 0; i < host->memory_count; i++)
		(void)cJSON_AddItemToArray(memory, cJSON_CreateNumber((double)host->memory_total_bytes[i]));
	add_text(object, "problem", host->problem);
}

/* What holds in every worker that ran: the weakest measurement counts, -1 when none measured. */
struct measured {
	int no_new_privs, seccomp, writes_confined, landlock_abi;
};

static void weaken(int *all, int one)
{
	if (one >= 0 && (*all < 0 || one < *all))
		*all = one;
}

static void measure(struct measured *measured, const struct worker *worker)
{
	if (worker->outcome.fate == FATE_NOT_STARTED)
		return;
	weaken(&measured->no_new_privs, worker->result.no_new_privs);
	weaken(&measured->seccomp, worker->result.seccomp);
	weaken(&measured->writes_confined, worker->result.writes_confined);
	if (worker->have_sandbox)
		weaken(&measured->landlock_abi, worker->sandbox.landlock_abi);
}

static void add_sandbox(cJSON *report, const struct report_facts *facts)
{
	cJSON *object = cJSON_AddObjectToObject(report, "sandbox");
	struct measured measured = {-1, -1, -1, -1};

	if (facts->supervision) {
		measure(&measured, &facts->supervision->python);
		for (int i = 0; i < facts->supervision->native_count; i++)
			measure(&measured, facts->supervision->native[i]);
	}
	add_text(object, "mode", options_sandbox_word(facts->options->sandbox));
	add_tristate(object, "no_new_privs", measured.no_new_privs);
	add_tristate(object, "seccomp", measured.seccomp);
	add_number_or_null(object, "landlock_abi", measured.landlock_abi, measured.landlock_abi >= 0);
	add_tristate(object, "writes_confined", measured.writes_confined);
}

/* Interpreter and import as the python worker spent them, the rest as the deciding worker did. */
static void add_timing(cJSON *report, const struct report_facts *facts)
{
	cJSON *object = cJSON_AddObjectToObject(report, "timing_ms");
	const struct supervision *supervision = facts->supervision;

	for (int stage = STAGE_SANDBOX; supervision && stage < STAGE_COMPLETE; stage++) {
		const struct worker *worker = &supervision->python;
		bool python = facts->verdict->torch_checked && facts->verdict->by == NULL;
		python |= facts->verdict->by == &supervision->python.outcome;
		if (stage > STAGE_IMPORT && !python && supervision->native_count > 0)
			worker = supervision->native[0];
		if (worker->stage_us[stage] >= 0)
			(void)cJSON_AddNumberToObject(object, stage_name((enum stage)stage),
			                              (double)worker->stage_us[stage] / 1000);
	}
}

static cJSON *verdict_object(const struct report_facts *facts)
{
	const struct verdict *verdict = facts->verdict;
	cJSON *report = cJSON_CreateObject();

	add_text(report, "status", code_is_pass(verdict->code) ? "passed" : "failed");
	add_text(report, "code", code_name(verdict->code));
	add_number_or_null(report, "exit_code", code_exit_status(verdict->code, verdict->signal), true);
	add_text(report, "stage", stage_name(verdict->stage));
	add_text(report, "next_action", messages_next_action(verdict->code, facts->options->language));
	return report;
}

char *report_text(const struct report_facts *facts, bool indented)
{
	static cJSON_Hooks hooks = {allocate, free};
	char started[32];
	struct tm utc;

	memory_ran_out = false;
	cJSON_InitHooks(&hooks);
	cJSON *report = verdict_object(facts);
	add_hints(report, facts);
	add_detail(report, &facts->verdict->detail);
	add_number_or_null(report, "schema_version", 1, true);
	cJSON *tool = cJSON_AddObjectToObject(report, "tool");
	add_text(tool, "name", "kd-preflight");
	add_text(tool, "version", KD_VERSION);
	(void)strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&facts->started_at, &utc));
	add_text(report, "started_at", started);
	add_number_or_null(report, "duration_ms", (double)facts->duration_ms, true);
	add_requested(report, facts->options);
	add_runtime(report, facts);
	add_pytorch(report, facts);
	add_driver(report, facts);
	add_execution(report, facts);
	add_host_check(report, facts->host);
	add_sandbox(report, facts);
	add_timing(report, facts);
	cJSON *workload = cJSON_AddObjectToObject(report, "workload");
	(void)cJSON_AddBoolToObject(workload, "given", facts->workload_given);
	(void)cJSON_AddBoolToObject(workload, "starting", facts->workload_starting);
	char *text = indented ? cJSON_Print(report) : cJSON_PrintUnformatted(report);
	cJSON_Delete(report);
	size_t length = text ? strlen(text) : 0;
	char *ended = text && !memory_ran_out ? realloc(text, length + 2) : NULL;
	if (!ended) {
		free(text);
		return NULL;
	}
	memcpy(ended + length, "\n", 2);
	return ended;
}

size_t report_termination_line(const struct report_facts *facts, char *line, size_t size)
{
	size_t room = size < TERMINATION_LINE_MAX ? size : TERMINATION_LINE_MAX;
	cJSON *report = verdict_object(facts);
	cJSON *hints = cJSON_AddArrayToObject(report, "hints");

	for (int i = 0; i < facts->verdict->hint_count; i++)
		(void)cJSON_AddItemToArray(hints, cJSON_CreateString(messages_hint_id(facts->verdict->hints[i])));
	char *text = cJSON_PrintUnformatted(report);
	/* Too long by its hints: the ids go, the verdict stays. */
	if (text && strlen(text) + 1 >= room) {
		free(text);
		cJSON_DeleteItemFromObject(report, "hints");
		text = cJSON_PrintUnformatted(report);
	}
	cJSON_Delete(report);
	int length = text ? snprintf(line, room, "%s\n", text) : 0;
	free(text);
	return length > 0 && (size_t)length < room ? (size_t)length : 0;
}
