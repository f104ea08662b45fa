/* The result channel: what a worker writes is hostile. The first byte says whose it is and how it is cut. */
#include "result.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text, size_t size)
{
	size_t length = strnlen(text, size);

	if (length == size)
		abort();
	for (size_t i = 0; i < length; i++)
		if (text[i] < ' ' || text[i] > '~')
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct result whole, cut;

	if (size == 0)
		return 0;
	enum worker_kind kind = (enum worker_kind)(data[0] % 3);
	size_t step = 1 + data[0] / 3 % 7;
	result_init(&whole, kind);
	result_feed(&whole, (const char *)data + 1, size - 1);
	result_init(&cut, kind);
	for (size_t at = 1; at < size; at += step)
		result_feed(&cut, (const char *)data + at, size - at < step ? size - at : step);
	/* In any cut the same comes out. */
	if (memcmp(&whole, &cut, sizeof whole) != 0)
		abort();
	if (whole.computation_count > RESULT_DEVICES_MAX || whole.hint_count > RESULT_HINTS_MAX)
		abort();
	check_text(whole.torch_version, sizeof whole.torch_version);
	check_text(whole.torch_arch_list, sizeof whole.torch_arch_list);
	check_text(whole.call, sizeof whole.call);
	check_text(whole.missing, sizeof whole.missing);
	for (int i = 0; i < RESULT_DEVICES_MAX; i++)
		check_text(whole.devices[i].name, sizeof whole.devices[i].name);
	return 0;
}
