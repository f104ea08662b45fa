/* The option table: every option, every twin, every kind of bad value. */
#include "options.h"
#include "tap.h"

#include <ctype.h>

enum { ARGUMENTS_MAX = 12 };

/* Parses words separated by blanks; "''" stands for the empty string. */
static int parse(struct options *options, const char *words, char *const envp[], struct error *error)
{
	static char storage[512];
	static char *argv[ARGUMENTS_MAX];
	int argc = 0;

	(void)snprintf(storage, sizeof storage, "kd-preflight %s", words);
	for (char *word = strtok(storage, " "); word && argc < ARGUMENTS_MAX - 1; word = strtok(NULL, " "))
		argv[argc++] = strcmp(word, "''") == 0 ? word + 2 : word;
	argv[argc] = NULL;
	*error = (struct error){0};
	return options_parse(options, argc, argv, envp, error);
}

static void test_defaults(void)
{
	struct options o;
	struct error error;

	ok(parse(&o, "", NULL, &error) == 0, "no arguments: a check");
	ok(o.action == ACTION_CHECK && o.device == DEVICE_GPU && o.device_index == 0 &&
	           o.expect_devices == OPTIONS_EXPECT_OFF && o.timeout_s == 30 && !o.output && !o.host_check &&
	           o.framework == FRAMEWORK_AUTO && !o.python && o.sandbox == SANDBOX_REQUIRE &&
	           o.format == FORMAT_TEXT && !o.device_uuid && o.language == LANGUAGE_EN && !o.verbose && !o.program,
	   "the defaults are the contract's");
	is_string(o.termination_log, "/dev/termination-log", "the termination log's default");
}

/* Every option of a check, and what it does; each is tried as two words, with '=' and as its twin. */
static const struct {
	const char *name, *value;
} SETTINGS[] = {
        {"device", "cpu"},      {"device-index", "3"}, {"device-index", "all"},     {"expect-devices", "8"},
        {"timeout", "5"},       {"timeout", "120"},    {"output", "out/"},          {"host-check", "1"},
        {"framework", "torch"}, {"framework", "none"}, {"python", "/x/python"},     {"sandbox", "best-effort"},
        {"sandbox", "off"},     {"format", "json"},    {"termination-log", "/t/l"}, {"device-uuid", "1"},
        {"lang", "de"},         {"verbose", "1"},      {"termination-log", "none"},
};

static bool has(const struct options *o, const char *name, const char *value)
{
	if (strcmp(name, "device") == 0)
		return o->device == DEVICE_CPU;
	if (strcmp(name, "device-index") == 0)
		return o->device_index == (value[0] == '3' ? 3 : OPTIONS_INDEX_ALL);
	if (strcmp(name, "expect-devices") == 0)
		return o->expect_devices == 8;
	if (strcmp(name, "timeout") == 0)
		return o->timeout_s == (value[0] == '5' ? 5 : 120);
	if (strcmp(name, "output") == 0)
		return o->output && strcmp(o->output, value) == 0;
	if (strcmp(name, "host-check") == 0)
		return o->host_check;
	if (strcmp(name, "framework") == 0)
		return strcmp(options_framework_word(o->framework), value) == 0;
	if (strcmp(name, "python") == 0)
		return o->python && strcmp(o->python, value) == 0;
	if (strcmp(name, "sandbox") == 0)
		return strcmp(options_sandbox_word(o->sandbox), value) == 0;
	if (strcmp(name, "format") == 0)
		return o->format == FORMAT_JSON;
	if (strcmp(name, "termination-log") == 0)
		return value[0] == 'n' ? !o->termination_log
		                       : o->termination_log && strcmp(o->termination_log, value) == 0;
	if (strcmp(name, "device-uuid") == 0)
		return o->device_uuid;
	if (strcmp(name, "lang") == 0)
		return o->language == LANGUAGE_DE;
	return strcmp(name, "verbose") == 0 && o->verbose;
}

static void test_every_option(void)
{
	struct options o;
	struct error error;

	for (size_t i = 0; i < sizeof SETTINGS / sizeof *SETTINGS; i++) {
		const char *name = SETTINGS[i].name, *value = SETTINGS[i].value;
		bool is_switch = strcmp(value, "1") == 0;
		char words[128], twin[128] = "KD_PREFLIGHT_", *envp[] = {twin, NULL};

		(void)snprintf(words, sizeof words, "--%s %s", name, is_switch ? "" : value);
		ok(parse(&o, words, NULL, &error) == 0 && has(&o, name, value), "%s", words);
		(void)snprintf(words, sizeof words, "--%s=%s", name, value);
		ok(parse(&o, words, NULL, &error) == 0 && has(&o, name, value), "%s", words);
		size_t at = strlen(twin);
		(void)snprintf(twin + at, sizeof twin - at, "%s=%s", name, value);
		for (; twin[at] != '='; at++)
			twin[at] = twin[at] == '-' ? '_' : (char)toupper(twin[at]);
		ok(parse(&o, "", envp, &error) == 0 && has(&o, name, value), "%s", twin);
	}
}

static void test_bad_input(void)
{
	/* What is given, what the one line must name, and what range it must tell. */
	static const struct {
		const char *words, *variable, *names, *tells;
	} CASES[] = {
	        {"--bogus", NULL, "--bogus", "--help"},
	        {"-x", NULL, "-x", "--help"},
	        {"--timeout 4", NULL, "--timeout: '4'", "5 to 120"},
	        {"--timeout 121", NULL, "--timeout: '121'", "5 to 120"},
	        {"--timeout abc", NULL, "--timeout: 'abc'", "5 to 120"},
	        {"--timeout +9", NULL, "--timeout: '+9'", "5 to 120"},
	        {"--timeout 0x9", NULL, "--timeout: '0x9'", "5 to 120"},
	        {"--timeout ''", NULL, "--timeout: ''", "5 to 120"},
	        {"--timeout", NULL, "--timeout: needs a value", "5 to 120"},
	        {"--timeout=", NULL, "--timeout: ''", "5 to 120"},
	        {"--device tpu", NULL, "--device: 'tpu'", "gpu or cpu"},
	        {"--device ''", NULL, "--device: ''", "gpu or cpu"},
	        {"--device-index -1", NULL, "--device-index: '-1'", "0 to 65535, or all"},
	        {"--device-index 99999999999", NULL, "--device-index: '99999999999'", "0 to 65535, or all"},
	        {"--expect-devices 0", NULL, "--expect-devices: '0'", "1 to 65535"},
	        {"--expect-devices all", NULL, "--expect-devices: 'all'", "1 to 65535"},
	        {"--output ''", NULL, "--output: ''", "not empty"},
	        {"--python ''", NULL, "--python: ''", "not empty"},
	        {"--termination-log ''", NULL, "--termination-log: ''", "not empty"},
	        {"--sandbox maybe", NULL, "--sandbox: 'maybe'", "require, best-effort or off"},
	        {"--framework jax", NULL, "--framework: 'jax'", "auto, torch or none"},
	        {"--format xml", NULL, "--format: 'xml'", "text or json"},
	        {"--lang it", NULL, "--lang: 'it'", "en, es, pt, de or fr"},
	        {"--host-check=2", NULL, "--host-check: '2'", "1 or 0"},
	        {"--host-check=01", NULL, "--host-check: '01'", "1 or 0"},
	        {"--help=1", NULL, "--help", "no value"},
	        {"--", NULL, "--", "PROGRAM"},
	        {"--device cpu --", NULL, "--", "PROGRAM"},
	        {"--device cpu -- prog", NULL, "--device cpu", "PROGRAM"},
	        {"--device cpu prog", NULL, "--device cpu", "PROGRAM"},
	        {"--device cpu --host-check", NULL, "--host-check", "--device gpu"},
	        {"--device cpu --device-index 0", NULL, "--device-index", "--device gpu"},
	        {"--device cpu --expect-devices 1", NULL, "--expect-devices", "--device gpu"},
	        {"--device cpu --device-uuid", NULL, "--device-uuid", "--device gpu"},
	        {"--device cpu", "KD_PREFLIGHT_DEVICE_INDEX=0", "--device-index", "--device gpu"},
	        {"--summarize d -- prog", NULL, "--summarize", "PROGRAM"},
	        {"--dev cpu", NULL, "--dev", "--help"},
	        {"", "KD_PREFLIGHT_TIMEOUT=4", "KD_PREFLIGHT_TIMEOUT: '4'", "5 to 120"},
	        {"", "KD_PREFLIGHT_TIMEOUT=", "KD_PREFLIGHT_TIMEOUT: ''", "5 to 120"},
	        {"", "KD_PREFLIGHT_X=1", "KD_PREFLIGHT_X", "--help"},
	        {"", "KD_PREFLIGHT_=1", "KD_PREFLIGHT_", "--help"},
	        {"", "KD_PREFLIGHT_device=cpu", "KD_PREFLIGHT_device", "--help"},
	        {"", "KD_PREFLIGHT_HELP=1", "KD_PREFLIGHT_HELP", "--help"},
	        {"", "KD_PREFLIGHT_LIST_CODES=1", "KD_PREFLIGHT_LIST_CODES", "--help"},
	        {"", "KD_PREFLIGHT_SUMMARIZE=/tmp", "KD_PREFLIGHT_SUMMARIZE", "--help"},
	        {"", "KD_PREFLIGHT_VERSIONS=1", "KD_PREFLIGHT_VERSIONS", "--help"},
	        {"", "KD_PREFLIGHT_VERBOSE=yes", "KD_PREFLIGHT_VERBOSE: 'yes'", "1 or 0"},
	};
	struct options o;
	struct error error;

	for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
		char variable[64], *envp[] = {variable, NULL};
		(void)snprintf(variable, sizeof variable, "%s", CASES[i].variable ? CASES[i].variable : "A=b");
		int status = parse(&o, CASES[i].words, envp, &error);
		if (!ok(status == -EINVAL && strstr(error.text, CASES[i].names) && strstr(error.text, CASES[i].tells) &&
		                !strchr(error.text, '\n'),
		        "refused: %s %s", CASES[i].words, CASES[i].variable ? CASES[i].variable : ""))
			printf("# %d %s\n", status, error.text);
	}
}

static void test_variables(void)
{
	char *foreign[] = {"KD_PREFLIGHT_VERSION=1.2",
	                   "KD_PREFLIGHT_SERVICE_HOST=10.0.0.1",
	                   "KD_PREFLIGHT_SERVICE_PORT=80",
	                   "KD_PREFLIGHT_SERVICE_PORT_HTTP=80",
	                   "KD_PREFLIGHT_PORT=tcp://10.0.0.1:80",
	                   "KD_PREFLIGHT_PORT_80_TCP_ADDR=10.0.0.1",
	                   "KD_PREFLIGHTS=1",
	                   "XKD_PREFLIGHT_X=1",
	                   NULL};
	char *timeout[] = {"KD_PREFLIGHT_TIMEOUT=60", "KD_PREFLIGHT_VERBOSE=1", NULL};
	char *bad[] = {"KD_PREFLIGHT_NONSENSE=1", NULL};
	char *cpu[] = {"KD_PREFLIGHT_DEVICE=cpu", NULL};
	struct options o;
	struct error error;

	ok(parse(&o, "", foreign, &error) == 0 && o.action == ACTION_CHECK,
	   "a Service's variables and VERSION change nothing");
	ok(parse(&o, "--timeout 9 --verbose=0", timeout, &error) == 0 && o.timeout_s == 9 && !o.verbose,
	   "the command line wins");
	ok(parse(&o, "--help", bad, &error) == 0 && o.action == ACTION_HELP, "--help answers in any environment");
	ok(parse(&o, "--device gpu -- x", cpu, &error) == 0 && o.device == DEVICE_GPU,
	   "a variable's conflict can be overruled");
	ok(parse(&o, "--bogus --output f", NULL, &error) < 0 && o.output && strcmp(o.output, "f") == 0,
	   "what comes after the first error is still read");
}

static void test_program(void)
{
	struct options o;
	struct error error;

	ok(parse(&o, "prog --help --timeout 1", NULL, &error) == 0 && o.action == ACTION_CHECK && o.program &&
	           strcmp(o.program[1], "--help") == 0,
	   "parsing stops at the first non-option");
	ok(parse(&o, "-- --prog", NULL, &error) == 0 && strcmp(o.program[0], "--prog") == 0, "and at --");
	ok(parse(&o, "-- -- x", NULL, &error) == 0 && strcmp(o.program[0], "--") == 0, "a second -- is PROGRAM");
	ok(parse(&o, "-- ''", NULL, &error) == 0 && o.program[0][0] == '\0', "an empty PROGRAM is left to the lookup");
	char *none[] = {NULL};
	ok(options_parse(&o, 0, none, NULL, &error) == -EINVAL, "an empty argument vector is refused");
}

static void test_locale(void)
{
	static const struct {
		char *envp[4];
		enum language want;
	} CASES[] = {
	        {{NULL}, LANGUAGE_EN},
	        {{"LANG=de_DE.UTF-8", NULL}, LANGUAGE_DE},
	        {{"LANG=de_DE.UTF-8", "LC_ALL=fr_FR", NULL}, LANGUAGE_FR},
	        {{"LANG=de_DE.UTF-8", "LC_MESSAGES=es", NULL}, LANGUAGE_ES},
	        {{"LC_ALL=", "LANG=pt_BR.UTF-8", NULL}, LANGUAGE_PT},
	        {{"LC_ALL=C", "LANG=de_DE.UTF-8", NULL}, LANGUAGE_EN},
	        {{"LANG=deu", NULL}, LANGUAGE_EN},
	        {{"LANG=d", NULL}, LANGUAGE_EN},
	};

	for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
		is_int(messages_language_from_locale(CASES[i].envp), CASES[i].want, "the language of the locale");
}

int main(void)
{
	test_defaults();
	test_every_option();
	test_bad_input();
	test_variables();
	test_program();
	test_locale();
	return done();
}
