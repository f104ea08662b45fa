/* The command line and its twins in the environment: lines of the input up to an empty one are variables, the rest are
 * arguments. */
#include "options.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char program[] = "kd-preflight";
	char *text = malloc(size + 1), *envp[WORDS_MAX + 1], *argv[WORDS_MAX + 2] = {program};
	int variables = 0, arguments = 1;
	bool in_environment = true;
	struct options options;
	struct error error = {0};

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	for (char *rest = text, *word; (word = strsep(&rest, "\n"));) {
		if (in_environment && !*word)
			in_environment = false;
		else if (in_environment && variables < WORDS_MAX)
			envp[variables++] = word;
		else if (!in_environment && arguments < WORDS_MAX)
			argv[arguments++] = word;
	}
	envp[variables] = argv[arguments] = NULL;
	int status = options_parse(&options, arguments, argv, envp, &error);
	if (status < 0 && (!error.text[0] || strnlen(error.text, sizeof error.text) == sizeof error.text))
		abort();
	if (status == 0 && (options.timeout_s < OPTIONS_TIMEOUT_MIN_S || options.timeout_s > OPTIONS_TIMEOUT_MAX_S ||
	                    options.device_index < OPTIONS_INDEX_ALL || options.device_index > OPTIONS_INDEX_MAX))
		abort();
	/* Only GPU_CHECK_PASSED starts a program. */
	if (status == 0 && options.action == ACTION_CHECK && options.device == DEVICE_CPU && options.program)
		abort();
	free(text);
	return 0;
}
