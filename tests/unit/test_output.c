/* The report file over real file systems, real faults where this kernel has them, and errors forced by a seccomp filter
 * where it has not (those tests say "forced"). Needs root for the mounts; what it cannot have is skipped with a reason.
 * Everything happens in a mount namespace of its own. */
#include "output.h"

#include "fuse.h"
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define BASE           "/tmp/kd-test-output"
#define FS_IOC_GOING   _IOR('X', 125, uint32_t) /* ext4 and xfs: stop the file system as a power loss would */
#define GOING_NO_FLUSH 2u

enum { REPORT_SIZE = 3000, RULES_MAX = 16 };

/* ---- errors forced in a child ---- */

struct rule {
	long call;
	int argument; /* -1: whatever its arguments are */
	uint32_t mask, value;
	int error;
};

#define NO_TMPFILE                                                                                                     \
	{                                                                                                              \
		SYS_openat, 2, O_TMPFILE & ~O_DIRECTORY, O_TMPFILE & ~O_DIRECTORY, EOPNOTSUPP                          \
	}
#define NO_LINK                                                                                                        \
	{                                                                                                              \
		SYS_linkat, -1, 0, 0, EPERM                                                                            \
	}
#define NO_RENAME                                                                                                      \
	{                                                                                                              \
		SYS_renameat2, -1, 0, 0, EINVAL                                                                        \
	}

struct filter {
	struct sock_filter code[4 + RULES_MAX * 6];
	unsigned short length;
};

static void emit(struct filter *filter, struct sock_filter instruction)
{
	filter->code[filter->length++] = instruction;
}

static void install(const struct rule *rules, int count)
{
	struct filter filter = {.length = 0};
	for (int i = 0; i < count; i++) {
		const struct rule *rule = &rules[i];
		emit(&filter,
		     (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
		emit(&filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)rule->call, 0,
		                                           rule->argument < 0 ? 1 : 4));
		if (rule->argument >= 0) {
			uint32_t offset = (uint32_t)(offsetof(struct seccomp_data, args) + 8 * (size_t)rule->argument);
			emit(&filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset));
			emit(&filter, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, rule->mask));
			emit(&filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rule->value, 0, 1));
		}
		emit(&filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)rule->error));
	}
	emit(&filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	struct sock_fprog program = {filter.length, filter.code};
	if (count && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)))
		_exit(99);
}

/* ---- one run of reserve and write in a child ---- */

struct run {
	const char *path;
	const struct rule *rules;
	int rule_count;
	uid_t uid;
	mode_t umask;
	long file_limit;               /* RLIMIT_FSIZE; 0: none */
	int barrier_ready, barrier_go; /* pipe ends of a race; 0: none */
	void (*between)(const struct output *);
	char fill;
	size_t size;
	bool traced;
};

struct outcome {
	int reserved, written;
	bool finished, exited;
	char reserve_error[480], note[480], error[480];
	char path[4096];
};

static struct outcome *shared;

/* Children end by _exit: coverage builds link with -Wl,-u,__gcov_dump to have theirs counted. */
extern void __gcov_dump(void) __attribute__((weak));

/* LeakSanitizer cannot run in a traced process; the code under test has no heap. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static void report_bytes(char *bytes, size_t size, char fill)
{
	memset(bytes, fill ? fill : 'r', size);
	bytes[0] = '{';
	bytes[size - 1] = '}';
}

static void prepare(const struct run *run)
{
	if (run->file_limit) {
		struct rlimit limit = {(rlim_t)run->file_limit, (rlim_t)run->file_limit};
		(void)setrlimit(RLIMIT_FSIZE, &limit);
	}
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)umask(run->umask ? run->umask : 022);
	if (run->uid && (setgid(run->uid) || setuid(run->uid)))
		_exit(98);
	install(run->rules, run->rule_count);
	if (run->traced) {
		(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		(void)raise(SIGSTOP);
	}
}

static void act(const struct run *run, struct outcome *outcome)
{
	static struct output output;
	static char bytes[1 << 20];
	struct error error = {0}, note = {0};
	size_t size = run->size ? run->size : REPORT_SIZE;
	char ready = 'r';

	report_bytes(bytes, size, run->fill);
	prepare(run);
	output_init(&output);
	outcome->reserved = output_reserve(&output, run->path, &error);
	memcpy(outcome->reserve_error, error.text, sizeof error.text);
	memcpy(outcome->path, output.path, sizeof outcome->path);
	if (outcome->reserved == 0 && run->between)
		run->between(&output);
	if (run->barrier_go && (write(run->barrier_ready, &ready, 1) != 1 || read(run->barrier_go, &ready, 1) != 1))
		_exit(97);
	if (outcome->reserved == 0) {
		error.text[0] = '\0';
		outcome->written = output_write(&output, bytes, size, &note, &error);
		memcpy(outcome->error, error.text, sizeof error.text);
		memcpy(outcome->note, note.text, sizeof note.text);
		memcpy(outcome->path, output.path, sizeof outcome->path);
	}
	outcome->finished = true;
	output_close(&output);
	output_close(&output);
}

static pid_t start(const struct run *run, struct outcome *outcome)
{
	*outcome = (struct outcome){.reserved = -1000, .written = -1000};
	(void)fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		act(run, outcome);
		if (__gcov_dump && !run->traced)
			__gcov_dump();
		(void)syscall(SYS_exit_group, 0); /* not _exit: sanitizers make system calls of their own there */
		_exit(0);
	}
	return child;
}

static struct outcome *go(const struct run *run)
{
	int status = -1;
	pid_t child = start(run, shared);
	(void)waitpid(child, &status, 0);
	shared->exited = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	if (!shared->exited)
		printf("# child ended with status %#x\n", (unsigned)status);
	return shared;
}

static struct outcome *go_path(const char *path)
{
	return go(&(struct run){.path = path});
}

/* ---- looking ---- */

enum content { ABSENT, WHOLE, PARTIAL };

static enum content content_of(const char *path, size_t size, char fill)
{
	static char got[1 << 20], want[1 << 20];
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? ABSENT : PARTIAL;
	ssize_t count = read(fd, got, sizeof got);
	(void)close(fd);
	report_bytes(want, size, fill);
	return count == (ssize_t)size && memcmp(got, want, size) == 0 ? WHOLE : PARTIAL;
}

static bool whole(const char *path)
{
	return content_of(path, REPORT_SIZE, 0) == WHOLE;
}

static bool is_standard(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, "lost+found") == 0;
}

/* Entries of a directory; with `prefix`, only those that begin so. */
static int entries(const char *directory, const char *prefix)
{
	int count = 0;
	DIR *stream = opendir(directory);
	if (!stream)
		return -1;
	for (struct dirent *entry; (entry = readdir(stream));) {
		if (!is_standard(entry->d_name))
			count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
	}
	(void)closedir(stream);
	return count;
}

static void empty(const char *directory)
{
	char path[4096];
	DIR *stream = opendir(directory);
	if (!stream)
		return;
	for (struct dirent *entry; (entry = readdir(stream));) {
		if (is_standard(entry->d_name))
			continue;
		(void)snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
		(void)remove(path);
	}
	(void)closedir(stream);
}

static bool contains(const char *text, const char *part)
{
	if (strstr(text, part))
		return true;
	printf("# '%s' does not contain '%s'\n", text, part);
	return false;
}

static void skip(const char *name, const char *reason)
{
	(void)ok(true, "%s # skip %s", name, reason);
}

__attribute__((format(printf, 1, 2))) static bool shell(const char *format, ...)
{
	char command[1024];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(command, sizeof command, format, args);
	va_end(args);
	(void)fflush(NULL);
	return system(command) == 0;
}

static bool saved(const struct outcome *outcome)
{
	if (outcome->reserved == 0 && outcome->written == 0)
		return true;
	printf("# reserve %d '%s', write %d '%s'\n", outcome->reserved, outcome->reserve_error, outcome->written,
	       outcome->error);
	return false;
}

static void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");
	if (file) {
		(void)fputs(text, file);
		(void)fclose(file);
	}
}

/* ---- what must hold on every file system ---- */

static void race(const char *place, const char *path, const struct rule *rules, int rule_count)
{
	int both = 0, none = 0, foreign = 0, rounds = 30;
	for (int round = 0; round < rounds; round++) {
		int ready[2], gate[2];
		char token[2] = "gg";
		if (pipe2(ready, O_CLOEXEC) || pipe2(gate, O_CLOEXEC))
			return;
		struct run run = {.path = path,
		                  .rules = rules,
		                  .rule_count = rule_count,
		                  .barrier_ready = ready[1],
		                  .barrier_go = gate[0]};
		pid_t children[2];
		for (int i = 0; i < 2; i++) {
			run.fill = i ? 'b' : 'a';
			children[i] = start(&run, &shared[i]);
		}
		for (int i = 0; i < 2; i++)
			(void)!read(ready[0], token, 1);
		(void)!write(gate[1], "gg", 2);
		for (int i = 0; i < 2; i++)
			(void)waitpid(children[i], NULL, 0);
		int wins = (shared[0].written == 0) + (shared[1].written == 0);
		int loser = shared[0].written == 0 ? shared[1].written : shared[0].written;
		both += wins == 2;
		none += wins == 0;
		foreign +=
		        loser != -EEXIST || content_of(path, REPORT_SIZE, shared[0].written == 0 ? 'a' : 'b') != WHOLE;
		(void)unlink(path);
		for (int i = 0; i < 2; i++)
			(void)close(ready[i]), (void)close(gate[i]);
	}
	if (both || none || foreign)
		printf("# both %d, none %d, wrong %d of %d\n", both, none, foreign, rounds);
	(void)ok(!both && !none && !foreign,
	         "%s: of two that race for one name exactly one wins, the other hears EEXIST (%d rounds)", place,
	         rounds);
}

static void occupy(const struct output *output)
{
	int fd = openat(output->dir_fd, output->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	(void)!write(fd, "theirs", 6);
	(void)close(fd);
}

static bool theirs(const char *path)
{
	char text[16] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof text);
	(void)close(fd);
	return count == 6 && memcmp(text, "theirs", 6) == 0;
}

/* The suite proper, with `rules` in force: these choose the way. */
static void suite(const char *place, const char *directory, const struct rule *rules, int rule_count, const char *note)
{
	char path[4096], link_path[4096];
	struct stat found = {0};
	(void)snprintf(path, sizeof path, "%s/report.json", directory);
	(void)snprintf(link_path, sizeof link_path, "%s/dangling.json", directory);
	struct run run = {.path = path, .rules = rules, .rule_count = rule_count};

	struct outcome *outcome = go(&run);
	(void)ok(saved(outcome) && whole(path), "%s: a report is saved whole", place);
	(void)ok(note ? contains(outcome->note, note) : contains(outcome->note, "") && !outcome->note[0],
	         "%s: the note is %s", place, note ? note : "empty");
	(void)stat(path, &found);
	(void)ok((found.st_mode & 07777) == 0644 && found.st_nlink == 1, "%s: mode 0644 less the umask, one name",
	         place);
	(void)ok(entries(directory, "") == 1, "%s: nothing is left beside it", place);
	outcome = go(&run);
	(void)ok(outcome->reserved == -EEXIST && whole(path), "%s: a second run is refused, the report untouched",
	         place);
	(void)unlink(path);

	run.umask = 077;
	(void)ok(saved(go(&run)) && stat(path, &found) == 0 && (found.st_mode & 07777) == 0600,
	         "%s: umask 077 gives 0600", place);
	run.umask = 0;
	(void)unlink(path);

	run.between = occupy;
	outcome = go(&run);
	(void)ok(outcome->reserved == 0 && outcome->written == -EEXIST && theirs(path) && entries(directory, "") == 1,
	         "%s: a name taken during the check stays theirs", place);
	(void)unlink(path);

	run.path = directory;
	outcome = go(&run);
	(void)ok(saved(outcome) && whole(outcome->path) && entries(directory, "kd-preflight-") == 2,
	         "%s: a fresh name taken during the check is replaced by another", place);
	run.between = NULL;
	empty(directory);
	bool two = saved(go(&run));
	two = saved(go(&run)) && two;
	(void)ok(two && entries(directory, "kd-preflight-") == 2 && entries(directory, "") == 2,
	         "%s: the directory form gives every run its own file", place);
	empty(directory);

	if (symlink("nowhere", link_path) == 0) {
		run.path = link_path;
		outcome = go(&run);
		(void)ok(outcome->reserved == -EEXIST && contains(outcome->reserve_error, "leads nowhere") &&
		                 entries(directory, "") == 1,
		         "%s: a dangling link is refused", place);
		(void)unlink(link_path);
	}
	race(place, path, rules, rule_count);
	(void)ok(entries(directory, "") == 0, "%s: the races left nothing", place);
}

static const struct rule NOTHING[] = {NO_TMPFILE, NO_LINK, NO_RENAME};

static void ways(const char *place, const char *directory)
{
	char name[128];
	static const struct {
		const char *name;
		struct rule rules[3];
		int count;
		const char *note;
	} WAYS[] = {
	        {"way 1", {{0}}, 0, NULL},
	        {"way 1 without /proc (forced ENOENT)",
	         {{SYS_linkat, 4, AT_SYMLINK_FOLLOW, AT_SYMLINK_FOLLOW, ENOENT}},
	         1,
	         NULL},
	        {"way 1 without AT_EMPTY_PATH (forced ENOENT)",
	         {{SYS_linkat, 4, AT_EMPTY_PATH, AT_EMPTY_PATH, ENOENT}},
	         1,
	         NULL},
	        {"way 1 to 2 (forced: no descriptor can be linked)",
	         {{SYS_linkat, 4, AT_EMPTY_PATH | AT_SYMLINK_FOLLOW, AT_SYMLINK_FOLLOW, ENOENT},
	          {SYS_linkat, 4, AT_EMPTY_PATH | AT_SYMLINK_FOLLOW, AT_EMPTY_PATH, ENOENT}},
	         2,
	         NULL},
	        {"way 2 (forced)", {NO_TMPFILE}, 1, NULL},
	        {"way 3 (forced)", {NO_TMPFILE, NO_LINK}, 2, NULL},
	        {"way 3 after link answered EIO (forced)", {NO_TMPFILE, {SYS_linkat, -1, 0, 0, EIO}}, 2, NULL},
	        {"way 4 (forced)", {NO_TMPFILE, NO_LINK, NO_RENAME}, 3, "in place"},
	        {"no fsync (forced EINVAL)", {{SYS_fsync, -1, 0, 0, EINVAL}}, 1, "no fsync"},
	        {"no fsync (forced EOPNOTSUPP), way 4",
	         {NO_LINK, NO_RENAME, {SYS_fsync, -1, 0, 0, EOPNOTSUPP}},
	         3,
	         "no fsync"},
	};
	for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
		(void)snprintf(name, sizeof name, "%s, %s", place, WAYS[i].name);
		suite(name, directory, WAYS[i].rules, WAYS[i].count, WAYS[i].note);
	}
}

/* A failure with `number` when `rules` hold: the report is not saved, nothing is left. */
static void refuses(const char *name, const char *directory, const struct rule *rules, int count, int number)
{
	char path[4096];
	(void)snprintf(path, sizeof path, "%s/report.json", directory);
	struct outcome *outcome = go(&(struct run){.path = path, .rules = rules, .rule_count = count});
	if (outcome->written != -number)
		printf("# reserve %d '%s', write %d '%s'\n", outcome->reserved, outcome->reserve_error,
		       outcome->written, outcome->error);
	(void)ok(outcome->reserved == 0 && outcome->written == -number && outcome->error[0] &&
	                 !strchr(outcome->error, '\n'),
	         "%s: not saved (%s)", name, strerror(number));
	(void)ok(entries(directory, "") == 0, "%s: nothing is left", name);
}

static void test_forced_failures(const char *directory)
{
	const struct rule sync_error = {SYS_fsync, -1, 0, 0, EIO}, close_error = {SYS_close, -1, 0, 0, EDQUOT};
	struct rule rules[4] = {sync_error};
	refuses("fsync fails, way 1 (forced)", directory, rules, 1, EIO);
	rules[1] = (struct rule)NO_TMPFILE;
	refuses("fsync fails, way 2 (forced)", directory, rules, 2, EIO);
	rules[2] = (struct rule)NO_LINK, rules[3] = (struct rule)NO_RENAME;
	rules[0] = close_error;
	refuses("close fails, way 1 (forced)", directory, rules, 1, EDQUOT);
	refuses("close fails, way 2 (forced)", directory, rules, 2, EDQUOT);
	rules[0] = (struct rule){SYS_linkat, -1, 0, 0, ENOSPC};
	refuses("no room for the name, way 1 (forced)", directory, rules, 1, ENOSPC);
	refuses("no room for the name, way 2 (forced)", directory, rules, 2, ENOSPC);
	rules[0] = (struct rule){SYS_renameat2, -1, 0, 0, EIO};
	refuses("the rename meets a bad disk, way 3 (forced)", directory, rules, 3, EIO);
	rules[0] = (struct rule){SYS_write, -1, 0, 0, EINTR};
	refuses("write answers EINTR for ever (forced)", directory, rules, 1, EINTR);
	rules[0] = (struct rule){SYS_fsync, -1, 0, 0, EINTR};
	refuses("fsync answers EINTR for ever (forced)", directory, rules, 1, EINTR);
}

/* The directory's own descriptor is the first that output_reserve opens: the lowest free number. */
static void test_directory_sync(const char *directory)
{
	int lowest = dup(0);
	(void)close(lowest);
	struct rule rules[4] = {{SYS_fsync, 0, UINT32_MAX, (uint32_t)lowest, EIO}, NO_TMPFILE, NO_LINK, NO_RENAME};
	refuses("fsync of the directory fails, way 1 (forced)", directory, rules, 1, EIO);
	refuses("fsync of the directory fails, way 2 (forced)", directory, rules, 2, EIO);
	refuses("fsync of the directory fails, way 3 (forced)", directory, rules, 3, EIO);
	refuses("fsync of the directory fails, way 4 (forced)", directory, rules, 4, EIO);
	rules[0].error = EINVAL;
	char path[4096];
	(void)snprintf(path, sizeof path, "%s/report.json", directory);
	struct outcome *outcome = go(&(struct run){.path = path, .rules = rules, .rule_count = 1});
	(void)ok(saved(outcome) && contains(outcome->note, "no fsync") && whole(path),
	         "a directory that cannot be synced (forced EINVAL): saved, with a note");
	(void)unlink(path);
	rules[1] = (struct rule){SYS_unlinkat, -1, 0, 0, EPERM};
	rules[0].error = EIO;
	outcome = go(&(struct run){.path = path, .rules = rules, .rule_count = 2});
	(void)ok(outcome->written == -EIO && contains(outcome->error, "could not be removed"),
	         "a name that cannot be taken away again is told (forced)");
	(void)unlink(path);
}

/* ---- targets ---- */

static void refused(const char *path, int number, const char *part, const char *name)
{
	struct outcome *outcome = go_path(path);
	bool right = outcome->reserved == -number && contains(outcome->reserve_error, part);
	if (!right)
		printf("# reserve %d: '%s'\n", outcome->reserved, outcome->reserve_error);
	(void)ok(right && !strchr(outcome->reserve_error, '\n'), "%s", name);
}

static void test_targets(const char *directory)
{
	char path[8192], long_name[300], long_path[5000];
	refused("/dev/null", EEXIST, "a device", "/dev/null is refused as a device");
	refused("/dev/stdout", EEXIST, "a symbolic link", "/dev/stdout is refused as a link");
	(void)snprintf(path, sizeof path, "%s/pipe", directory);
	(void)mkfifo(path, 0600);
	refused(path, EEXIST, "a pipe", "a pipe is refused, without waiting for its reader");
	(void)unlink(path);

	struct sockaddr_un address = {.sun_family = AF_UNIX};
	(void)snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", directory);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)bind(fd, (struct sockaddr *)&address, sizeof address);
	refused(address.sun_path, EEXIST, "a socket", "a socket is refused");
	(void)close(fd);
	(void)unlink(address.sun_path);

	refused("", ENOENT, "empty", "an empty path is refused");
	(void)snprintf(path, sizeof path, "%s/missing/report.json", directory);
	refused(path, ENOENT, "make its directory first", "a file in a missing directory is refused");
	(void)snprintf(path, sizeof path, "%s/missing/deeper/", directory);
	refused(path, ENOENT, "make its directory first", "only the last directory of a path is made");
	memset(long_name, 'n', sizeof long_name - 1);
	long_name[sizeof long_name - 1] = '\0';
	(void)snprintf(path, sizeof path, "%s/%s", directory, long_name);
	refused(path, ENAMETOOLONG, "255 bytes", "a name of 299 bytes is refused");
	memset(long_path, '/', sizeof long_path - 1);
	long_path[sizeof long_path - 1] = '\0';
	refused(long_path, ENAMETOOLONG, "shorter path", "a path of 4999 bytes is refused");
	(void)snprintf(path, sizeof path, "%s/%.255s", directory, long_name);
	(void)ok(saved(go_path(path)) && whole(path), "a name of 255 bytes is taken (the control)");
	(void)unlink(path);
	(void)snprintf(path, sizeof path, "%s/bad\nname\033[31m", directory);
	struct outcome *outcome = go_path(path);
	(void)ok(saved(outcome) && whole(path) && contains(outcome->path, "bad?name?[31m"),
	         "control characters in a path are kept from the terminal, and the file gets its name");
	refused(path, EEXIST, "bad?name?", "the same in a message");
	(void)unlink(path);
}

static void test_new_directories(const char *directory)
{
	char path[8192], inside[4096];
	struct stat found;
	(void)snprintf(path, sizeof path, "%s/new///", directory);
	(void)snprintf(inside, sizeof inside, "%s/new", directory);
	struct outcome *outcome = go(&(struct run){.path = path, .umask = 027});
	(void)ok(saved(outcome) && whole(outcome->path) && stat(inside, &found) == 0 && (found.st_mode & 0777) == 0750,
	         "a trailing '/' makes the directory, less the umask");
	(void)ok(saved(go_path(path)) && entries(inside, "kd-preflight-") == 2, "and uses it when it is there");
	(void)ok(saved(go_path(inside)) && entries(inside, "kd-preflight-") == 3, "an existing one needs no '/'");
	empty(inside);
	(void)rmdir(inside);
	const struct rule none[] = {{SYS_openat, 2, O_CREAT, O_CREAT, ENOSPC}, NO_TMPFILE};
	outcome = go(&(struct run){.path = path, .rules = none, .rule_count = 2});
	(void)ok(outcome->reserved == -ENOSPC && entries(directory, "") == 0,
	         "a directory made for nothing is taken away again (forced)");
	put(inside, "theirs");
	refused(path, ENOTDIR, "unable to open the directory", "a file with a trailing '/' is refused");
	(void)unlink(inside);
	(void)symlink("nowhere", inside);
	refused(path, EEXIST, "leads nowhere", "a dangling link with a trailing '/' is refused");
	(void)unlink(inside);
	(void)symlink(".", inside);
	(void)ok(saved(go_path(inside)) && entries(directory, "kd-preflight-") == 1,
	         "a link to a directory is a directory");
	(void)unlink(inside);
	empty(directory);
	if (chdir(directory) == 0) {
		(void)ok(saved(go_path("plain.json")) && whole("plain.json"),
		         "a bare name lands in the current directory");
		(void)ok(saved(go_path(".")) && entries(".", "kd-preflight-") == 1,
		         "so does the directory form of '.'");
		(void)ok(saved(go_path("sub/")) && entries("sub", "kd-preflight-") == 1, "and a bare new directory");
		empty("sub");
		(void)rmdir("sub");
		(void)chdir("/");
	}
	empty(directory);
}

static void test_permissions(const char *directory)
{
	char path[4096];
	struct run run = {.path = path, .uid = 12345};
	(void)snprintf(path, sizeof path, "%s/report.json", directory);
	(void)chmod(directory, 0555);
	struct outcome *outcome = go(&run);
	(void)ok(outcome->reserved == -EACCES && contains(outcome->reserve_error, "this user may write to"),
	         "mode 0555 as uid 12345: refused before anything runs");
	(void)chmod(directory, 0777);
	(void)ok(saved(go(&run)) && whole(path), "mode 0777 as uid 12345: saved (the control)");
	(void)unlink(path);
	(void)chmod(directory, 0333);
	outcome = go(&run);
	(void)ok(saved(outcome) && whole(path) && contains(outcome->note, "may not be read"),
	         "mode 0333 (no right to read the directory): saved, with a note");
	(void)unlink(path);
	run.rules = NOTHING, run.rule_count = 3;
	outcome = go(&run);
	(void)ok(saved(outcome) && whole(path), "mode 0333, way 4 (forced): saved");
	(void)unlink(path);
	(void)chmod(directory, 01777);
}

/* ---- real shortages ---- */

static void test_full(void)
{
	const char *directory = BASE "/full", *path = BASE "/full/report.json";
	struct run run = {.path = path, .size = 20000};
	(void)mkdir(directory, 0755);
	if (mount("tmpfs", directory, "tmpfs", 0, "size=4k") != 0) {
		skip("a full tmpfs", "no mount");
		return;
	}
	for (int way = 0; way < 3; way++) {
		run.rules = NOTHING, run.rule_count = way;
		struct outcome *outcome = go(&run);
		(void)ok(outcome->reserved == 0 && outcome->written == -ENOSPC && contains(outcome->error, "make room"),
		         "tmpfs of 4 KB, way %d%s: ENOSPC is told", way + 1, way ? " (forced)" : "");
		(void)ok(entries(directory, "") == 0, "tmpfs of 4 KB, way %d: nothing is left", way + 1);
	}
	(void)ok(saved(go_path(path)) && whole(path), "tmpfs of 4 KB: 3,000 bytes fit (the control)");
	(void)umount2(directory, MNT_DETACH);

	(void)mount("tmpfs", directory, "tmpfs", 0, "nr_inodes=1");
	struct outcome *outcome = go_path(path);
	(void)ok(outcome->reserved == -ENOSPC, "a tmpfs without inodes is refused before anything runs");
	(void)umount2(directory, MNT_DETACH);
}

static void test_limits(const char *directory)
{
	char path[4096];
	(void)snprintf(path, sizeof path, "%s/report.json", directory);
	for (int way = 0; way < 3; way++) {
		struct run run = {.path = path, .file_limit = 1024, .rules = NOTHING, .rule_count = way};
		struct outcome *outcome = go(&run);
		(void)ok(outcome->reserved == 0 && outcome->written == -EFBIG && entries(directory, "") == 0,
		         "RLIMIT_FSIZE of 1 KB, way %d: told, nothing is left", way + 1);
	}
	(void)ok(saved(go(&(struct run){.path = path, .file_limit = REPORT_SIZE})) && whole(path),
	         "RLIMIT_FSIZE of exactly the report: saved (the control)");
	(void)unlink(path);
}

static void test_read_only(const char *directory)
{
	const char *bound = BASE "/readonly";
	(void)mkdir(bound, 0755);
	if (mount(directory, bound, NULL, MS_BIND, NULL) ||
	    mount(NULL, bound, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL)) {
		skip("a read-only mount", "no bind mount");
		return;
	}
	refused(BASE "/readonly/report.json", EROFS, "writable file system", "a read-only bind mount is refused");
	refused(BASE "/readonly/new/", EROFS, "writable file system", "and no directory is made on it");
	(void)umount2(bound, MNT_DETACH);
	(void)ok(saved(go_path(BASE "/readonly/report.json")), "writable again: saved (the control)");
	empty(bound);
}

/* ---- other file systems ---- */

static bool loop_mount(const char *kind, const char *make, const char *directory, int megabytes)
{
	(void)mkdir(directory, 0755);
	return shell("exec >/dev/null 2>&1; truncate -s %dM " BASE "/%s.img && %s " BASE
	             "/%s.img && mount -o loop -t %s " BASE "/%s.img %s && chmod 1777 %s",
	             megabytes, kind, make, kind, kind, kind, directory, directory);
}

static void test_file_systems(void)
{
	static const struct {
		const char *kind, *make;
		int megabytes;
		const char *note;
	} KINDS[] = {
	        {"ext4", "mkfs.ext4 -q -F", 16, NULL},
	        {"ext2", "mkfs.ext2 -q -F", 16, NULL},
	        {"xfs", "mkfs.xfs -q -f", 320, NULL},
	        {"btrfs", "mkfs.btrfs -q -f", 128, NULL},
	};
	for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
		char directory[256];
		(void)snprintf(directory, sizeof directory, BASE "/%s", KINDS[i].kind);
		if (!loop_mount(KINDS[i].kind, KINDS[i].make, directory, KINDS[i].megabytes)) {
			skip(KINDS[i].kind, "cannot be made or mounted here (mkfs, loop device, kernel)");
			continue;
		}
		suite(KINDS[i].kind, directory, NULL, 0, KINDS[i].note);
		(void)umount2(directory, MNT_DETACH);
	}
}

static void test_overlay(void)
{
	if (!shell("exec 2>/dev/null; cd " BASE " && mkdir -p lower upper work overlay && "
	           "mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work overlay")) {
		skip("overlay", "no overlay mount here");
		return;
	}
	suite("overlay", BASE "/overlay", NULL, 0, NULL);
	put(BASE "/lower/below.json", "theirs");
	refused(BASE "/overlay/below.json", EEXIST, "a file", "overlay: a file of the lower layer is refused");
	(void)umount2(BASE "/overlay", MNT_DETACH);
}

static void on_fuse(const char *name, struct fuse_rig rig, const char *note)
{
	const char *directory = BASE "/fuse";
	(void)mkdir(directory, 0755);
	int result = fuse_start(&rig, directory);
	if (result < 0) {
		skip(name, strerror(-result));
		return;
	}
	suite(name, directory, NULL, 0, note);
	fuse_stop(&rig, directory);
}

static void on_bad_fuse(const char *name, struct fuse_rig rig, int number)
{
	const char *directory = BASE "/fuse";
	int result = fuse_start(&rig, directory);
	if (result < 0) {
		skip(name, strerror(-result));
		return;
	}
	refuses(name, directory, NULL, 0, number);
	fuse_stop(&rig, directory);
}

#define FUSE_NO_TMPFILE [FUSE_TMPFILE] = ENOSYS
#define FUSE_NO_LINK    [FUSE_LINK] = ENOSYS
#define FUSE_NO_RENAME  [FUSE_RENAME] = ENOSYS, [FUSE_RENAME2] = ENOSYS

static void test_fuse(void)
{
	on_fuse("FUSE with all ways", (struct fuse_rig){.server = 0}, NULL);
	on_fuse("FUSE without O_TMPFILE", (struct fuse_rig){.errors = {FUSE_NO_TMPFILE}}, NULL);
	on_fuse("FUSE without link", (struct fuse_rig){.errors = {FUSE_NO_TMPFILE, FUSE_NO_LINK}}, NULL);
	on_fuse("FUSE without link and rename",
	        (struct fuse_rig){.errors = {FUSE_NO_TMPFILE, FUSE_NO_LINK, FUSE_NO_RENAME}}, "in place");
	on_fuse("FUSE with link and rename not permitted",
	        (struct fuse_rig){.errors = {FUSE_NO_TMPFILE, [FUSE_LINK] = EPERM, [FUSE_RENAME2] = EPERM}},
	        "in place");
	/* ENOSYS to an fsync means to the kernel that there is nothing to do, and success to us (fs/fuse/file.c). */
	on_fuse("FUSE without fsync",
	        (struct fuse_rig){.errors = {FUSE_NO_TMPFILE, [FUSE_FSYNC] = ENOSYS, [FUSE_FSYNCDIR] = ENOSYS}}, NULL);
	on_fuse("FUSE where fsync is not supported",
	        (struct fuse_rig){.errors = {FUSE_NO_TMPFILE, [FUSE_FSYNC] = EOPNOTSUPP, [FUSE_FSYNCDIR] = EINVAL}},
	        "no fsync");
	on_bad_fuse("FUSE that fails at close", (struct fuse_rig){.errors = {FUSE_NO_TMPFILE, [FUSE_FLUSH] = EDQUOT}},
	            EDQUOT);
	on_bad_fuse("FUSE that fails at close, with O_TMPFILE", (struct fuse_rig){.errors = {[FUSE_FLUSH] = EIO}}, EIO);
	on_bad_fuse("FUSE, way 4, that takes half a write",
	            (struct fuse_rig){.errors = {FUSE_NO_TMPFILE, FUSE_NO_LINK, FUSE_NO_RENAME}, .in_place = -1},
	            ENOSPC);
	on_bad_fuse("FUSE, way 4, whose disk is bad",
	            (struct fuse_rig){.errors = {FUSE_NO_TMPFILE, FUSE_NO_LINK, FUSE_NO_RENAME}, .in_place = EIO}, EIO);
	on_bad_fuse("FUSE that fails at fsync", (struct fuse_rig){.errors = {FUSE_NO_TMPFILE, [FUSE_FSYNC] = EIO}},
	            EIO);
	on_bad_fuse("FUSE that fails at fsync of the directory",
	            (struct fuse_rig){.errors = {FUSE_NO_TMPFILE, [FUSE_FSYNCDIR] = EIO}}, EIO);
	on_bad_fuse("FUSE that fails at write", (struct fuse_rig){.errors = {FUSE_NO_TMPFILE, [FUSE_WRITE] = ENOSPC}},
	            ENOSPC);
}

static void test_careless_fuse(void)
{
	const char *directory = BASE "/fuse", *path = BASE "/fuse/report.json";
	struct fuse_rig rig = {.errors = {FUSE_NO_TMPFILE, FUSE_NO_LINK}, .careless_rename = true};
	int result = fuse_start(&rig, directory);
	if (result < 0) {
		skip("FUSE that ignores RENAME_NOREPLACE", strerror(-result));
		return;
	}
	put(BASE "/fuse/one", "x");
	put(BASE "/fuse/two", "y");
	(void)ok(rename(BASE "/fuse/one", BASE "/fuse/two") == 0 && entries(directory, "") == 1,
	         "FUSE that ignores RENAME_NOREPLACE: a plain rename replaces there (the control)");
	empty(directory);
	struct outcome *outcome = go(&(struct run){.path = path, .between = occupy});
	(void)ok(outcome->written == -EEXIST && theirs(path),
	         "FUSE that ignores RENAME_NOREPLACE: theirs is not replaced");
	fuse_stop(&rig, directory);
}

/* ---- killed at every system call, and the power with it ---- */

/* Runs to the stop number `stop`; each system call stops twice, before and after. Returns the child, or -1 when it
 * ended before. */
static pid_t run_to(const struct run *run, int stop, struct outcome *outcome)
{
	int status = 0;
	pid_t child = start(run, outcome);
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
		return -1;
	(void)ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD);
	for (int i = 0; i < stop; i++) {
		(void)ptrace(PTRACE_SYSCALL, child, NULL, NULL);
		if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
			return -1;
	}
	return child;
}

static bool kill_at(const struct run *run, int stop, struct outcome *outcome)
{
	pid_t child = run_to(run, stop, outcome);
	if (child > 0) {
		(void)kill(child, SIGKILL);
		(void)waitpid(child, NULL, 0);
	}
	return child > 0;
}

static const char *const WAY_NAMES[] = {"way 1", "way 2 (forced)", "way 3 (forced)", "way 4 (forced)"};

static void test_killed(const char *directory, int way)
{
	char path[4096];
	int seen[3] = {0}, stop = 1, lies = 0, litter = 0;
	(void)snprintf(path, sizeof path, "%s/report.json", directory);
	struct run run = {.path = path, .rules = NOTHING, .rule_count = way, .traced = true};
	for (; kill_at(&run, stop, shared) && stop < 1000; stop++) {
		enum content content = content_of(path, REPORT_SIZE, 0);
		seen[content]++;
		lies += shared->finished && shared->written == 0 && content != WHOLE;
		litter += entries(directory, "") - (content != ABSENT);
		empty(directory);
	}
	bool ended = shared->finished && saved(shared);
	empty(directory);
	printf("# %s: %d stops, name absent %d, whole %d, partial %d, temporary files left %d\n", WAY_NAMES[way],
	       stop - 1, seen[ABSENT], seen[WHOLE], seen[PARTIAL], litter);
	(void)ok(ended && stop > 20 && seen[ABSENT] && seen[WHOLE] && (way == 3 ? seen[PARTIAL] > 0 : !seen[PARTIAL]),
	         "SIGKILL at each of %d system call stops, %s: the name is absent or whole%s", stop - 1, WAY_NAMES[way],
	         way == 3 ? " (or short: the documented exception)" : "");
	(void)ok(!lies, "SIGKILL, %s: never a saved report that is not there", WAY_NAMES[way]);
	if (way == 0)
		(void)ok(litter == 0, "SIGKILL, way 1: nothing is ever left behind");
}

#ifdef __x86_64__
/* Lets the system call before which `stop` lies fail with `number` instead of running it. */
static bool fail_at(const struct run *run, int stop, int number, struct outcome *outcome)
{
	int status = 0;
	pid_t child = run_to(run, stop, outcome);
	if (child < 0)
		return false;
	(void)ptrace(PTRACE_POKEUSER, child, offsetof(struct user_regs_struct, orig_rax), -1L);
	(void)ptrace(PTRACE_SYSCALL, child, NULL, NULL);
	(void)waitpid(child, &status, 0);
	(void)ptrace(PTRACE_POKEUSER, child, offsetof(struct user_regs_struct, rax), (long)-number);
	(void)ptrace(PTRACE_CONT, child, NULL, NULL);
	(void)waitpid(child, &status, 0);
	if (WIFSTOPPED(status)) { /* the exit itself was refused */
		(void)kill(child, SIGKILL);
		(void)waitpid(child, &status, 0);
	}
	return true;
}

static void test_each_failing_once(const char *directory, int way)
{
	static const int NUMBERS[] = {ENOSPC, EIO, EINTR, ENOMEM, EMFILE, EPERM};
	char path[4096];
	int faults = 0, kept = 0, refusals = 0, wrong = 0;
	(void)snprintf(path, sizeof path, "%s/report.json", directory);
	struct run run = {.path = path, .rules = NOTHING, .rule_count = way, .traced = true};
	for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++) {
		for (int stop = 1; stop < 1000 && fail_at(&run, stop, NUMBERS[i], shared); stop += 2) {
			bool held = shared->reserved == 0 && shared->written == 0;
			bool right = shared->finished && content_of(path, REPORT_SIZE, 0) == (held ? WHOLE : ABSENT);
			if (!right)
				printf("# stop %d, %s: reserve %d, write %d (%s)\n", stop, strerror(NUMBERS[i]),
				       shared->reserved, shared->written, shared->error);
			faults++;
			kept += held;
			refusals += !held && shared->reserved != 0;
			wrong += !right;
			empty(directory);
		}
		empty(directory); /* of the last run, which met no fault */
	}
	printf("# %s: %d faults: saved all the same %d, refused before anything runs %d, not saved %d\n",
	       WAY_NAMES[way], faults, kept, refusals, faults - kept - refusals);
	(void)ok(faults > 50 && !wrong,
	         "each system call failing once with each of 6 errors (%d faults), %s: saved whole or absent", faults,
	         WAY_NAMES[way]);
}
#else
static void test_each_failing_once(const char *directory, int way)
{
	(void)directory;
	skip(WAY_NAMES[way], "failing each system call once is written for x86-64 registers");
}
#endif

static bool cut_power(const char *kind, const char *directory)
{
	uint32_t how = GOING_NO_FLUSH;
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool cut = fd >= 0 && syscall(SYS_ioctl, fd, FS_IOC_GOING, &how) == 0;
	(void)close(fd);
	return umount2(directory, 0) == 0 &&
	       shell("mount -o loop -t %s " BASE "/%s.img %s 2>/dev/null", kind, kind, directory) && cut;
}

static void test_power_loss(const char *kind, const char *make, int megabytes, int way)
{
	char directory[128], path[256];
	int seen[3] = {0}, stop = 1, lies = 0;
	(void)snprintf(directory, sizeof directory, BASE "/%s", kind);
	(void)snprintf(path, sizeof path, "%s/report.json", directory);
	if (!loop_mount(kind, make, directory, megabytes)) {
		skip("power loss", "no loop mount");
		return;
	}
	if (!cut_power(kind, directory)) {
		skip("power loss", "this kernel cannot shut this file system down");
		return;
	}
	/* The control: without fsync the same cut loses the report, although the writer believed that it was done. */
	const struct rule no_sync = {SYS_fsync, -1, 0, 0, EINVAL};
	bool believed = saved(go(&(struct run){.path = path, .rules = &no_sync, .rule_count = 1}));
	(void)ok(believed && cut_power(kind, directory) && content_of(path, REPORT_SIZE, 0) != WHOLE,
	         "power loss, %s: without fsync the report is lost (the control)", kind);
	(void)unlink(path);

	struct run run = {.path = path, .rules = NOTHING, .rule_count = way, .traced = true};
	bool alive = true;
	for (; alive && stop < 1000; stop++) {
		alive = kill_at(&run, stop, shared);
		bool cut = cut_power(kind, directory);
		enum content content = content_of(path, REPORT_SIZE, 0);
		seen[content]++;
		lies += !cut || (shared->finished && (shared->written != 0 || content != WHOLE));
		empty(directory);
		(void)sync();
	}
	printf("# %s, %s: %d cuts, name absent %d, whole %d, partial %d\n", kind, WAY_NAMES[way], stop - 1,
	       seen[ABSENT], seen[WHOLE], seen[PARTIAL]);
	(void)ok(seen[ABSENT] && seen[WHOLE] && !seen[PARTIAL],
	         "power cut at each of %d system call stops, %s, %s: the name is absent or whole", stop - 1, kind,
	         WAY_NAMES[way]);
	(void)ok(!lies, "power cut, %s, %s: what was called saved is there", kind, WAY_NAMES[way]);
	(void)umount2(directory, MNT_DETACH);
}

/* ---- the rest ---- */

static void test_unused(void)
{
	static struct output output;
	struct error error = {0};
	output_init(&output);
	is_int(output_write(&output, "x", 1, NULL, &error), -EBADF, "a write without a reservation is an error");
	output_close(&output);
	output_close(&output);
	(void)ok(output.dir_fd == -1 && output.file_fd == -1, "closing is harmless at any time");
	is_int(output_reserve(&output, "/nonexistent/x", NULL), -ENOENT, "errors need no place to go");
	(void)ok(output.dir_fd == -1 && output.file_fd == -1, "a failed reservation leaves nothing open");
}

static int open_descriptors(void)
{
	return entries("/proc/self/fd", "");
}

static void test_descriptors(const char *directory)
{
	static struct output output;
	char path[4096];
	struct error error;
	int before = open_descriptors();
	(void)snprintf(path, sizeof path, "%s/report.json", directory);
	output_init(&output);
	int result = output_reserve(&output, path, &error);
	bool quiet = entries(directory, "") == 0;
	int flags = fcntl(output.dir_fd, F_GETFD) & fcntl(output.file_fd, F_GETFD);
	(void)ok(result == 0 && quiet, "a reservation shows nothing in the directory");
	(void)ok(flags == FD_CLOEXEC, "its descriptors close on exec");
	output_close(&output);
	(void)ok(entries(directory, "") == 0, "a reservation that is given up leaves nothing");
	(void)output_reserve(&output, path, &error);
	(void)ok(output_write(&output, "{}", 2, NULL, &error) == 0, "a note needs no place to go");
	output_close(&output);
	is_int(open_descriptors(), before, "no descriptor is left open");
	(void)unlink(path);
}

/* A /tmp of our own: nothing stays, and several runs at once do not meet. */
static bool own_mounts(void)
{
	return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("tmpfs", "/tmp", "tmpfs", 0, "size=900m,mode=01777") == 0;
}

int main(void)
{
	const char *directory = BASE "/tmpfs";
	shared = mmap(NULL, 2 * sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)umask(022);
	bool mounts = own_mounts();
	(void)mkdir(BASE, 0755);
	(void)mkdir(directory, 0755);
	(void)chmod(directory, 01777);
	test_unused();
	test_descriptors(directory);
	ways(mounts ? "tmpfs" : "the host's /tmp", directory);
	test_forced_failures(directory);
	test_directory_sync(directory);
	test_targets(directory);
	test_new_directories(directory);
	test_limits(directory);
	for (int way = 0; way < 4; way++) {
		test_killed(directory, way);
		test_each_failing_once(directory, way);
	}
	if (geteuid() == 0)
		test_permissions(directory);
	else
		skip("permissions", "needs root, to become another user");
	if (!mounts) {
		skip("full, read-only and other file systems", "no mount namespace: needs CAP_SYS_ADMIN");
		(void)rmdir(directory);
		(void)rmdir(BASE);
		return done();
	}
	test_full();
	test_read_only(directory);
	test_overlay();
	test_fuse();
	test_careless_fuse();
	test_file_systems();
	test_power_loss("ext4", "mkfs.ext4 -q -F", 16, 0);
	test_power_loss("ext4", "mkfs.ext4 -q -F", 16, 1);
	test_power_loss("ext4", "mkfs.ext4 -q -F", 16, 2);
	test_power_loss("xfs", "mkfs.xfs -q -f", 320, 0);
	return done();
}
