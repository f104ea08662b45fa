#include "workload.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What the C library of this program would search without a PATH; images of the field keep python in the first. */
#define DEFAULT_PATH "/usr/local/bin:/bin:/usr/bin"

enum {
	HEAD_SIZE = 256,          /* BINPRM_BUF_SIZE, what exec reads of a file (128 before Linux 5.1) */
	HEADERS_SIZE_MAX = 65536, /* Linux fs/binfmt_elf.c, load_elf_phdrs: bytes of program headers at most */
	LINKS_MAX = 40,           /* Linux fs/namei.c, MAXSYMLINKS */
	SHOWN_MAX = 140,          /* bytes of a path in a message: two of them and the sentence fit struct error */
};

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define HOST_DATA ELFDATA2LSB
#else
#define HOST_DATA ELFDATA2MSB
#endif

/* What the kernel under this build runs. The 32-bit ones depend on its configuration, so only exec can tell. */
static const struct {
	unsigned char elf_class;
	uint16_t machine;
} RUNNABLE[] = {
#if defined(__x86_64__)
        {ELFCLASS64, EM_X86_64},
        {ELFCLASS32, EM_386},
#elif defined(__aarch64__)
        {ELFCLASS64, EM_AARCH64},
        {ELFCLASS32, EM_ARM},
#else
#error "name the ELF machine of this architecture"
#endif
};

static const struct {
	uint16_t machine;
	const char *name;
} MACHINE_NAMES[] = {
        {EM_X86_64, "x86-64"}, {EM_AARCH64, "aarch64"}, {EM_386, "i386"},    {EM_ARM, "arm"},
        {EM_PPC64, "ppc64"},   {EM_S390, "s390x"},      {EM_RISCV, "riscv"},
};

/* --- words for people ------------------------------------------------------------------------------------------ */

struct shown {
	char text[SHOWN_MAX];
};

/* A path as one printable piece of a message: control characters as '?', a long one without its middle. */
static const char *show(const char *path, struct shown *shown)
{
	size_t length = strlen(path), half = (SHOWN_MAX - 4) / 2, out = 0;
	for (size_t i = 0; i < length; i++) {
		if (length >= SHOWN_MAX && i == half) {
			memcpy(shown->text + out, "...", 3);
			out += 3;
			i = length - half;
		}
		unsigned char c = (unsigned char)path[i];
		shown->text[out++] = c < 0x20 || c == 0x7f ? '?' : path[i];
	}
	shown->text[out] = '\0';
	return shown->text;
}

/* Between two strings that are known to be paths. */
static void copy_path(char to[PATH_MAX], const char *from)
{
	size_t length = strnlen(from, PATH_MAX - 1);
	memcpy(to, from, length);
	to[length] = '\0';
}

static const char *machine_name(uint16_t machine)
{
	for (size_t i = 0; i < sizeof MACHINE_NAMES / sizeof *MACHINE_NAMES; i++)
		if (MACHINE_NAMES[i].machine == machine)
			return MACHINE_NAMES[i].name;
	return "another kind";
}

/* Replaces *path by what its link holds, as seen from the link's folder. False when it is no link or does not fit. */
static bool follow_link(char path[PATH_MAX])
{
	char target[PATH_MAX];
	ssize_t length = readlink(path, target, sizeof target - 1);
	if (length <= 0)
		return false;
	target[length] = '\0';
	char *slash = target[0] == '/' ? NULL : strrchr(path, '/');
	size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
	if (folder + (size_t)length >= PATH_MAX)
		return false;
	memcpy(path + folder, target, (size_t)length + 1);
	return true;
}

static int explain_missing(const char *path, struct error *error)
{
	struct shown name, end;
	char target[PATH_MAX];
	int links = 0;
	if (strlen(path) < sizeof target) {
		copy_path(target, path);
		while (links < LINKS_MAX && follow_link(target))
			links++;
	}
	if (links == 0)
		return error_set(error, ENOENT, "%s does not exist", show(path, &name));
	return error_set(error, ENOENT, "%s is a link to %s, which does not exist", show(path, &name),
	                 show(target, &end));
}

/* A path that cannot be looked at. A part that is no folder, or a link to itself, is a thing that is not there. */
static int explain_unreachable(const char *path, int number, struct error *error)
{
	struct shown name;
	switch (number) {
	case ENOENT:
		return explain_missing(path, error);
	case ENOTDIR:
		return error_set(error, ENOENT, "%s does not exist: a part of its path is not a folder",
		                 show(path, &name));
	case ELOOP:
		return error_set(error, ENOENT, "%s is a link that leads back to itself", show(path, &name));
	case EACCES:
		return error_set(error, EACCES, "%s lies in a folder that uid %u may not search", show(path, &name),
		                 (unsigned)geteuid());
	default:
		return error_set(error, number, "%s cannot be looked at: %s", show(path, &name), strerror(number));
	}
}

static int explain_denied(const char *path, mode_t mode, int number, struct error *error)
{
	struct shown name;
	struct statvfs mount;
	if (number != EACCES)
		return explain_unreachable(path, number, error);
	if (statvfs(path, &mount) == 0 && (mount.f_flag & ST_NOEXEC))
		return error_set(error, EACCES, "%s lies on a file system that is mounted noexec", show(path, &name));
	return error_set(error, EACCES, "%s has mode %04o, which does not let uid %u execute it (chmod +x)",
	                 show(path, &name), (unsigned)(mode & 07777), (unsigned)geteuid());
}

/* --- one file, as exec sees it --------------------------------------------------------------------------------- */

/* By the effective ids, which exec goes by. The C libraries' own faccessat(AT_EACCESS) takes an EPERM from a seccomp
 * profile that does not know faccessat2 (Docker before 20.10) for the answer; here any refusal but EACCES leads to the
 * older call, which asks by the real ids: the same ones, since this program is not set-uid. */
static bool may_execute(const char *path)
{
	if (syscall(SYS_faccessat2, AT_FDCWD, path, X_OK, AT_EACCESS) == 0)
		return true;
	return errno != EACCES && faccessat(AT_FDCWD, path, X_OK, 0) == 0;
}

/* What exec asks for before it reads a byte. */
static int check_file(const char *path, struct error *error)
{
	struct shown name;
	struct stat st;
	if (stat(path, &st) != 0)
		return explain_unreachable(path, errno, error);
	if (S_ISDIR(st.st_mode))
		return error_set(error, EACCES, "%s is a folder", show(path, &name));
	if (!S_ISREG(st.st_mode))
		return error_set(error, EACCES, "%s is not a regular file", show(path, &name));
	return may_execute(path) ? 0 : explain_denied(path, st.st_mode, errno, error);
}

/* As many bytes as there are, up to `size`; 0 on an error too. */
static size_t read_at(int fd, void *buffer, size_t size, uint64_t offset)
{
	size_t have = 0;
	while (have < size && offset + have <= INT64_MAX) {
		ssize_t got = pread(fd, (char *)buffer + have, size - have, (off_t)(offset + have));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		have += (size_t)got;
	}
	return have;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static size_t skip_blanks(const char *head, size_t from, size_t end)
{
	while (from < end && is_blank(head[from]))
		from++;
	return from;
}

static size_t skip_word(const char *head, size_t from, size_t end)
{
	while (from < end && !is_blank(head[from]) && head[from])
		from++;
	return from;
}

/* The line of `#!` as Linux fs/binfmt_script.c reads it: `head` holds HEAD_SIZE bytes, NUL after the file's end.
 * Without a newline in them the interpreter must be followed by a blank or NUL, or it may have been cut; a cut argument
 * is accepted. A NUL ends the line for the newline's search and for both words. */
static bool read_shebang(const char *head, struct executable *executable)
{
	size_t end = strnlen(head, HEAD_SIZE);
	const char *newline = memchr(head, '\n', end);
	end = newline ? (size_t)(newline - head) : HEAD_SIZE - 1;
	while (end > 2 && is_blank(head[end - 1]))
		end--;
	size_t name = skip_blanks(head, 2, end), name_end = skip_word(head, name, end);
	if (name_end == name || (!newline && name_end == HEAD_SIZE - 1 && head[name_end] && !is_blank(head[name_end])))
		return false;
	memcpy(executable->interpreter, head + name, name_end - name);
	executable->interpreter[name_end - name] = '\0';
	size_t argument = head[name_end] ? skip_blanks(head, name_end, end) : end;
	size_t length = strnlen(head + argument, end - argument);
	memcpy(executable->argument, head + argument, length);
	executable->argument[length] = '\0';
	executable->is_script = true;
	return true;
}

/* The fields of both ELF classes that exec goes by. */
struct elf_file {
	bool wide;
	uint16_t type, machine, entry_size, entry_count;
	uint64_t table;
};

static bool read_elf_header(const char *head, size_t length, struct elf_file *elf)
{
	Elf64_Ehdr wide;
	Elf32_Ehdr narrow;
	elf->wide = head[EI_CLASS] == ELFCLASS64;
	if (length < (elf->wide ? sizeof wide : sizeof narrow))
		return false;
	memcpy(&wide, head, sizeof wide);
	memcpy(&narrow, head, sizeof narrow);
	elf->type = elf->wide ? wide.e_type : narrow.e_type;
	elf->machine = elf->wide ? wide.e_machine : narrow.e_machine;
	elf->entry_size = elf->wide ? wide.e_phentsize : narrow.e_phentsize;
	elf->entry_count = elf->wide ? wide.e_phnum : narrow.e_phnum;
	elf->table = elf->wide ? wide.e_phoff : narrow.e_phoff;
	return true;
}

static bool is_runnable(unsigned char elf_class, uint16_t machine)
{
	for (size_t i = 0; i < sizeof RUNNABLE / sizeof *RUNNABLE; i++)
		if (RUNNABLE[i].elf_class == elf_class && RUNNABLE[i].machine == machine)
			return true;
	return false;
}

/* One program header; true when it could be read. */
static bool read_segment(int fd, const struct elf_file *elf, unsigned index, uint32_t *type, uint64_t *offset,
                         uint64_t *size)
{
	Elf64_Phdr wide;
	Elf32_Phdr narrow;
	uint64_t at = elf->table + (uint64_t)index * elf->entry_size;
	if (at < elf->table)
		return false;
	if (elf->wide) {
		if (read_at(fd, &wide, sizeof wide, at) != sizeof wide)
			return false;
		*type = wide.p_type, *offset = wide.p_offset, *size = wide.p_filesz;
		return true;
	}
	if (read_at(fd, &narrow, sizeof narrow, at) != sizeof narrow)
		return false;
	*type = narrow.p_type, *offset = narrow.p_offset, *size = narrow.p_filesz;
	return true;
}

/* The first PT_INTERP, under the conditions of Linux fs/binfmt_elf.c; none is well (a static program). */
static bool read_loader(int fd, const struct elf_file *elf, char loader[PATH_MAX])
{
	uint32_t type;
	uint64_t offset, size;
	loader[0] = '\0';
	for (unsigned i = 0; i < elf->entry_count; i++) {
		if (!read_segment(fd, elf, i, &type, &offset, &size))
			return false;
		if (type != PT_INTERP)
			continue;
		if (size < 2 || size > PATH_MAX || read_at(fd, loader, (size_t)size, offset) != size ||
		    loader[size - 1])
			return false;
		return true;
	}
	return true;
}

static int read_elf(int fd, const char *head, size_t length, const char *path, struct executable *executable,
                    struct error *error)
{
	struct shown name;
	struct elf_file elf;
	size_t entry_size = head[EI_CLASS] == ELFCLASS64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	if (!read_elf_header(head, length, &elf))
		return error_set(error, ENOEXEC, "%s is a cut-off ELF file", show(path, &name));
	if (head[EI_DATA] != HOST_DATA || !is_runnable((unsigned char)head[EI_CLASS], elf.machine))
		return error_set(error, ENOEXEC, "%s is built for another machine (%s%s; this one is %s)",
		                 show(path, &name), machine_name(elf.machine), elf.wide ? "" : ", 32 bits",
		                 machine_name(RUNNABLE[0].machine));
	if (elf.type != ET_EXEC && elf.type != ET_DYN)
		return error_set(error, ENOEXEC, "%s is an ELF file, but not a program", show(path, &name));
	if (elf.entry_size != entry_size || elf.entry_count == 0 || elf.entry_count * entry_size > HEADERS_SIZE_MAX ||
	    !read_loader(fd, &elf, executable->interpreter)) {
		executable->interpreter[0] = '\0';
		return error_set(error, ENOEXEC, "%s is a damaged ELF file", show(path, &name));
	}
	return 0;
}

static int read_contents(int fd, const char *path, struct executable *executable, struct error *error)
{
	struct shown name;
	char head[HEAD_SIZE] = {0};
	size_t length = read_at(fd, head, sizeof head, 0);
	if (length >= SELFMAG && memcmp(head, ELFMAG, SELFMAG) == 0)
		return read_elf(fd, head, length, path, executable, error);
	if (length >= 2 && head[0] == '#' && head[1] == '!') {
		if (read_shebang(head, executable))
			return 0;
		return error_set(error, ENOEXEC, "%s has a first line #! without a usable interpreter",
		                 show(path, &name));
	}
	if (length == 0)
		return error_set(error, ENOEXEC, "%s is empty or cannot be read", show(path, &name));
	return error_set(error, ENOEXEC, "%s is neither an ELF program nor a script whose first line starts with #!",
	                 show(path, &name));
}

int executable_read(const char *path, struct executable *executable, struct error *error)
{
	memset(executable, 0, sizeof *executable);
	int status = check_file(path, error);
	if (status != 0)
		return status;
	/* O_NONBLOCK: should the file have become a pipe since, the open must not wait. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && errno == EACCES)
		return 0; /* mode 0711: exec may, we may not look; a program then, since a script could not be read */
	if (fd < 0)
		return explain_unreachable(path, errno, error);
	status = read_contents(fd, path, executable, error);
	(void)close(fd);
	return status;
}

/* --- the chain that starts with a file, and the search for it --------------------------------------------------- */

/* The program that an ELF file names to load it: a program itself, and without a loader of its own. */
static int check_loader(const char *path, struct error *error)
{
	struct executable loader;
	struct error cause = {0};
	int status = executable_read(path, &loader, &cause);
	if (status == -ENOENT)
		return error_set(error, ENOENT, "its dynamic loader %s (is it built for another C library or image?)",
		                 cause.text);
	if (status == 0 && loader.is_script)
		return error_set(error, ENOEXEC, "its dynamic loader is a script");
	return status == 0 ? 0 : error_set(error, -status, "its dynamic loader %s", cause.text);
}

static int check_interpreter(const char *path, struct executable *interpreter, struct error *error)
{
	struct error cause = {0};
	size_t length = strlen(path);
	int status = executable_read(path, interpreter, &cause);
	if (status == 0)
		return 0;
	bool dos = status == -ENOENT && length && path[length - 1] == '\r';
	return error_set(error, -status, "its interpreter %s%s", cause.text,
	                 dos ? " (the first line ends in a carriage return: save it with Unix line ends)" : "");
}

/* PATH and everything that exec would need after it. */
static int check_chain(const char *path, struct executable *first, struct error *error)
{
	int status = executable_read(path, first, error);
	if (status != 0)
		return status;
	struct executable next = *first;
	for (int scripts = 0; next.is_script; scripts++) {
		char interpreter[PATH_MAX];
		if (scripts == WORKLOAD_SHEBANG_DEPTH)
			return error_set(error, ELOOP, "more than %d scripts interpret each other", scripts);
		copy_path(interpreter, next.interpreter);
		status = check_interpreter(interpreter, &next, error);
		if (status != 0)
			return status;
	}
	return next.interpreter[0] ? check_loader(next.interpreter, error) : 0;
}

/* FOLDER/NAME, or NAME alone in an empty element, which means the current folder. */
static bool join(char path[PATH_MAX], const char *folder, size_t length, const char *name)
{
	size_t slash = length > 0, name_length = strlen(name);
	if (length + slash + name_length >= PATH_MAX)
		return false;
	memcpy(path, folder, length);
	if (slash)
		path[length] = '/';
	memcpy(path + length + slash, name, name_length + 1);
	return true;
}

/* As execvp: what is missing (an interpreter's absence counts) or denied is passed by, any other failure ends the
 * search. Told in the end is the denial, else the first broken find, else that there is nothing. */
static int search(const char *name, const char *path_variable, struct workload *workload, struct error *error)
{
	struct error cause, denied = {0}, broken = {0};
	struct stat st;
	const char *element = path_variable ? path_variable : DEFAULT_PATH, *end;
	for (;; element = end + 1) {
		end = strchrnul(element, ':');
		if (join(workload->path, element, (size_t)(end - element), name)) {
			int status = check_chain(workload->path, &workload->file, &cause);
			if (status != -ENOENT && status != -EACCES) {
				*error = cause;
				return status;
			}
			if (status == -EACCES && !denied.number)
				denied = cause;
			if (status == -ENOENT && !broken.number && lstat(workload->path, &st) == 0)
				broken = cause;
		}
		if (!*end)
			break;
	}
	*error = denied.number ? denied : broken;
	if (!error->number)
		return error_set(error, ENOENT, "it is in no folder of %s", path_variable ? "PATH" : DEFAULT_PATH);
	return -error->number;
}

static int find(const char *name, const char *path_variable, struct workload *workload, struct error *error)
{
	if (!name[0])
		return error_set(error, ENOENT, "the name is empty");
	if (!strchr(name, '/'))
		return search(name, path_variable, workload, error);
	if (strlen(name) >= sizeof workload->path)
		return error_set(error, ENOENT, "the name is too long for a path");
	copy_path(workload->path, name);
	return check_chain(name, &workload->file, error);
}

int workload_find(const char *name, const char *path_variable, struct workload *workload, enum code *code,
                  struct error *error)
{
	struct error cause = {0};
	struct shown shown;
	memset(workload, 0, sizeof *workload);
	int status = find(name, path_variable, workload, &cause);
	if (status == 0)
		return 0;
	bool missing = status == -ENOENT || status == -ENAMETOOLONG;
	*code = missing ? CODE_WORKLOAD_NOT_FOUND : CODE_WORKLOAD_NOT_EXECUTABLE;
	(void)error_set(error, -status, "unable to start '%s': %s", show(name, &shown), cause.text);
	return -1;
}
