#include "options.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define TWIN_PREFIX "KD_PREFLIGHT_"

enum option_id {
	OPTION_DEVICE,
	OPTION_DEVICE_INDEX,
	OPTION_EXPECT_DEVICES,
	OPTION_TIMEOUT,
	OPTION_OUTPUT,
	OPTION_HOST_CHECK,
	OPTION_FRAMEWORK,
	OPTION_PYTHON,
	OPTION_SANDBOX,
	OPTION_TERMINATION_LOG,
	OPTION_FORMAT,
	OPTION_DEVICE_UUID,
	OPTION_LANG,
	OPTION_VERBOSE,
	OPTION_SUMMARIZE,
	OPTION_LIST_CODES,
	OPTION_VERSION,
	OPTION_HELP,
	OPTION_COUNT
};

enum value_kind { VALUE_NONE, VALUE_SWITCH, VALUE_WORD, VALUE_INTEGER, VALUE_PATH };

static const char *const DEVICE_WORDS[] = {[DEVICE_GPU] = "gpu", [DEVICE_CPU] = "cpu", NULL};
static const char *const FRAMEWORK_WORDS[] = {
        [FRAMEWORK_AUTO] = "auto", [FRAMEWORK_TORCH] = "torch", [FRAMEWORK_NONE] = "none", NULL};
static const char *const SANDBOX_WORDS[] = {
        [SANDBOX_REQUIRE] = "require", [SANDBOX_BEST_EFFORT] = "best-effort", [SANDBOX_OFF] = "off", NULL};
static const char *const FORMAT_WORDS[] = {[FORMAT_TEXT] = "text", [FORMAT_JSON] = "json", NULL};
static const char *const INDEX_WORDS[] = {"all", NULL};

/* One row per option: the parser, the twins, the error messages, --help and the tests that hold the documents against
 * the code all read it. An action has no twin, so that no variable can turn a check into an exit 0. */
static const struct option {
	const char *name;
	enum value_kind kind;
	bool has_twin;
	const char *placeholder;  /* for --help */
	const char *const *words; /* accepted words (VALUE_WORD; VALUE_INTEGER: besides the numbers) */
	int minimum, maximum;     /* VALUE_INTEGER */
	const char *help;
} OPTIONS[OPTION_COUNT] = {
        [OPTION_DEVICE] = {"device", VALUE_WORD, true, "gpu|cpu", DEVICE_WORDS, 0, 0,
                           "what to check; cpu never contacts a GPU driver and starts no PROGRAM (default: gpu)"},
        [OPTION_DEVICE_INDEX] = {"device-index", VALUE_INTEGER, true, "N|all", INDEX_WORDS, 0, OPTIONS_INDEX_MAX,
                                 "ordinal among the visible devices, or every one (default: 0)"},
        [OPTION_EXPECT_DEVICES] = {"expect-devices", VALUE_INTEGER, true, "N", NULL, 1, OPTIONS_INDEX_MAX,
                                   "fail unless exactly N devices are visible"},
        [OPTION_TIMEOUT] = {"timeout", VALUE_INTEGER, true, "SECONDS", NULL, OPTIONS_TIMEOUT_MIN_S,
                            OPTIONS_TIMEOUT_MAX_S, "limit of each checking worker, 5 to 120 (default: 30)"},
        [OPTION_OUTPUT] = {"output", VALUE_PATH, true, "PATH", NULL, 0, 0,
                           "write the report to a new file; a directory gets a fresh name in it"},
        [OPTION_HOST_CHECK] = {"host-check", VALUE_SWITCH, true, NULL, NULL, 0, 0,
                               "also ask nvidia-smi or the kernel's files (3 s; never decides)"},
        [OPTION_FRAMEWORK] = {"framework", VALUE_WORD, true, "auto|torch|none", FRAMEWORK_WORDS, 0, 0,
                              "torch: required; none: native rungs only; auto: required when PROGRAM\n"
                              "is Python and in CPU mode (default: auto)"},
        [OPTION_PYTHON] = {"python", VALUE_PATH, true, "PATH", NULL, 0, 0,
                           "interpreter to check, where PROGRAM does not tell it"},
        [OPTION_SANDBOX] = {"sandbox", VALUE_WORD, true, "require|best-effort|off", SANDBOX_WORDS, 0, 0,
                            "whether no_new_privs and seccomp must hold (default: require)"},
        [OPTION_TERMINATION_LOG] = {"termination-log", VALUE_PATH, true, "PATH|none", NULL, 0, 0,
                                    "one-line verdict for Kubernetes, where the file exists\n"
                                    "(default: /dev/termination-log)"},
        [OPTION_FORMAT] = {"format", VALUE_WORD, true, "text|json", FORMAT_WORDS, 0, 0,
                           "what the terminal gets (default: text)"},
        [OPTION_DEVICE_UUID] = {"device-uuid", VALUE_SWITCH, true, NULL, NULL, 0, 0, "put device UUIDs in the report"},
        [OPTION_LANG] = {"lang", VALUE_WORD, true, "en|es|pt|de|fr", MESSAGES_LANGUAGES, 0, 0,
                         "language of the human lines (default: from the locale)"},
        [OPTION_VERBOSE] = {"verbose", VALUE_SWITCH, true, NULL, NULL, 0, 0,
                            "also show, bounded, what the workers printed"},
        [OPTION_SUMMARIZE] = {"summarize", VALUE_PATH, false, "DIR", NULL, 0, 0,
                              "check nothing: one table over a folder of reports"},
        [OPTION_LIST_CODES] = {"list-codes", VALUE_NONE, false, NULL, NULL, 0, 0, "print the codes and exit"},
        [OPTION_VERSION] = {"version", VALUE_NONE, false, NULL, NULL, 0, 0, "print the version and exit"},
        [OPTION_HELP] = {"help", VALUE_NONE, false, NULL, NULL, 0, 0, "print this help and exit"},
};

/* What Kubernetes injects for a Service called kd-preflight, and the variable that images use for the pinned version.
 */
static bool is_foreign_twin(const char *suffix, size_t length)
{
	static const struct {
		const char *word;
		bool is_prefix;
	} FOREIGN[] = {
	        {"VERSION", false}, {"SERVICE_HOST", false}, {"SERVICE_PORT", true}, {"PORT", false}, {"PORT_", true},
	};

	for (size_t i = 0; i < sizeof FOREIGN / sizeof *FOREIGN; i++) {
		size_t word = strlen(FOREIGN[i].word);
		if (length >= word && memcmp(suffix, FOREIGN[i].word, word) == 0 &&
		    (length == word || FOREIGN[i].is_prefix))
			return true;
	}
	return false;
}

/* The twin's suffix for a name: upper case, '-' as '_'. */
static bool is_twin_of(const char *name, const char *suffix, size_t length)
{
	if (strlen(name) != length)
		return false;
	for (size_t i = 0; i < length; i++) {
		char c = name[i] == '-' ? '_' : name[i];
		if (c >= 'a' && c <= 'z')
			c = (char)(c - 'a' + 'A');
		if (c != suffix[i])
			return false;
	}
	return true;
}

/* "gpu or cpu", "5 to 120", "0 to 65535, or all" */
static void describe_accepted(const struct option *option, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	if (option->kind == VALUE_SWITCH)
		(void)snprintf(text, size, "1 or 0");
	else if (option->kind == VALUE_PATH)
		(void)snprintf(text, size, "a path that is not empty");
	else if (option->kind == VALUE_INTEGER)
		(void)snprintf(text, size, "a whole number from %d to %d%s%s", option->minimum, option->maximum,
		               option->words ? ", or " : "", option->words ? option->words[0] : "");
	for (int i = 0; option->kind == VALUE_WORD && option->words[i]; i++) {
		const char *separator = i == 0 ? "" : option->words[i + 1] ? ", " : " or ";
		int n = snprintf(text + used, size - used, "%s%s", separator, option->words[i]);
		used += n > 0 && (size_t)n < size - used ? (size_t)n : 0;
	}
}

/* Quotes what the user gave, for one line of a terminal: control bytes and over-long text are not repeated. */
static void quote(const char *value, char *text, size_t size)
{
	size_t i;
	for (i = 0; value[i] && i + 4 < size; i++)
		text[i] = value[i] < ' ' || value[i] == 0x7f ? '?' : value[i];
	(void)snprintf(text + i, size - i, "%s", value[i] ? "..." : "");
}

static int bad_value(const struct option *option, const char *shown_name, const char *value, struct error *error)
{
	char accepted[160], quoted[80];

	describe_accepted(option, accepted, sizeof accepted);
	quote(value, quoted, sizeof quoted);
	return error_set(error, EINVAL, "%s: '%s' is not accepted: give %s", shown_name, quoted, accepted);
}

static int find_word(const char *const *words, const char *value)
{
	for (int i = 0; words && words[i]; i++)
		if (strcmp(words[i], value) == 0)
			return i;
	return -1;
}

/* Decimal digits only: no sign, no blank, no base prefix. */
static bool parse_integer(const char *value, int minimum, int maximum, int *out)
{
	long number = 0;

	if (!*value)
		return false;
	for (const char *c = value; *c; c++) {
		if (*c < '0' || *c > '9' || number > INT_MAX / 10)
			return false;
		number = number * 10 + (*c - '0');
	}
	if (number < minimum || number > maximum)
		return false;
	*out = (int)number;
	return true;
}

/* Turns the text into the number that assign() stores; paths are stored as they are. */
static int read_value(const struct option *option, const char *value, int *out)
{
	switch (option->kind) {
	case VALUE_NONE:
		return 0;
	case VALUE_SWITCH:
		return parse_integer(value, 0, 1, out) && !value[1] ? 0 : -EINVAL;
	case VALUE_WORD:
		*out = find_word(option->words, value);
		return *out < 0 ? -EINVAL : 0;
	case VALUE_INTEGER:
		if (find_word(option->words, value) >= 0) {
			*out = OPTIONS_INDEX_ALL;
			return 0;
		}
		return parse_integer(value, option->minimum, option->maximum, out) ? 0 : -EINVAL;
	case VALUE_PATH:
		return *value && strlen(value) < PATH_MAX ? 0 : -EINVAL;
	}
	return -EINVAL;
}

static void assign(struct options *options, enum option_id id, const char *value, int number)
{
	switch (id) {
	case OPTION_DEVICE:
		options->device = (enum device)number;
		break;
	case OPTION_DEVICE_INDEX:
		options->device_index = number;
		break;
	case OPTION_EXPECT_DEVICES:
		options->expect_devices = number;
		break;
	case OPTION_TIMEOUT:
		options->timeout_s = number;
		break;
	case OPTION_OUTPUT:
		options->output = value;
		break;
	case OPTION_HOST_CHECK:
		options->host_check = number;
		break;
	case OPTION_FRAMEWORK:
		options->framework = (enum framework)number;
		break;
	case OPTION_PYTHON:
		options->python = value;
		break;
	case OPTION_SANDBOX:
		options->sandbox = (enum sandbox_mode)number;
		break;
	case OPTION_TERMINATION_LOG:
		options->termination_log = strcmp(value, "none") == 0 ? NULL : value;
		break;
	case OPTION_FORMAT:
		options->format = (enum format)number;
		break;
	case OPTION_DEVICE_UUID:
		options->device_uuid = number;
		break;
	case OPTION_LANG:
		options->language = (enum language)number;
		break;
	case OPTION_VERBOSE:
		options->verbose = number;
		break;
	case OPTION_SUMMARIZE:
		options->summarize_dir = value;
		options->action = ACTION_SUMMARIZE;
		break;
	case OPTION_LIST_CODES:
		options->action = ACTION_LIST_CODES;
		break;
	case OPTION_VERSION:
		options->action = ACTION_VERSION;
		break;
	case OPTION_HELP:
		options->action = ACTION_HELP;
		break;
	case OPTION_COUNT:
		break;
	}
}

/* What one pass over environment and arguments remembers besides the options. */
struct parse {
	struct options *options;
	struct error *error; /* the first error */
	int status;
	bool set[OPTION_COUNT];
};

static void take(struct parse *parse, enum option_id id, const char *shown_name, const char *value)
{
	struct error ignored;
	int number = 0;

	if (read_value(&OPTIONS[id], value, &number) < 0) {
		int status = bad_value(&OPTIONS[id], shown_name, value, parse->status ? &ignored : parse->error);
		parse->status = parse->status ? parse->status : status;
		return;
	}
	assign(parse->options, id, value, number);
	/* A switch turned off is as good as not given when conflicts are looked for. */
	parse->set[id] = OPTIONS[id].kind != VALUE_SWITCH || number;
}

__attribute__((format(printf, 2, 3))) static void refuse(struct parse *parse, const char *format, ...)
{
	va_list args;

	if (parse->status)
		return;
	va_start(args, format);
	parse->error->number = EINVAL;
	(void)vsnprintf(parse->error->text, sizeof parse->error->text, format, args);
	va_end(args);
	parse->status = -EINVAL;
}

static void parse_environment(struct parse *parse, char *const envp[])
{
	for (; envp && *envp; envp++) {
		if (strncmp(*envp, TWIN_PREFIX, strlen(TWIN_PREFIX)) != 0)
			continue;
		const char *suffix = *envp + strlen(TWIN_PREFIX);
		size_t length = strcspn(suffix, "=");
		if (is_foreign_twin(suffix, length))
			continue;
		char shown[64];
		(void)snprintf(shown, sizeof shown, "%.*s", (int)(strcspn(*envp, "=")), *envp);
		int id = 0;
		while (id < OPTION_COUNT && !(OPTIONS[id].has_twin && is_twin_of(OPTIONS[id].name, suffix, length)))
			id++;
		if (id < OPTION_COUNT && suffix[length] == '=') {
			take(parse, (enum option_id)id, shown, suffix + length + 1);
			continue;
		}
		char quoted[64];
		quote(shown, quoted, sizeof quoted);
		refuse(parse,
		       "%s: no such variable: every option of a check has a twin " TWIN_PREFIX
		       "<NAME>, see --help; unset this one",
		       quoted);
	}
}

/* Reads one option at argv[i]; returns how many arguments it took. */
static int parse_option(struct parse *parse, char *const argv[], int i)
{
	const char *name = strncmp(argv[i], "--", 2) == 0 ? argv[i] + 2 : ""; /* "-" ends before the third character */
	const char *equals = strchr(name, '=');
	size_t length = equals ? (size_t)(equals - name) : strlen(name);
	char shown[64], quoted[80];
	int id = 0;

	while (id < OPTION_COUNT &&
	       !(strlen(OPTIONS[id].name) == length && strncmp(OPTIONS[id].name, name, length) == 0))
		id++;
	if (id == OPTION_COUNT) {
		quote(argv[i], quoted, sizeof quoted);
		refuse(parse, "%s: unknown option: see --help; put -- before PROGRAM", quoted);
		return 1;
	}
	(void)snprintf(shown, sizeof shown, "--%s", OPTIONS[id].name);
	bool takes_value = OPTIONS[id].kind > VALUE_SWITCH;
	if (OPTIONS[id].kind == VALUE_NONE && equals) {
		refuse(parse, "%s: takes no value", shown);
		return 1;
	}
	if (equals || !takes_value) {
		take(parse, (enum option_id)id, shown, equals ? equals + 1 : "1");
		return 1;
	}
	if (!argv[i + 1]) {
		char accepted[160];
		describe_accepted(&OPTIONS[id], accepted, sizeof accepted);
		refuse(parse, "%s: needs a value: give %s", shown, accepted);
		return 1;
	}
	take(parse, (enum option_id)id, shown, argv[i + 1]);
	return 2;
}

static void parse_arguments(struct parse *parse, int argc, char *const argv[])
{
	int i = 1;

	if (argc < 1) {
		refuse(parse, "the argument vector is empty: start kd-preflight with its name as argv[0]");
		return;
	}
	while (i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0)
		i += parse_option(parse, argv, i);
	if (i < argc && strcmp(argv[i], "--") == 0 && ++i == argc)
		refuse(parse, "--: a PROGRAM must follow: leave -- out to check without starting one");
	if (i < argc)
		parse->options->program = argv + i;
}

static void check_conflicts(struct parse *parse)
{
	static const enum option_id GPU_ONLY[] = {OPTION_HOST_CHECK, OPTION_DEVICE_INDEX, OPTION_EXPECT_DEVICES,
	                                          OPTION_DEVICE_UUID};

	if (parse->options->action == ACTION_SUMMARIZE && parse->options->program)
		refuse(parse, "--summarize: checks nothing and starts nothing: give no PROGRAM");
	if (parse->options->action != ACTION_CHECK || parse->options->device != DEVICE_CPU)
		return;
	if (parse->options->program)
		refuse(parse, "--device cpu: starts no PROGRAM (only GPU_CHECK_PASSED does): "
		              "leave PROGRAM out, or use --device gpu");
	for (size_t i = 0; i < sizeof GPU_ONLY / sizeof *GPU_ONLY; i++)
		if (parse->set[GPU_ONLY[i]])
			refuse(parse, "--device cpu: does not go with --%s: leave it out, or use --device gpu",
			       OPTIONS[GPU_ONLY[i]].name);
}

int options_parse(struct options *options, int argc, char *const argv[], char *const envp[], struct error *error)
{
	struct parse parse = {.options = options, .error = error};

	*options = (struct options){
	        .expect_devices = OPTIONS_EXPECT_OFF,
	        .timeout_s = 30,
	        .termination_log = "/dev/termination-log",
	        .language = messages_language_from_locale(envp),
	};
	parse_environment(&parse, envp);
	struct error environment_error = *error;
	int environment_status = parse.status;
	parse.status = 0;
	parse_arguments(&parse, argc, argv);
	/* --help and its like answer in any environment; for a check the environment counts. */
	if (options->action >= ACTION_LIST_CODES && !parse.status)
		return 0;
	if (environment_status && !parse.status) {
		*error = environment_error;
		return environment_status;
	}
	check_conflicts(&parse);
	return parse.status;
}

void options_print_help(FILE *stream)
{
	fputs("usage: kd-preflight [OPTION]... [--] [PROGRAM [ARG]...]\n\n"
	      "Checks interpreter, PyTorch, GPU backend, device and a tiny exact computation, in a\n"
	      "sandbox and under time limits; starts PROGRAM only on GPU_CHECK_PASSED.\n\n",
	      stream);
	for (int id = 0; id < OPTION_COUNT; id++) {
		const struct option *option = &OPTIONS[id];
		char left[64];
		(void)snprintf(left, sizeof left, "--%s%s%s", option->name, option->placeholder ? " " : "",
		               option->placeholder ? option->placeholder : "");
		const char *help = option->help, *newline;
		bool fits = strlen(left) < 30;
		fprintf(stream, fits ? "  %-30s" : "  %s\n", left);
		if (!fits)
			fprintf(stream, "  %-30s", "");
		while ((newline = strchr(help, '\n'))) {
			fprintf(stream, "%.*s\n  %-30s", (int)(newline - help), help, "");
			help = newline + 1;
		}
		fprintf(stream, "%s\n", help);
	}
	fputs("\nEvery option of a check has a twin KD_PREFLIGHT_<NAME> (upper case, - as _; switches\n"
	      "take 1 or 0); the command line wins. Exit status: see --list-codes.\n",
	      stream);
}

const char *options_device_word(enum device device)
{
	return DEVICE_WORDS[device];
}

const char *options_framework_word(enum framework framework)
{
	return FRAMEWORK_WORDS[framework];
}

const char *options_sandbox_word(enum sandbox_mode mode)
{
	return SANDBOX_WORDS[mode];
}
