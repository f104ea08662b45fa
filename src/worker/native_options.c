#include "native_options.h"

#include "native_text.h"

#include <stddef.h>

static const char *const SWITCH_WORDS[] = {"0", "1", NULL};
static const char *const DEVICE_WORDS[] = {"cpu", "gpu", NULL};
static const char *const BACKEND_WORDS[] = {"auto", "cuda", "hip", NULL};
static const char *const SANDBOX_WORDS[] = {"off", "best-effort", "require", NULL};

static bool word(const char *const words[], const char *value, int *out)
{
	for (int i = 0; words[i]; i++)
		if (text_equal(words[i], value)) {
			*out = i;
			return true;
		}
	return false;
}

static bool switch_word(const char *const words[], const char *value, bool *out)
{
	int choice;

	if (!word(words, value, &choice))
		return false;
	*out = choice != 0;
	return true;
}

static bool text_value(const char *value, const char **out)
{
	*out = value;
	return true;
}

static bool option_read(const char *argument, struct native_options *options)
{
	const char *value = argument;
	int choice;

	while (*value && *value != '=')
		value++;
	if (!*value++)
		return false;
	if (text_starts(argument, "result="))
		return text_number(value, &options->result_fd);
	if (text_starts(argument, "device="))
		return switch_word(DEVICE_WORDS, value, &options->gpu);
	if (text_starts(argument, "index="))
		return text_number(value, &options->index);
	if (text_starts(argument, "list="))
		return switch_word(SWITCH_WORDS, value, &options->list);
	if (text_starts(argument, "uuid="))
		return switch_word(SWITCH_WORDS, value, &options->uuid);
	if (text_starts(argument, "expect="))
		return text_number(value, &options->expect);
	if (text_starts(argument, "hipdirs="))
		return text_value(value, &options->hip_dirs);
	if (text_starts(argument, "confine="))
		return text_value(value, &options->confine);
	if (text_starts(argument, "execfd="))
		return text_number(value, &options->exec_fd);
	if (text_starts(argument, "backend=") && word(BACKEND_WORDS, value, &choice)) {
		options->backend = (enum backend_choice)choice;
		return true;
	}
	if (text_starts(argument, "sandbox=") && word(SANDBOX_WORDS, value, &choice)) {
		options->sandbox = (enum sandbox_expected)choice;
		return true;
	}
	return false;
}

bool native_options_read(int argc, char *const argv[], struct native_options *options)
{
	*options = (struct native_options){.result_fd = -1,
	                                   .expect = -1,
	                                   .hip_dirs = "",
	                                   .sandbox = SANDBOX_EXPECT_BEST_EFFORT,
	                                   .exec_fd = -1,
	                                   .gpu = true};
	for (int i = 1; i < argc; i++)
		if (!option_read(argv[i], options))
			return false;
	return options->result_fd >= 0;
}
