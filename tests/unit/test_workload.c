/* workload.c over real files in a folder of its own. */
#include "tap.h"
#include "workload.h"

#include <elf.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OWN_MACHINE    EM_X86_64
#define OTHER_MACHINE  EM_AARCH64
#define OWN_MACHINE_32 EM_386
#else
#define OWN_MACHINE    EM_AARCH64
#define OTHER_MACHINE  EM_X86_64
#define OWN_MACHINE_32 EM_ARM
#endif

static const char *write_bytes(const char *name, const void *bytes, size_t length, mode_t mode)
{
	(void)unlink(name);
	FILE *file = fopen(name, "w");
	if (!file || fwrite(bytes, 1, length, file) != length || fclose(file) != 0 || chmod(name, mode) != 0) {
		perror(name);
		exit(99);
	}
	return name;
}

static const char *write_text(const char *name, const char *text)
{
	return write_bytes(name, text, strlen(text), 0755);
}

/* A little ELF file: header, one PT_LOAD, one PT_INTERP with `interp_size` bytes at its end. */
struct elf_image {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];
	char interp[64];
};

static struct elf_image elf_image(const char *loader)
{
	struct elf_image image = {0};
	memcpy(image.header.e_ident, ELFMAG, SELFMAG);
	image.header.e_ident[EI_CLASS] = ELFCLASS64;
	image.header.e_ident[EI_DATA] = ELFDATA2LSB;
	image.header.e_type = ET_DYN;
	image.header.e_machine = OWN_MACHINE;
	image.header.e_phoff = offsetof(struct elf_image, segments);
	image.header.e_phentsize = sizeof(Elf64_Phdr);
	image.header.e_phnum = 2;
	image.segments[0].p_type = PT_LOAD;
	image.segments[1].p_type = loader ? PT_INTERP : PT_NOTE;
	image.segments[1].p_offset = offsetof(struct elf_image, interp);
	image.segments[1].p_filesz = loader ? strlen(loader) + 1 : 0;
	if (loader)
		strcpy(image.interp, loader);
	return image;
}

static const char *write_elf(const char *name, struct elf_image image)
{
	return write_bytes(name, &image, sizeof image, 0755);
}

static const char *write_elf32(const char *name, uint16_t machine, const char *loader)
{
	struct {
		Elf32_Ehdr header;
		Elf32_Phdr segment;
		char interp[64];
	} image = {0};
	memcpy(image.header.e_ident, ELFMAG, SELFMAG);
	image.header.e_ident[EI_CLASS] = ELFCLASS32;
	image.header.e_ident[EI_DATA] = ELFDATA2LSB;
	image.header.e_type = ET_EXEC;
	image.header.e_machine = machine;
	image.header.e_phoff = sizeof image.header;
	image.header.e_phentsize = sizeof image.segment;
	image.header.e_phnum = 1;
	image.segment.p_type = PT_INTERP;
	image.segment.p_offset = sizeof image.header + sizeof image.segment;
	image.segment.p_filesz = (Elf32_Word)strlen(loader) + 1;
	strcpy(image.interp, loader);
	return write_bytes(name, &image, sizeof image, 0755);
}

static void reads(const char *path, int want, const char *name)
{
	struct executable file;
	struct error error = {0};
	int got = executable_read(path, &file, &error);
	if (got != want)
		printf("# %s: %s\n", path, error.text);
	is_int(got, want, name);
	if (want != 0)
		ok(error.number == -want && error.text[0] && !strchr(error.text, '\n'), "%s: one line (%s)", name,
		   error.text);
}

/* `line` as a script's beginning must be read as interpreter and argument; NULL: refused. */
static void shebang(const char *line, size_t length, const char *interpreter, const char *argument, const char *name)
{
	struct executable file;
	struct error error = {0};
	write_bytes("shebang", line, length, 0755);
	int status = executable_read("shebang", &file, &error);
	if (!interpreter) {
		is_int(status, -ENOEXEC, name);
		return;
	}
	ok(status == 0 && file.is_script && strcmp(file.interpreter, interpreter) == 0 &&
	           strcmp(file.argument, argument) == 0,
	   "shebang: %s ('%s' '%s')", name, file.interpreter, file.argument);
}

static void shebang_text(const char *line, const char *interpreter, const char *argument)
{
	char name[64];
	size_t i;
	for (i = 0; i < sizeof name - 1 && line[i]; i++)
		name[i] = line[i];
	for (size_t j = 0; j < i; j++)
		name[j] = name[j] < 0x20 ? '.' : name[j];
	name[i] = '\0';
	shebang(line, strlen(line), interpreter, argument, name);
}

static void test_shebang(void)
{
	char line[400], want[300];
	shebang_text("#!/bin/sh\n", "/bin/sh", "");
	shebang_text("#!/bin/sh", "/bin/sh", "");
	shebang_text("#! \t/bin/sh -e \t \necho", "/bin/sh", "-e");
	shebang_text("#!/usr/bin/env -S  python3  -u \n", "/usr/bin/env", "-S  python3  -u");
	shebang_text("#!/bin/sh\t-x\n", "/bin/sh", "-x");
	shebang_text("#!/bin/sh -x  ", "/bin/sh", "-x  ");
	shebang_text("#!/bin/sh\r\n", "/bin/sh\r", "");
	shebang_text("#!sh\n", "sh", "");
	shebang_text("#!\n/bin/sh\n", NULL, NULL);
	shebang_text("#!   \t \n", NULL, NULL);
	shebang_text("#!", NULL, NULL);
	shebang_text("#! ", NULL, NULL);
	shebang("#!/bin/sh\0-x\n", 13, "/bin/sh", "", "a NUL ends the interpreter");
	shebang("#!/bin/sh -x\0y\n", 15, "/bin/sh", "-x", "a NUL ends the argument");

	memset(line, 'a', sizeof line);
	memcpy(line, "#!/", 3);
	shebang(line, sizeof line, NULL, NULL, "an interpreter cut at 256 bytes is refused");
	shebang(line, 256, NULL, NULL, "256 bytes without an end are refused");
	line[255] = '\n';
	snprintf(want, sizeof want, "%.253s", line + 2);
	shebang(line, sizeof line, want, "", "253 bytes and a newline are the longest");
	line[255] = ' ';
	shebang(line, sizeof line, want, "", "253 bytes and a blank as well");
	shebang(line, 255, want, "", "253 bytes and the end of the file as well");
	memset(line, ' ', sizeof line);
	memcpy(line, "#!", 2);
	shebang(line, sizeof line, NULL, NULL, "blanks only are refused");
	memset(line, 'x', sizeof line);
	memcpy(line, "#!/bin/sh ", 10);
	snprintf(want, sizeof want, "%.245s", line + 10);
	shebang(line, sizeof line, "/bin/sh", want, "a cut argument is accepted");
}

static void test_elf(void)
{
	struct executable file;
	struct error error;
	struct elf_image image = elf_image("/lib/ld.so");
	reads(write_elf("good", image), 0, "ELF64 of this machine");
	(void)executable_read("good", &file, &error);
	ok(!file.is_script, "ELF is no script");
	is_string(file.interpreter, "/lib/ld.so", "PT_INTERP read");
	reads(write_elf("static", elf_image(NULL)), 0, "no PT_INTERP");
	(void)executable_read("static", &file, &error);
	is_string(file.interpreter, "", "no PT_INTERP is an empty string");
	reads(write_elf32("narrow", OWN_MACHINE_32, "/lib/ld32.so"), 0, "the 32-bit machine the kernel may run");
	(void)executable_read("narrow", &file, &error);
	is_string(file.interpreter, "/lib/ld32.so", "PT_INTERP of ELF32");
	reads(write_elf32("narrow", EM_MIPS, "/lib/ld32.so"), -ENOEXEC, "a foreign 32-bit machine");

	image.header.e_machine = OTHER_MACHINE;
	reads(write_elf("elf", image), -ENOEXEC, "another machine");
	image = elf_image("/lib/ld.so");
	image.header.e_ident[EI_DATA] = ELFDATA2MSB;
	reads(write_elf("elf", image), -ENOEXEC, "the other byte order");
	image = elf_image("/lib/ld.so");
	image.header.e_ident[EI_CLASS] = 7;
	reads(write_elf("elf", image), -ENOEXEC, "no known class");
	image = elf_image("/lib/ld.so");
	image.header.e_type = ET_REL;
	reads(write_elf("elf", image), -ENOEXEC, "an object file");
	image = elf_image("/lib/ld.so");
	image.header.e_phentsize = 1;
	reads(write_elf("elf", image), -ENOEXEC, "a wrong header size");
	image = elf_image("/lib/ld.so");
	image.header.e_phnum = 0;
	reads(write_elf("elf", image), -ENOEXEC, "no program headers");
	image.header.e_phnum = 65535;
	reads(write_elf("elf", image), -ENOEXEC, "more program headers than the kernel takes");
	image.header.e_phnum = 900;
	image.segments[1].p_type = PT_NOTE;
	reads(write_elf("elf", image), -ENOEXEC, "program headers beyond the end");
	image = elf_image("/lib/ld.so");
	image.header.e_phoff = UINT64_MAX - 20;
	reads(write_elf("elf", image), -ENOEXEC, "a table offset that overflows");
	image.header.e_phoff = (uint64_t)INT64_MAX - 3;
	reads(write_elf("elf", image), -ENOEXEC, "a table offset at the end of the range");
	image = elf_image("/lib/ld.so");
	image.segments[1].p_offset = UINT64_MAX;
	reads(write_elf("elf", image), -ENOEXEC, "a PT_INTERP offset out of range");
	image = elf_image("/lib/ld.so");
	image.segments[1].p_filesz = 1;
	reads(write_elf("elf", image), -ENOEXEC, "a PT_INTERP of one byte");
	image.segments[1].p_filesz = PATH_MAX + 1;
	reads(write_elf("elf", image), -ENOEXEC, "a PT_INTERP longer than a path");
	image.segments[1].p_filesz = UINT64_MAX;
	reads(write_elf("elf", image), -ENOEXEC, "a PT_INTERP of huge size");
	image.segments[1].p_filesz = 4;
	reads(write_elf("elf", image), -ENOEXEC, "a PT_INTERP without its NUL");
	image = elf_image("/lib/ld.so");
	for (size_t cut = 4; cut < sizeof image.header; cut += 6) {
		write_bytes("elf", &image, cut, 0755);
		if (executable_read("elf", &file, &error) != -ENOEXEC)
			break;
		if (cut + 6 >= sizeof image.header)
			ok(true, "a header cut at any length");
	}
	write_bytes("elf", &image, sizeof image.header + 60, 0755);
	reads("elf", -ENOEXEC, "a header table cut off");
	reads(write_bytes("elf", &image, 52, 0755), -ENOEXEC, "an ELF64 of the size of an ELF32 header");
}

static void test_files(void)
{
	reads("/proc/self/exe", 0, "this program itself");
	reads("nothing", -ENOENT, "missing");
	reads("good/more", -ENOENT, "below a file");
	reads(write_bytes("plain", "#!/bin/sh\n", 10, 0644), -EACCES, "mode 0644");
	(void)mkdir("folder", 0755);
	reads("folder", -EACCES, "a folder");
	(void)mkfifo("pipe", 0755);
	reads("pipe", -EACCES, "a pipe (and no waiting)");
	reads(write_text("words", "echo hello\n"), -ENOEXEC, "text without #!");
	reads(write_text("empty", ""), -ENOEXEC, "an empty file");
	reads(write_text("byte", "#"), -ENOEXEC, "one byte");
	(void)symlink("nowhere/python", "dangling");
	reads("dangling", -ENOENT, "a dangling link");
	(void)symlink("loop", "loop");
	reads("loop", -ENOENT, "a link to itself");
	struct executable file;
	struct error error;
	(void)executable_read("dangling", &file, &error);
	is_string(error.text, "dangling is a link to nowhere/python, which does not exist",
	          "a dangling link names its target");
	(void)symlink("../dangling", "folder/hop");
	(void)executable_read("folder/hop", &file, &error);
	is_string(error.text, "folder/hop is a link to folder/../nowhere/python, which does not exist",
	          "a chain of links names its end");
	char name[300];
	memset(name, 'n', sizeof name);
	name[sizeof name - 1] = '\0';
	reads(name, -ENAMETOOLONG, "a name longer than a file name may be");
	is_int(executable_read("nothing", &file, NULL), -ENOENT, "no error struct");
}

/* Looks NAME up; `code` -1: found as `path`. `part`: must stand in the message. */
static void finds(const char *name, const char *path_variable, int code, const char *part, const char *test)
{
	struct workload workload;
	struct error error = {0};
	enum code got = CODE_COUNT;
	int status = workload_find(name, path_variable, &workload, &got, &error);
	if (code < 0) {
		ok(status == 0 && strcmp(workload.path, part) == 0, "%s: %s%s", test, workload.path, error.text);
		return;
	}
	ok(status == -1 && (int)got == code && strstr(error.text, part), "%s: %s", test, error.text);
}

enum { FOUND = -1, MISSING = CODE_WORKLOAD_NOT_FOUND, DENIED = CODE_WORKLOAD_NOT_EXECUTABLE };

static void test_search(void)
{
	(void)mkdir("a", 0755);
	(void)mkdir("b", 0755);
	(void)mkdir("a/both", 0755);
	write_text("b/prog", "#!static\n");
	write_text("b/both", "#!static\n");
	write_bytes("a/denied", "#!static\n", 9, 0644);
	write_text("a/broken", "#!/no/such/python\n");
	write_text("b/broken", "#!static\n");
	write_text("a/onlybroken", "#!/no/such/python\n");
	write_text("a/wrong", "words\n");
	write_text("b/wrong", "#!static\n");
	(void)symlink("gone", "a/link");
	finds("", "a:b", MISSING, "empty", "the empty name");
	finds("prog", "a:b", FOUND, "b/prog", "the second folder");
	finds("both", "a:b", FOUND, "b/both", "a folder of that name is passed by");
	finds("both", "a", DENIED, "is a folder", "a folder of that name alone");
	finds("denied", "a:b", DENIED, "mode 0644", "a denial is remembered");
	finds("broken", "a:b", FOUND, "b/broken", "a script without its interpreter is passed by");
	finds("onlybroken", "a:b", MISSING, "/no/such/python does not exist", "and told when nothing else is there");
	finds("wrong", "a:b", DENIED, "neither an ELF", "a file of no format ends the search");
	finds("link", "a:b", MISSING, "is a link to a/gone, which does not exist", "a dangling link on PATH");
	finds("none", "a:b", MISSING, "in no folder of PATH", "nowhere");
	finds("static", "", FOUND, "static", "an empty PATH is the current folder");
	finds("static", "a:", FOUND, "static", "an empty last element");
	finds("static", ":a", FOUND, "static", "an empty first element");
	finds("static", "a::b", FOUND, "static", "an empty element between");
	finds("static", "a:b", MISSING, "PATH", "without one it is not looked for there");
	finds("./static", NULL, FOUND, "./static", "a name with a slash is not searched");
	finds("prog", "good:b", FOUND, "b/prog", "a PATH element that is a file");
	finds("no-such-program", NULL, MISSING, "/usr/local/bin:/bin:/usr/bin", "unset PATH");
	finds("sh", NULL, FOUND, "/bin/sh", "unset PATH has a default");
	char path[2 * PATH_MAX];
	memset(path, 'p', sizeof path);
	memcpy(path + sizeof path - 3, ":b", 3);
	finds("prog", path, FOUND, "b/prog", "a PATH element that is too long is passed by");
	memset(path, '/', sizeof path);
	path[sizeof path - 1] = '\0';
	finds(path, NULL, MISSING, "too long", "a name longer than a path");
	path[300] = '\0';
	memset(path, 'n', 300);
	finds(path, "a", MISSING, "name", "a name longer than a file name");
}

static void test_chain(void)
{
	char name[16], line[32];
	write_text("s1", "#!static\n");
	for (int i = 2; i <= 7; i++) {
		(void)snprintf(name, sizeof name, "s%d", i);
		(void)snprintf(line, sizeof line, "#!s%d\n", i - 1);
		write_text(name, line);
	}
	finds("./s5", NULL, FOUND, "./s5", "five scripts");
	finds("./s6", NULL, DENIED, "5 scripts", "six scripts");
	write_text("self", "#!./self\n");
	finds("./self", NULL, DENIED, "5 scripts", "a script that is its own interpreter");
	write_text("dos", "#!/bin/sh\r\n");
	finds("./dos", NULL, MISSING, "carriage return", "Windows line ends");
	write_text("venv", "#!dangling\n");
	finds("./venv", NULL, MISSING, "its interpreter dangling is a link to nowhere/python, which does not exist",
	      "the interpreter is a dangling link");
	write_text("viadenied", "#!plain\n");
	finds("./viadenied", NULL, DENIED, "its interpreter plain has mode 0644",
	      "the interpreter may not be executed");
	write_text("viafolder", "#!folder\n");
	finds("./viafolder", NULL, DENIED, "folder", "the interpreter is a folder");
	write_text("viatext", "#!words\n");
	finds("./viatext", NULL, DENIED, "its interpreter words is neither", "the interpreter is of no format");
	write_elf("noloader", elf_image("/no/ld-musl.so.1"));
	finds("./noloader", NULL, MISSING, "its dynamic loader /no/ld-musl.so.1 does not exist", "a missing loader");
	write_elf("scriptloader", elf_image("s1"));
	finds("./scriptloader", NULL, DENIED, "loader is a script", "a loader that is a script");
	write_elf("deniedloader", elf_image("plain"));
	finds("./deniedloader", NULL, DENIED, "its dynamic loader plain has mode", "a loader without permission");
	write_elf("goodloader", elf_image("static"));
	finds("./goodloader", NULL, FOUND, "./goodloader", "a loader that is there");
	write_text("odd\nname", "x");
	finds("./odd\nname", NULL, DENIED, "./odd?name", "control characters do not reach the message");
	char deep[1200] = "./";
	for (int i = 0; i < 5; i++)
		memset(deep + 2 + i * 200, '/', 1), memset(deep + 3 + i * 200, 'd', 199);
	finds(deep, NULL, MISSING, "...", "a long path is shown without its middle");
}

/* Runs `test` in a child as uid 65534, or as it is where that is not possible. The child prints nothing; its answer is
 * its exit status. */
static int as_nobody(int (*test)(void))
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(geteuid() == 0 && setresuid(65534, 65534, 65534) != 0 ? 98 : test());
	int status = 0;
	(void)waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 97;
}

static int unsearchable(void)
{
	struct workload workload;
	struct error error;
	enum code code;
	if (workload_find("hidden", "closed", &workload, &code, &error) != -1 || code != CODE_WORKLOAD_NOT_EXECUTABLE)
		return 1;
	return workload_find("prog", "closed:b", &workload, &code, &error) != 0;
}

static int unreadable(void)
{
	struct executable file;
	struct error error;
	return executable_read("secret", &file, &error) != 0 || file.is_script || file.interpreter[0];
}

static int not_for_others(void)
{
	struct executable file;
	struct error error;
	return executable_read("owner", &file, &error) != -EACCES;
}

static int noexec(void)
{
	struct workload workload;
	struct error error;
	enum code code;
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", "folder", "tmpfs", MS_NOEXEC, NULL) != 0)
		return 77;
	write_text("folder/prog", "#!/bin/sh\n");
	if (workload_find("folder/prog", NULL, &workload, &code, &error) != -1 || code != CODE_WORKLOAD_NOT_EXECUTABLE)
		return 1;
	return strstr(error.text, "noexec") == NULL;
}

static void test_permissions(void)
{
	(void)mkdir("closed", 0755);
	write_text("closed/hidden", "#!static\n");
	(void)chmod("closed", 0);
	is_int(as_nobody(unsearchable), 0, "a folder that may not be searched is a denial, and passed by");
	(void)chmod("closed", 0755);
	write_elf("secret", elf_image("/lib/ld.so"));
	(void)chmod("secret", 0111);
	is_int(as_nobody(unreadable), 0, "mode 0111 may be executed");
	write_bytes("owner", "#!static\n", 9, 0744);
	if (geteuid() == 0)
		is_int(as_nobody(not_for_others), 0, "the execute bit of somebody else does not count");
	pid_t pid = fork();
	if (pid == 0)
		_exit(noexec());
	int status = 0;
	(void)waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		ok(true, "a noexec mount # SKIP may not mount here");
	else
		is_int(status, 0, "a noexec mount");
}

int main(void)
{
	char folder[] = "/tmp/kd-workload-XXXXXX", command[64];
	if (!mkdtemp(folder) || chmod(folder, 0755) != 0 || chdir(folder) != 0)
		return 99;
	test_elf();
	test_files();
	test_shebang();
	test_search();
	test_chain();
	test_permissions();
	(void)chdir("/");
	(void)snprintf(command, sizeof command, "rm -rf %s", folder);
	if (system(command) != 0)
		return 99;
	return done();
}
