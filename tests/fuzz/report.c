/* The report writer: the input is what two workers said, then text for every field that holds some, put there behind
 * the reader's back. Whatever comes, the report is JSON, its text has no control character, and a termination line
 * fits. */
#include "report.h"

#include <cJSON.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t size;
};

static uint8_t take(struct input *input)
{
	if (input->size == 0)
		return 0;
	input->size--;
	return *input->data++;
}

static size_t take_block(struct input *input, const char **block)
{
	size_t length = take(input) | (size_t)take(input) << 8;

	length = length < input->size ? length : input->size;
	*block = (const char *)input->data;
	input->data += length;
	input->size -= length;
	return length;
}

static void fill(struct input *input, char *text, size_t size)
{
	const char *block;
	size_t length = take(input) % 2 ? take_block(input, &block) : 0;

	if (length == 0)
		return;
	length = length < size ? length : size - 1;
	memcpy(text, block, length);
	text[length] = '\0';
}

static void read_worker(struct input *input, struct worker *worker, enum worker_kind kind)
{
	const char *block;

	worker_init(worker, kind);
	size_t length = take_block(input, &block);
	result_feed(&worker->result, block, length);
	worker->outcome.fate = (enum fate)(take(input) % (FATE_NO_TURN + 1));
	worker->outcome.exit_status = take(input) % 2;
	worker->outcome.signal = take(input) % 70;
	worker->outcome.call = "clone";
	struct result *result = &worker->result;
	fill(input, result->libc, sizeof result->libc);
	fill(input, result->call, sizeof result->call);
	fill(input, result->error_name, sizeof result->error_name);
	fill(input, result->missing, sizeof result->missing);
	fill(input, result->python_version, sizeof result->python_version);
	fill(input, result->torch_version, sizeof result->torch_version);
	fill(input, result->torch_arch_list, sizeof result->torch_arch_list);
	fill(input, result->backend, sizeof result->backend);
	fill(input, result->devices[0].name, sizeof result->devices[0].name);
	fill(input, result->devices[0].uuid, sizeof result->devices[0].uuid);
}

static void check(char *text, bool lines)
{
	size_t length = text ? strlen(text) : 0;
	if (length == 0 || text[length - 1] != '\n')
		abort();
	text[length - 1] = '\0';
	for (const char *at = text; *at; at++)
		if ((unsigned char)*at < ' ' && !(lines && (*at == '\n' || *at == '\t')))
			abort();
	cJSON *parsed = cJSON_Parse(text);
	if (!cJSON_IsObject(parsed) || !cJSON_GetObjectItemCaseSensitive(parsed, "code"))
		abort();
	cJSON_Delete(parsed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct supervision supervision;
	static struct worker native;
	struct input input = {data, size};
	char line[1200];
	struct options options = {.timeout_s = 30, .expect_devices = OPTIONS_EXPECT_OFF};

	memset(&supervision, 0, sizeof supervision);
	options.device = take(&input) % 2 ? DEVICE_CPU : DEVICE_GPU;
	options.device_index = options.device == DEVICE_GPU ? take(&input) % 4 - 1 : 0;
	options.language = (enum language)(take(&input) % 5);
	options.device_uuid = take(&input) % 2;
	supervision.options = &options;
	supervision.torch_rule = (enum torch_rule)(take(&input) % 3);
	supervision.loader = take(&input) % 2 ? "/lib/ld.so" : "";
	supervision.interrupted_by = take(&input) % 8 ? 0 : 15;
	read_worker(&input, &supervision.python, WORKER_PYTHON);
	read_worker(&input, &native, WORKER_NATIVE);
	worker_init(&supervision.host, WORKER_HOST);
	supervision.native[0] = &native;
	supervision.native_count = 1;
	supervision.native_outcomes[0] = native.outcome;
	struct verdict_input verdict_input = supervise_input(&supervision);
	struct verdict verdict = verdict_decide(&verdict_input);
	struct report_facts facts = {
	        .options = &options, .verdict = &verdict, .supervision = &supervision, .duration_ms = 1};
	char *pretty = report_text(&facts, true), *flat = report_text(&facts, false);
	check(pretty, true);
	check(flat, false);
	free(pretty);
	free(flat);
	size_t length = report_termination_line(&facts, line, sizeof line);
	if (length == 0 || length > 1024 || line[length - 1] != '\n')
		abort();
	check(line, false);
	return 0;
}
