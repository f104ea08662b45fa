/* interpreter.c over real files: which Python a command line leads to, told as one line per case. */
#include "interpreter.h"
#include "tap.h"

#include <elf.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS_MAX = 16 };

static char here[PATH_MAX]; /* the test's folder, "@" in what is expected */

static void write_file(const char *name, const char *text, size_t length)
{
	FILE *file = fopen(name, "w");
	if (!file || fwrite(text, 1, length, file) != length || fclose(file) != 0 || chmod(name, 0755) != 0) {
		perror(name);
		exit(99);
	}
}

static void script(const char *name, const char *text)
{
	write_file(name, text, strlen(text));
}

/* A program for the lookup: an ELF header and one segment that is or is not a PT_INTERP. */
static void program(const char *name, const char *loader)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segment;
		char interp[64];
	} image = {0};
	memcpy(image.header.e_ident, ELFMAG, SELFMAG);
	image.header.e_ident[EI_CLASS] = ELFCLASS64;
	image.header.e_ident[EI_DATA] = ELFDATA2LSB;
	image.header.e_type = ET_DYN;
#if defined(__x86_64__)
	image.header.e_machine = EM_X86_64;
#else
	image.header.e_machine = EM_AARCH64;
#endif
	image.header.e_phoff = sizeof image.header;
	image.header.e_phentsize = sizeof image.segment;
	image.header.e_phnum = 1;
	image.segment.p_type = loader ? PT_INTERP : PT_NULL;
	image.segment.p_offset = sizeof image.header + sizeof image.segment;
	image.segment.p_filesz = loader ? strlen(loader) + 1 : 0;
	if (loader)
		strcpy(image.interp, loader);
	write_file(name, (const char *)&image, sizeof image);
}

static void append(char *out, size_t size, const char *text)
{
	size_t used = strlen(out), length = strlen(here);
	const char *at = strstr(text, here);
	if (at)
		(void)snprintf(out + used, size - used, "%.*s@%s", (int)(at - text), text, at + length);
	else
		(void)snprintf(out + used, size - used, "%s", text);
}

/* "PATH as ARGV0 [FLAG]... {SETTING}... value:PATH0" */
static const char *tell(const struct interpreter *interpreter, char *out, size_t size)
{
	static const char *const KINDS[] = {" none", " value:", " always:"};
	out[0] = '\0';
	append(out, size, interpreter->path);
	append(out, size, " as ");
	append(out, size, interpreter->argv0);
	if (interpreter->is_wrapper) {
		append(out, size, " wrapper");
		return out;
	}
	for (int i = 0; i < interpreter->flag_count; i++) {
		append(out, size, " ");
		append(out, size, interpreter->flags[i]);
	}
	for (int i = 0; i < interpreter->setting_count; i++) {
		append(out, size, " {");
		append(out, size, interpreter->settings[i]);
		append(out, size, "}");
	}
	append(out, size, KINDS[interpreter->path0_kind]);
	append(out, size, interpreter->path0);
	return out;
}

/* `line` is split at blanks, _ inside a word stands for a blank, % for an empty word. */
static int split(const char *line, char *buffer, char *argv[WORDS_MAX])
{
	int count = 0;
	strcpy(buffer, line);
	for (char *word = strtok(buffer, " "); word && count < WORDS_MAX - 1; word = strtok(NULL, " ")) {
		if (strcmp(word, "%") == 0)
			*word = '\0';
		for (char *c = word; *c; c++)
			*c = *c == '_' ? ' ' : *c;
		argv[count++] = word;
	}
	argv[count] = NULL;
	return count;
}

/* The command line leads to `want`; NULL: it is not Python; "!TEXT": an error that says TEXT. PATH is bin. */
static void leads(const char *line, const char *want)
{
	static struct interpreter interpreter;
	struct workload workload;
	struct error error = {0};
	enum code code;
	char buffer[1024], *argv[WORDS_MAX], got[8192];
	(void)split(line, buffer, argv);
	if (workload_find(argv[0], "bin", &workload, &code, &error) != 0) {
		ok(false, "%s: %s", line, error.text);
		return;
	}
	int status = interpreter_from_workload(&workload, argv, "bin", &interpreter, &error);
	if (!want) {
		ok(status == 0 && !interpreter.found, "%s: not Python", line);
		if (status != 0)
			printf("# status %d %s\n", status,
			       status > 0 ? tell(&interpreter, got, sizeof got) : error.text);
		return;
	}
	if (want[0] == '!') {
		ok(status < 0 && strstr(error.text, want + 1), "%s: %s", line, error.text);
		return;
	}
	bool found = status == 1 && interpreter.found;
	is_string(found ? tell(&interpreter, got, sizeof got) : error.text, want, line);
}

static void prepare(void)
{
	static const char *const FOLDERS[] = {"bin",       "app",  "app/package", "real",
	                                      "real/deep", "venv", "shims",       "link"};
	for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++)
		(void)mkdir(FOLDERS[i], 0755);
	program("loader", NULL);
	program("bin/python3", "loader");
	program("bin/env", NULL);
	program("bin/sh", NULL);
	program("bin/bash", NULL);
	program("bin/nice", NULL);
	program("bin/python3.12t", NULL);
	program("bin/pypy3.10", NULL);
	(void)symlink("python3", "bin/python");
	(void)symlink("../bin/python3", "venv/python");
	(void)symlink("../bin/python3", "bin/trainer");
	(void)symlink("gone/python3.11", "venv/dangling-python");
	script("bin/python2.7", "#!bin/sh\n");
	script("app/train.py", "print()\n");
	script("real/deep/tool.py", "print()\n");
	(void)symlink("../real/link.py", "app/hop.py");
	(void)symlink("deep/tool.py", "real/link.py");
	char zip[22] = "PK\5\6";
	write_file("app/app.pyz", zip, sizeof zip);
}

static void test_direct(void)
{
	leads("python3 app/train.py --lr 1", "bin/python3 as python3 value:@/app");
	leads("python app/train.py", "bin/python as python value:@/app");
	leads("venv/python app/train.py", "venv/python as venv/python value:@/app");
	leads("trainer app/train.py", "bin/trainer as trainer value:@/app");
	leads("python3.12t app/train.py", "bin/python3.12t as python3.12t value:@/app");
	leads("pypy3.10 app/train.py", "bin/pypy3.10 as pypy3.10 value:@/app");
	leads("python2.7 app/train.py", "bin/python2.7 as python2.7 wrapper");
	leads("sh -c python3", NULL);
	leads("nice python3 app/train.py", NULL);
	leads("python3", "bin/python3 as python3 none");
	leads("python3 -", "bin/python3 as python3 none");
	leads("python3 -- -", "bin/python3 as python3 none");
	leads("python3 -- app/train.py", "bin/python3 as python3 value:@/app");
	leads("python3 --", "bin/python3 as python3 none");
	leads("python3 app/hop.py", "bin/python3 as python3 value:@/real/deep");
	leads("python3 app", "bin/python3 as python3 always:app");
	leads("python3 -I app/app.pyz", "bin/python3 as python3 -I always:app/app.pyz");
	leads("python3 missing/train.py", "bin/python3 as python3 value:missing");
	leads("python3 missing.py", "bin/python3 as python3 value:");
	leads("python3 /missing.py", "bin/python3 as python3 value:/");
	leads("python3 %", "bin/python3 as python3 value:");
}

static void test_flags(void)
{
	leads("python3 -Es app/train.py", "bin/python3 as python3 -E -s value:@/app");
	leads("python3 -I -E -s -S -P -O -B app/train.py", "bin/python3 as python3 -I -E -s -S -P -O -B value:@/app");
	leads("python3 -OO app/train.py", "bin/python3 as python3 -O -O value:@/app");
	leads("python3 -uivqdbxhVtR? app/train.py", "bin/python3 as python3 value:@/app");
	leads("python3 -Xdev -X utf8 app/train.py", "bin/python3 as python3 -X dev -X utf8 value:@/app");
	leads("python3 -uWerror -W ignore app/train.py", "bin/python3 as python3 -W error -W ignore value:@/app");
	leads("python3 -EXdev -m torch.distributed.run app/train.py", "bin/python3 as python3 -E -X dev value:@");
	leads("python3 -mtrain -E", "bin/python3 as python3 value:@");
	leads("python3 -sc import_torch -E", "bin/python3 as python3 -s none");
	leads("python3 -c pass", "bin/python3 as python3 none");
	leads("python3 -W", "bin/python3 as python3 -W none");
	leads("python3 --check-hash-based-pycs never -s app/train.py", "bin/python3 as python3 -s value:@/app");
	leads("python3 --help app/train.py", "bin/python3 as python3 value:@/app");
	leads("python3 -E_-s app/train.py", "bin/python3 as python3 -E -E -s value:@/app");
	leads("python3 -sZ app/train.py", "bin/python3 as python3 -s -sZ value:@/app");
	char line[512] = "python3";
	for (int i = 0; i < 12; i++)
		strcat(line, " -OOO");
	strcat(line, " app/train.py");
	leads(line, "!too long");
}

static void test_scripts(void)
{
	script("bin/torchrun", "#!bin/python3\n");
	leads("torchrun --nproc 2", "bin/python3 as bin/python3 value:@/bin");
	script("bin/vllm", "#!venv/python -Es\n");
	leads("vllm serve", "venv/python as venv/python -E -s value:@/bin");
	(void)symlink("../bin/vllm", "link/vllm");
	leads("link/vllm", "venv/python as venv/python -E -s value:@/bin");
	script("bin/odd", "#!bin/python3 -E -s\n");
	leads("odd", "bin/python3 as bin/python3 -E -E -s value:@/bin");
	script("bin/module", "#!bin/python3 -m\n");
	leads("module", "bin/python3 as bin/python3 value:@");
	script("bin/inner", "#!bin/python3 -u\n");
	script("bin/outer", "#!bin/inner\n");
	leads("outer x", "bin/python3 as bin/python3 value:@/bin");
	script("bin/viawrapper", "#!bin/python2.7\n");
	leads("viawrapper", "bin/python2.7 as bin/python2.7 wrapper");
	script("bin/shell", "#!bin/sh\nexec python3 app/train.py\n");
	leads("shell", NULL);
	script("bin/nicely", "#!bin/nice python3\n");
	leads("nicely", NULL);
	write_file("bin/app.pyz", "#!bin/python3 -I\nPK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 17 + 22 + 1);
	leads("app.pyz", "bin/python3 as bin/python3 -I always:bin/app.pyz");
	write_file("bin/nozip", "#!bin/python3 -I\nPK\5\6\0\0\0\0\0\0\0\0\377\377\0\0\0\0\0\0\0\0", 17 + 22);
	leads("nozip", "bin/python3 as bin/python3 -I value:@/bin");
	char big[70000];
	memset(big, '#', sizeof big);
	memcpy(big, "#!bin/python3\n", 14);
	memcpy(big + sizeof big - 30000, "PK\5\6\0\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0", 20);
	write_file("bin/commented", big, sizeof big);
	leads("commented", "bin/python3 as bin/python3 always:bin/commented");
	memcpy(big + sizeof big - 30000, "####", 4);
	memcpy(big + 20, "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
	write_file("bin/early", big, sizeof big);
	leads("early", "bin/python3 as bin/python3 value:@/bin");
}

static void test_env(void)
{
	script("bin/plain", "#!bin/env python3\n");
	leads("plain", "bin/python3 as python3 value:@/bin");
	script("bin/split", "#!bin/env -S python3 -u -E\n");
	leads("split", "bin/python3 as python3 -E value:@/bin");
	script("bin/vsplit", "#!bin/env -vS A=b\"c d\" python3 -X 'a\\'b' -W \"x\\\"\\_y\"\\_-s # comment\n");
	leads("vsplit", "bin/python3 as python3 -X a'b -W x\" y -s {A=bc d} value:@/bin");
	leads("env python3 app/train.py", "bin/python3 as python3 value:@/app");
	leads("env -- A=1 B= python3 -s app/train.py", "bin/python3 as python3 -s {A=1} {B=} value:@/app");
	leads("env -u HOME -uUSER --unset=X --unset Y -v --debug --default-signal=PIPE python3 app/train.py",
	      "bin/python3 as python3 {HOME} {USER} {X} {Y} value:@/app");
	leads("env PATH=venv python app/train.py", "venv/python as python {PATH=venv} value:@/app");
	leads("env -u PATH no-such-python-here", NULL);
	leads("env --split-string=-S_python3 app/train.py", "bin/python3 as python3 value:@/app");
	leads("env --split-string python3_-s app/train.py", "bin/python3 as python3 -s value:@/app");
	leads("env -i python3 app/train.py", NULL);
	leads("env - python3 app/train.py", NULL);
	leads("env -C app python3 train.py", NULL);
	leads("env --chdir=app python3 train.py", NULL);
	leads("env -u", NULL);
	leads("env A=1", NULL);
	leads("env", NULL);
	leads("env --", NULL);
	leads("env -S", NULL);
	leads("env -S${PYTHON} app/train.py", NULL);
	leads("env -Spython3_'open app/train.py", NULL);
	leads("env -Spython3_\\z app/train.py", NULL);
	leads("env -Spython3_\\", NULL);
	leads("env -Spython3_-s\\c_-E app/train.py", "bin/python3 as python3 -s value:@/app");
	leads("env -Spython3\t-W'a\\b\\\\' app/train.py", "bin/python3 as python3 -W a\\b\\ value:@/app");
	leads("env -S\"python3\"_-W\"\"x%y app/train.py", "bin/python3 as python3 -W x%y value:@/app");
	leads("env nice python3", NULL);
	leads("env nothing-here", NULL);
	leads("env env -S_python3 app/train.py", "bin/python3 as python3 value:@/app");
	leads("env torchrun", "bin/python3 as bin/python3 value:@/bin");
	leads("env python9 x", NULL);
	leads("env python3.99 x", "!'python3.99': it is in no folder of PATH");
	leads("env venv/dangling-python x", NULL);
	script("bin/blank", "#!bin/env python3 -u\n");
	leads("blank", "!env -S python3 -u");
	char settings[512] = "env -Spython=1";
	for (int i = 0; i < 40; i++)
		strcat(settings, "_A=1");
	leads(settings, "!too long");
}

static void exec_line(const char *name, const char *line)
{
	char text[512];
	(void)snprintf(text, sizeof text, "#!bin/sh\n'''exec' %s\n' '''\nimport torch\n", line);
	script(name, text);
}

static void test_exec_lines(void)
{
	(void)mkdir("with blank", 0755);
	program("with blank/python3", NULL);
	program("real/deep/python3", NULL);
	exec_line("bin/pip", "venv/python \"$0\" \"$@\"");
	leads("pip", "venv/python as venv/python value:@/bin");
	exec_line("bin/pip", "\"with blank/python3\" -E \"$0\" \"$@\"");
	leads("pip", "with blank/python3 as with blank/python3 -E value:@/bin");
	exec_line("bin/pip", "'with blank/python3' -I -Xfrozen_modules=off \"$0\" \"$@\" #'''");
	leads("pip", "with blank/python3 as with blank/python3 -I -X frozen_modules=off value:@/bin");
	exec_line("bin/pip", "with\\ blank/pyth'o'\"n\"3 \"$0\" \"$@\"");
	leads("pip", "with blank/python3 as with blank/python3 value:@/bin");
	exec_line("real/deep/uv", "\"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python3' \"$0\" \"$@\"");
	(void)symlink("../real/deep/uv", "bin/uv");
	leads("uv run", "@/real/deep/python3 as @/real/deep/python3 value:@/real/deep");
	exec_line("real/deep/uv", "\"$(dirname \"$(readlink -f \"$0\")\")/python3\" \"$0\" \"$@\"");
	leads("uv run", "@/real/deep/python3 as @/real/deep/python3 value:@/real/deep");
	exec_line("bin/near", "\"${0%/*}/python3\" \"$0\" \"$@\"");
	leads("near", "bin/python3 as bin/python3 value:@/bin");
	exec_line("near", "\"$(dirname -- \"$0\")\"/bin/python3 \"$0\" \"$@\"");
	leads("./near", "./bin/python3 as ./bin/python3 value:@");
	exec_line("bin/pip", "\"$HOME/python3\" \"$0\" \"$@\"");
	leads("pip", NULL);
	exec_line("bin/pip", "$HOME/python3 \"$0\" \"$@\"");
	leads("pip", NULL);
	exec_line("bin/pip", "`which python3` \"$0\" \"$@\"");
	leads("pip", NULL);
	exec_line("bin/pip", "\"`which python3`\" \"$0\" \"$@\"");
	leads("pip", NULL);
	exec_line("bin/pip", "venv/python app/train.py");
	leads("pip", NULL);
	exec_line("bin/pip", "'venv/python \"$0\" \"$@\"");
	leads("pip", NULL);
	exec_line("bin/pip", "\"$0\" \"$@\"");
	leads("pip", NULL);
	exec_line("bin/pip", "python3\\");
	leads("pip", NULL);
	exec_line("bin/pip", "nice \"$0\" \"$@\"");
	leads("pip", NULL);
	exec_line("bin/pip", "/no/such/tool \"$0\" \"$@\"");
	leads("pip", NULL);
	exec_line("bin/pip", "/gone/bin/python3 \"$0\" \"$@\"");
	leads("pip", "!'/gone/bin/python3': /gone/bin/python3 does not exist");
	script("bin/short", "#!bin/sh\n'''exec' python3 \"$0\" \"$@\"");
	leads("short", NULL);
	write_file("bin/nul", "#!bin/sh\n'''exec' python3\0 \"$0\" \"$@\"\n", 38);
	leads("nul", NULL);
	script("bin/flagged", "#!bin/sh -e\n'''exec' python3 \"$0\" \"$@\"\n");
	leads("flagged", NULL);
}

static void test_by_name(void)
{
	static struct interpreter interpreter;
	struct error error = {0};
	char got[8192];
	is_int(interpreter_from_path("venv/python", "bin", &interpreter, &error), 0, "--python with a path");
	is_string(tell(&interpreter, got, sizeof got), "venv/python as venv/python none", "a venv's link stays one");
	is_string(interpreter.loader, "loader", "its loader");
	is_int(interpreter_from_path("python3", "bin", &interpreter, &error), 0, "--python with a name");
	is_string(tell(&interpreter, got, sizeof got), "bin/python3 as python3 none", "found on PATH");
	is_int(interpreter_from_path("bin/python2.7", "bin", &interpreter, &error), 0, "--python that is a script");
	ok(interpreter.is_wrapper && !interpreter.loader[0], "is a wrapper without a loader");
	is_int(interpreter_from_path("venv/dangling-python", "bin", &interpreter, &error), -ENOENT, "a dangling link");
	ok(strstr(error.text, "is a link to venv/gone/python3.11, which does not exist") && !interpreter.found,
	   "is named: %s", error.text);
	is_int(interpreter_from_path("./app", "bin", &interpreter, &error), -EACCES, "a folder");
	is_int(interpreter_from_path("", "bin", &interpreter, &error), -ENOENT, "an empty name");
	is_int(interpreter_from_path("gone", "bin", &interpreter, &error), -ENOENT, "not on PATH");

	is_int(interpreter_from_search("app:bin", &interpreter, &error), 1, "python3 on PATH");
	is_string(interpreter.path, "bin/python3", "is the first one");
	is_int(interpreter_from_search("venv", &interpreter, &error), 1, "only python on PATH");
	is_string(interpreter.path, "venv/python", "serves too");
	is_int(interpreter_from_search("app", &interpreter, &error), 0, "neither");
	ok(!interpreter.found && error.text[0], "none is told: %s", error.text);
	script("shims/python3", "#!bin/bash\n");
	is_int(interpreter_from_search("shims:bin", &interpreter, &error), 1, "a shim comes first");
	ok(interpreter.is_wrapper, "and is not passed by");
	char name[PATH_MAX + 8];
	memset(name, 'x', sizeof name);
	name[sizeof name - 1] = '\0';
	name[0] = '/';
	ok(interpreter_from_path(name, "bin", &interpreter, &error) < 0, "a name longer than a path");
}

/* argv[0] of a Python called by another name, and an empty argv. */
static void test_argv0(void)
{
	static struct interpreter interpreter;
	struct workload workload;
	struct error error;
	enum code code;
	char *none[] = {NULL}, *other[] = {(char[]){"renamed"}, NULL};
	(void)workload_find("bin/python3", "", &workload, &code, &error);
	ok(interpreter_from_workload(&workload, none, "", &interpreter, &error) == 1 && !interpreter.argv0[0],
	   "an empty argv");
	ok(interpreter_from_workload(&workload, other, "", &interpreter, &error) == 1 &&
	           strcmp(interpreter.argv0, "renamed") == 0,
	   "argv[0] is kept as given");
	is_string(interpreter.loader, "loader", "the loader of PROGRAM");
}

int main(void)
{
	char folder[] = "/tmp/kd-interpreter-XXXXXX", command[64];
	if (!mkdtemp(folder) || chdir(folder) != 0 || !getcwd(here, sizeof here))
		return 99;
	prepare();
	test_direct();
	test_flags();
	test_scripts();
	test_env();
	test_exec_lines();
	test_by_name();
	test_argv0();
	(void)chdir("/");
	(void)snprintf(command, sizeof command, "rm -rf %s", folder);
	if (system(command) != 0)
		return 99;
	return done();
}
