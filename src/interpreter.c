#include "interpreter.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	HOPS_MAX = 16,     /* script to interpreter to env to script ...: exec's own five, with an env between each */
	FRONT_MAX = 64,    /* words that shebangs and env -S put before the workload's own */
	TEXT_MAX = 8192,   /* of such words, and of a script's first two lines */
	ZIP_END_SIZE = 22, /* the record that ends a zip file, without its comment of at most 65535 bytes */
	ZIP_COMMENT_MAX = 65535,
};

/* The command line on its way from PROGRAM to Python. Words come from `front`, the last one first, then from `rest`. */
struct trail {
	struct interpreter *interpreter;
	struct error *error;
	const char *path_variable;
	const char *front[FRONT_MAX];
	int front_count;
	char *const *rest;
	char text[TEXT_MAX]; /* what the words in front point to */
	size_t text_used;
	size_t storage_used; /* of interpreter->storage */
	/* the program this hop has come to */
	struct workload program;
	char argv0[PATH_MAX];
};

static void reset(struct interpreter *interpreter)
{
	memset(interpreter, 0, sizeof *interpreter);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static bool copy(char *to, size_t size, const char *from)
{
	size_t length = strlen(from);
	if (length >= size)
		return false;
	memcpy(to, from, length + 1);
	return true;
}

static int too_long(struct trail *trail)
{
	return error_set(trail->error, E2BIG, "unable to follow the command line of the workload's Python: too long");
}

/* --- words ----------------------------------------------------------------------------------------------------- */

static const char *next_word(struct trail *trail)
{
	if (trail->front_count > 0)
		return trail->front[--trail->front_count];
	return *trail->rest ? *trail->rest++ : NULL;
}

static bool push_word(struct trail *trail, const char *word)
{
	if (trail->front_count == FRONT_MAX)
		return false;
	trail->front[trail->front_count++] = word;
	return true;
}

/* Words that were added one by one become the next ones in that order. */
static void turn_words(struct trail *trail, int from)
{
	for (int low = from, high = trail->front_count - 1; low < high; low++, high--) {
		const char *word = trail->front[low];
		trail->front[low] = trail->front[high];
		trail->front[high] = word;
	}
}

/* Room in text for one more character of the word that is being written there. */
static bool put(struct trail *trail, char c)
{
	if (trail->text_used == TEXT_MAX)
		return false;
	trail->text[trail->text_used++] = c;
	return true;
}

static bool put_all(struct trail *trail, const char *from, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!put(trail, from[i]))
			return false;
	return true;
}

static const char *keep_text(struct trail *trail, const char *word)
{
	const char *kept = trail->text + trail->text_used;
	return put_all(trail, word, strlen(word) + 1) ? kept : NULL;
}

/* A string that outlives the trail. */
static char *store(struct trail *trail, const char *word, size_t length)
{
	struct interpreter *interpreter = trail->interpreter;
	if (length >= sizeof interpreter->storage - trail->storage_used)
		return NULL;
	char *stored = interpreter->storage + trail->storage_used;
	memcpy(stored, word, length);
	stored[length] = '\0';
	trail->storage_used += length + 1;
	return stored;
}

static int add_flag(struct trail *trail, const char *word)
{
	struct interpreter *interpreter = trail->interpreter;
	char *stored = interpreter->flag_count < INTERPRETER_FLAGS_MAX ? store(trail, word, strlen(word)) : NULL;
	if (!stored)
		return too_long(trail);
	interpreter->flags[interpreter->flag_count++] = stored;
	return 0;
}

static int add_setting(struct trail *trail, const char *word)
{
	struct interpreter *interpreter = trail->interpreter;
	char *stored = interpreter->setting_count < INTERPRETER_SETTINGS_MAX ? store(trail, word, strlen(word)) : NULL;
	if (!stored)
		return too_long(trail);
	interpreter->settings[interpreter->setting_count++] = stored;
	if (strcmp(word, "PATH") == 0)
		trail->path_variable = NULL;
	if (strncmp(word, "PATH=", 5) == 0)
		trail->path_variable = stored + 5;
	return 0;
}

/* --- names ----------------------------------------------------------------------------------------------------- */

static const char *skip_version(const char *p)
{
	while ((*p >= '0' && *p <= '9') || *p == '.')
		p++;
	return p;
}

/* python, python3, python3.12, and builds that say so in a suffix: t (free-threaded), d and -dbg (debug), m (to 3.7).
 */
static bool is_python_name(const char *name)
{
	if (strncmp(name, "pypy3", 5) == 0)
		return true;
	if (strncmp(name, "python", 6) != 0)
		return false;
	name += 6;
	if (*name == '2' || *name == '3')
		name = skip_version(name);
	while (*name == 't' || *name == 'd' || *name == 'm')
		name++;
	return !*name || strcmp(name, "-dbg") == 0;
}

/* By the name it is called by, or by the name of the file that a link of another name leads to. */
static bool is_python(const struct workload *program)
{
	char real[PATH_MAX];
	if (is_python_name(base_name(program->path)))
		return true;
	/* A binary that calls itself python-something is one that somebody built; a script of such a name is a tool. */
	if (!program->file.is_script && strncmp(base_name(program->path), "python", 6) == 0)
		return true;
	return !program->file.is_script && realpath(program->path, real) && is_python_name(base_name(real));
}

static bool is_shell(const char *path)
{
	const char *name = base_name(path);
	return strcmp(name, "sh") == 0 || strcmp(name, "bash") == 0 || strcmp(name, "dash") == 0;
}

/* --- sys.path[0], as CPython's Modules/main.c and Python/pathconfig.c make it ------------------------------------ */

static uint32_t little_endian(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Is there a zip file's end record at `at`, and room before it for the directory it speaks of? */
static bool is_zip_end(const unsigned char *record, off_t at)
{
	if (memcmp(record, "PK\5\6", 4) != 0)
		return false;
	uint64_t size = little_endian(record + 12), offset = little_endian(record + 16);
	return size + offset <= (uint64_t)at;
}

/* Lib/zipimport.py: a file with the end record in its last 64 KB, whatever stands before the archive. */
static bool is_zip(const char *path)
{
	unsigned char buffer[4096 + ZIP_END_SIZE];
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bool found = false;
	if (fd < 0)
		return false;
	off_t last = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? st.st_size - ZIP_END_SIZE : -1;
	off_t first = last > ZIP_COMMENT_MAX ? last - ZIP_COMMENT_MAX : 0;
	for (off_t at = first; at <= last && !found; at += 4096) {
		ssize_t got = pread(fd, buffer, sizeof buffer, at);
		for (ssize_t i = 0; i + ZIP_END_SIZE <= got && !found; i++)
			found = is_zip_end(buffer + i, at + i);
	}
	(void)close(fd);
	return found;
}

static bool is_folder(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int path0_of_script(struct trail *trail, const char *script)
{
	struct interpreter *interpreter = trail->interpreter;
	char *path0 = interpreter->path0;
	if (is_folder(script) || is_zip(script)) {
		interpreter->path0_kind = PATH0_ALWAYS;
		return copy(path0, PATH_MAX, script) ? 0 : too_long(trail);
	}
	interpreter->path0_kind = PATH0_VALUE;
	/* A script that does not exist keeps its folder as it is written. */
	if (!realpath(script, path0) && !copy(path0, PATH_MAX, script))
		return too_long(trail);
	char *slash = strrchr(path0, '/');
	path0[!slash ? 0 : slash == path0 ? 1 : slash - path0] = '\0';
	return 0;
}

static void path0_of_module(struct interpreter *interpreter)
{
	if (getcwd(interpreter->path0, sizeof interpreter->path0))
		interpreter->path0_kind = PATH0_VALUE;
	else
		interpreter->path0[0] = '\0';
}

/* --- CPython's command line (Python/getopt.c, Python/initconfig.c) ----------------------------------------------- */

/* Options that can change what an import does are repeated; those of talk, of interaction and of hashing are not. */
#define KEPT_LETTERS    "IEsSPOB"
#define DROPPED_LETTERS "uivqdbxhVtR?"

/* One word of options, "-Es" or "-Xdev". *stop: after this word the program's own arguments begin (-c, -m). */
static int read_cluster(struct trail *trail, const char *word, bool *stop)
{
	for (const char *letter = word + 1; *letter; letter++) {
		char flag[3] = {'-', *letter, '\0'};
		int status = 0;
		if (*letter == 'c' || *letter == 'm') {
			*stop = true;
			if (*letter == 'm')
				path0_of_module(trail->interpreter);
			return 0;
		}
		if (*letter == 'X' || *letter == 'W') {
			const char *value = letter[1] ? letter + 1 : next_word(trail);
			status = add_flag(trail, flag);
			return status == 0 && value ? add_flag(trail, value) : status;
		}
		/* An unknown letter goes along: this Python knows it, or refuses to start, here as there. */
		if (!strchr(DROPPED_LETTERS, *letter))
			status = strchr(KEPT_LETTERS, *letter) ? add_flag(trail, flag) : add_flag(trail, word);
		if (status != 0 || !strchr(KEPT_LETTERS DROPPED_LETTERS, *letter))
			return status;
	}
	return 0;
}

static int read_long_option(struct trail *trail, const char *word)
{
	/* All others print something and exit. */
	if (strcmp(word, "--check-hash-based-pycs") == 0)
		(void)next_word(trail);
	return 0;
}

static int read_python_arguments(struct trail *trail)
{
	const char *word;
	bool stop = false;
	int status = 0;
	while (status == 0 && !stop && (word = next_word(trail))) {
		if (strcmp(word, "-") == 0)
			return 0;
		if (strcmp(word, "--") == 0) {
			word = next_word(trail);
			return word && strcmp(word, "-") != 0 ? path0_of_script(trail, word) : 0;
		}
		if (word[0] != '-')
			return path0_of_script(trail, word);
		status = word[1] == '-' ? read_long_option(trail, word) : read_cluster(trail, word, &stop);
	}
	return status;
}

/* The trail ends at this Python. */
static int take_python(struct trail *trail)
{
	struct interpreter *interpreter = trail->interpreter;
	const struct executable *file = &trail->program.file;
	(void)copy(interpreter->path, PATH_MAX, trail->program.path);
	(void)copy(interpreter->argv0, PATH_MAX, trail->argv0);
	interpreter->found = true;
	interpreter->is_wrapper = file->is_script;
	if (file->is_script)
		return 1;
	(void)copy(interpreter->loader, PATH_MAX, file->interpreter);
	int status = read_python_arguments(trail);
	return status == 0 ? 1 : status;
}

/* --- one hop: a program found by name ---------------------------------------------------------------------------- */

/* `name` as a file, or on PATH, becomes the program, called by that name. */
static int go_to(struct trail *trail, const char *name)
{
	enum code code;
	if (!copy(trail->argv0, sizeof trail->argv0, name))
		return too_long(trail);
	if (workload_find(trail->argv0, trail->path_variable, &trail->program, &code, trail->error) == 0)
		return 1;
	return code == CODE_WORKLOAD_NOT_FOUND ? -ENOENT : -EACCES;
}

/* A program that is missing matters only where it would have been a Python; else the workload's own start tells. */
static int go_to_python_or_other(struct trail *trail, const char *name)
{
	int status = go_to(trail, name);
	return status < 0 && status != -E2BIG && !is_python_name(base_name(name)) ? 0 : status;
}

/* --- env ------------------------------------------------------------------------------------------------------- */

/* What a backslash and `c` stand for in env -S, outside single quotes; 0 for what it refuses. */
static char env_escape(char c)
{
	static const char FROM[] = "fnrtv\\#$\"'", TO[] = "\f\n\r\t\v\\#$\"'";
	const char *at = c ? strchr(FROM, c) : NULL;
	return at ? TO[at - FROM] : '\0';
}

struct splitter {
	const char *at;
	char quote; /* ', " or 0 */
	bool in_word, ended;
};

static bool begin(struct trail *trail, struct splitter *split)
{
	if (split->in_word)
		return true;
	split->in_word = true;
	return push_word(trail, trail->text + trail->text_used);
}

static bool finish(struct trail *trail, struct splitter *split)
{
	bool was = split->in_word;
	split->in_word = false;
	return !was || put(trail, '\0');
}

static bool split_escape(struct trail *trail, struct splitter *split)
{
	char c = *++split->at;
	if (split->quote == '\'') {
		if (c == '\\' || c == '\'')
			return begin(trail, split) && put(trail, c);
		split->at--;
		return begin(trail, split) && put(trail, '\\');
	}
	if (c == '_')
		return split->quote ? begin(trail, split) && put(trail, ' ') : finish(trail, split);
	if (c == 'c' && !split->quote) {
		split->ended = true;
		return true;
	}
	c = env_escape(c);
	return c && begin(trail, split) && put(trail, c);
}

static bool split_one(struct trail *trail, struct splitter *split)
{
	char c = *split->at;
	if (c == '\\')
		return split_escape(trail, split);
	if (split->quote ? c == split->quote : c == '\'' || c == '"') {
		split->quote = split->quote ? '\0' : c;
		return begin(trail, split);
	}
	if (split->quote != '\'' && c == '$')
		return false; /* ${NAME}: would need the environment; not told */
	if (!split->quote && strchr(" \t\n\v\f\r", c))
		return finish(trail, split);
	if (!split->in_word && c == '#') {
		split->ended = true;
		return true;
	}
	return begin(trail, split) && put(trail, c);
}

/* The words of `env -S TEXT` (coreutils' rules) become the next ones. */
static bool split_string(struct trail *trail, const char *text)
{
	struct splitter split = {.at = text};
	int from = trail->front_count;
	for (; *split.at && !split.ended; split.at++)
		if (!split_one(trail, &split))
			return false;
	if (split.quote || !finish(trail, &split))
		return false;
	turn_words(trail, from);
	return true;
}

/* The value of a long option, `--name=value` or `--name value`; NULL when `word` is another option. */
static const char *long_value(struct trail *trail, const char *word, const char *name)
{
	size_t length = strlen(name);
	if (strncmp(word, name, length) != 0)
		return NULL;
	if (word[length] == '=')
		return word + length + 1;
	return word[length] ? NULL : next_word(trail);
}

/* Short options of env in one word. 1: go on; 0: the outcome cannot be told; negative: an error. */
static int env_cluster(struct trail *trail, const char *word)
{
	for (const char *letter = word + 1; *letter; letter++) {
		if (*letter == 'v')
			continue;
		if (*letter != 'u' && *letter != 'S')
			return 0;
		const char *value = letter[1] ? letter + 1 : next_word(trail);
		if (!value)
			return 0;
		if (*letter == 'S')
			return split_string(trail, value);
		int status = add_setting(trail, value);
		return status == 0 ? 1 : status;
	}
	return 1;
}

/* One option of env. 1: go on; 0: it changes more than can be repeated (-i, -C), or is unknown; negative: an error. */
static int env_option(struct trail *trail, const char *word)
{
	const char *value;
	if (word[1] != '-')
		return word[1] ? env_cluster(trail, word) : 0;
	if (strcmp(word, "--debug") == 0 || strncmp(word, "--default-signal", 16) == 0 ||
	    strncmp(word, "--ignore-signal", 15) == 0 || strncmp(word, "--block-signal", 14) == 0)
		return 1;
	if ((value = long_value(trail, word, "--split-string")))
		return split_string(trail, value);
	if ((value = long_value(trail, word, "--unset"))) {
		int status = add_setting(trail, value);
		return status == 0 ? 1 : status;
	}
	return 0;
}

static int missing_through_env(struct trail *trail, const char *name)
{
	char first[32];
	size_t length = strcspn(name, " \t");
	if (!name[length] || length >= sizeof first)
		return go_to_python_or_other(trail, name);
	memcpy(first, name, length);
	first[length] = '\0';
	if (!is_python_name(base_name(first)))
		return go_to_python_or_other(trail, name);
	return error_set(trail->error, ENOENT,
	                 "unable to start '%.100s': env takes this for one name; "
	                 "it splits a first line only with -S (#!/usr/bin/env -S %.100s)",
	                 name, name);
}

/* The program is env: the words after it up to the command it starts. */
static int through_env(struct trail *trail)
{
	const char *word;
	bool options = true;
	int status = 1;
	while (status == 1 && (word = next_word(trail))) {
		if (options && strcmp(word, "--") == 0)
			options = false;
		else if (options && word[0] == '-')
			status = env_option(trail, word);
		else if (strchr(word, '=')) {
			options = false;
			status = add_setting(trail, word);
			status = status == 0 ? 1 : status;
		} else
			return missing_through_env(trail, word);
	}
	return status == 1 ? 0 : status;
}

/* --- scripts --------------------------------------------------------------------------------------------------- */

/* How launchers that can be moved write "the folder I lie in", inside double quotes. */
static const struct {
	const char *text;
	bool real; /* links are followed first */
} FOLDERS[] = {
        {"$(dirname -- \"$(realpath -- \"$0\")\")", true},
        {"$(dirname -- \"$(realpath \"$0\")\")", true},
        {"$(dirname \"$(realpath -- \"$0\")\")", true},
        {"$(dirname \"$(realpath \"$0\")\")", true},
        {"$(dirname -- \"$(readlink -f -- \"$0\")\")", true},
        {"$(dirname -- \"$(readlink -f \"$0\")\")", true},
        {"$(dirname \"$(readlink -f \"$0\")\")", true},
        {"$(dirname -- \"$0\")", false},
        {"$(dirname \"$0\")", false},
        {"${0%/*}", false},
};

static bool put_folder(struct trail *trail, bool real)
{
	char folder[PATH_MAX];
	(void)copy(folder, PATH_MAX, trail->program.path);
	if (real && !realpath(trail->program.path, folder))
		return false;
	const char *slash = strrchr(folder, '/');
	if (!slash)
		return put(trail, '.');
	return put_all(trail, folder, (size_t)(slash - folder));
}

/* An expansion inside double quotes: only the known ways to say the script's own folder. Moves *at behind it. */
static bool put_expansion(struct trail *trail, const char **at)
{
	for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++) {
		size_t length = strlen(FOLDERS[i].text);
		if (strncmp(*at, FOLDERS[i].text, length) == 0) {
			*at += length;
			return put_folder(trail, FOLDERS[i].real);
		}
	}
	return false;
}

/* A quoted piece of a shell word; *at stands on the opening quote and ends behind the closing one. */
static bool put_quoted(struct trail *trail, const char **at)
{
	char quote = *(*at)++;
	while (**at && **at != quote) {
		if (quote == '"' && (**at == '$' || **at == '`')) {
			if (!put_expansion(trail, at))
				return false;
			continue;
		}
		if (quote == '"' && **at == '\\' && strchr("$`\"\\", (*at)[1]) && (*at)[1])
			(*at)++;
		if (!put(trail, *(*at)++))
			return false;
	}
	return *(*at)++ == quote;
}

/* One word of a shell command line without expansions, or false. */
static bool put_shell_word(struct trail *trail, const char **at)
{
	const char *word = trail->text + trail->text_used;
	while (**at && !strchr(" \t", **at)) {
		if (**at == '\'' || **at == '"') {
			if (!put_quoted(trail, at))
				return false;
			continue;
		}
		if (strchr("$`;&|<>()*?[]~#{}", **at))
			return false;
		if (**at == '\\' && !*++*at)
			return false;
		if (!put(trail, *(*at)++))
			return false;
	}
	return put(trail, '\0') && push_word(trail, word);
}

/* The words of `'''exec' PYTHON [FLAG]... "$0" "$@"`, in front; to the shell the quotes are an empty string and exec,
 * to Python the line is inside a string. Written by pip (distlib), uv, conda and virtualenv where the path is too long
 * for a first line or has a blank. */
static bool read_exec_line(struct trail *trail, const char *line)
{
	static const char TAIL[] = "\"$0\" \"$@\"";
	int from = trail->front_count;
	if (strncmp(line, "'''exec' ", 9) != 0)
		return false;
	for (line += 9;;) {
		line += strspn(line, " \t");
		if (strncmp(line, TAIL, sizeof TAIL - 1) == 0)
			break;
		if (!*line || !put_shell_word(trail, &line))
			return false;
	}
	turn_words(trail, from);
	return trail->front_count > from;
}

/* The second line of the script, without its newline. */
static bool read_second_line(const char *path, char *line, size_t size)
{
	char buffer[TEXT_MAX];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return false;
	ssize_t got = pread(fd, buffer, sizeof buffer, 0);
	(void)close(fd);
	const char *start = got > 0 ? memchr(buffer, '\n', (size_t)got) : NULL;
	if (!start)
		return false;
	start++;
	size_t left = (size_t)(buffer + got - start);
	const char *end = memchr(start, '\n', left);
	if (!end || (size_t)(end - start) >= size || memchr(start, '\0', (size_t)(end - start)))
		return false;
	memcpy(line, start, (size_t)(end - start));
	line[end - start] = '\0';
	return true;
}

/* A shell script: a Python one in disguise, or none of ours. */
static int through_shell(struct trail *trail)
{
	char line[TEXT_MAX];
	const char *script = keep_text(trail, trail->program.path);
	if (!script)
		return too_long(trail);
	if (!read_second_line(trail->program.path, line, sizeof line) || !push_word(trail, script) ||
	    !read_exec_line(trail, line))
		return 0;
	return go_to_python_or_other(trail, next_word(trail));
}

/* As the kernel: INTERPRETER [ARGUMENT] SCRIPT, then the script's own arguments. */
static int through_script(struct trail *trail)
{
	const struct executable *file = &trail->program.file;
	if (is_shell(file->interpreter) && !file->argument[0])
		return through_shell(trail);
	const char *script = keep_text(trail, trail->program.path);
	const char *argument = file->argument[0] ? keep_text(trail, file->argument) : "";
	if (!script || !argument || !push_word(trail, script) || (*argument && !push_word(trail, argument)))
		return too_long(trail);
	char interpreter[PATH_MAX];
	(void)copy(interpreter, PATH_MAX, file->interpreter);
	(void)copy(trail->argv0, PATH_MAX, interpreter);
	(void)copy(trail->program.path, PATH_MAX, interpreter);
	int status = executable_read(interpreter, &trail->program.file, trail->error);
	return status == 0 ? 1 : status;
}

/* --- the three ways to an interpreter ---------------------------------------------------------------------------- */

int interpreter_from_workload(const struct workload *workload, char *const argv[], const char *path_variable,
                              struct interpreter *interpreter, struct error *error)
{
	struct trail trail = {.interpreter = interpreter, .error = error, .path_variable = path_variable};
	reset(interpreter);
	trail.program = *workload;
	trail.rest = argv[0] ? argv + 1 : argv;
	if (!copy(trail.argv0, sizeof trail.argv0, argv[0] ? argv[0] : ""))
		return too_long(&trail);
	int status = 1;
	for (int hops = 0; status == 1 && hops < HOPS_MAX; hops++) {
		if (is_python(&trail.program))
			return take_python(&trail);
		if (trail.program.file.is_script)
			status = through_script(&trail);
		else if (strcmp(base_name(trail.program.path), "env") == 0)
			status = through_env(&trail);
		else
			status = 0;
	}
	if (status >= 0)
		reset(interpreter);
	return status < 0 ? status : 0;
}

static int find_python(const char *name, const char *path_variable, struct interpreter *interpreter,
                       struct error *error)
{
	struct workload found;
	enum code code;
	reset(interpreter);
	if (workload_find(name, path_variable, &found, &code, error) != 0)
		return code == CODE_WORKLOAD_NOT_FOUND ? -ENOENT : -EACCES;
	if (!copy(interpreter->argv0, sizeof interpreter->argv0, name))
		return error_set(error, ENAMETOOLONG, "unable to use a Python with so long a name");
	(void)copy(interpreter->path, PATH_MAX, found.path);
	interpreter->found = true;
	interpreter->is_wrapper = found.file.is_script;
	if (!found.file.is_script)
		(void)copy(interpreter->loader, PATH_MAX, found.file.interpreter);
	return 0;
}

int interpreter_from_path(const char *path, const char *path_variable, struct interpreter *interpreter,
                          struct error *error)
{
	return find_python(path, path_variable, interpreter, error);
}

int interpreter_from_search(const char *path_variable, struct interpreter *interpreter, struct error *error)
{
	struct error second;
	if (find_python("python3", path_variable, interpreter, error) == 0)
		return 1;
	return find_python("python", path_variable, interpreter, &second) == 0;
}
