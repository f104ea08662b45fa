/* The kernel's interface is written out here: musl and Debian 12 have headers of ABI 1 or none. Rights and numbers:
 * include/uapi/linux/landlock.h and Documentation/userspace-api/landlock.rst of Linux 6.18 (ABI 7). */
#include "sandbox_landlock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* One number on every architecture (they came after the tables were unified). */
enum { NR_CREATE_RULESET = 444, NR_ADD_RULE = 445, NR_RESTRICT_SELF = 446 };
enum { CREATE_RULESET_VERSION = 1, RULE_PATH_BENEATH = 1, ABI_KNOWN = 7 };

struct ruleset_attr {
	uint64_t fs, net, scoped;
};

struct path_beneath_attr {
	uint64_t access;
	int32_t parent_fd;
} __attribute__((packed));

#define FS_WRITE_FILE  (1ULL << 1)
#define FS_REMOVE_DIR  (1ULL << 4)
#define FS_REMOVE_FILE (1ULL << 5)
#define FS_MAKE_CHAR   (1ULL << 6)
#define FS_MAKE_DIR    (1ULL << 7)
#define FS_MAKE_REG    (1ULL << 8)
#define FS_MAKE_SOCK   (1ULL << 9)
#define FS_MAKE_FIFO   (1ULL << 10)
#define FS_MAKE_BLOCK  (1ULL << 11)
#define FS_MAKE_SYM    (1ULL << 12)
#define FS_REFER       (1ULL << 13)
#define FS_TRUNCATE    (1ULL << 14)
#define FS_IOCTL_DEV   (1ULL << 15)

/* What each ABI added to what can be handled. Reading, listing and executing are never handled. */
static const struct {
	int abi;
	struct ruleset_attr adds;
} rights[] = {
        {1,
         {.fs = FS_WRITE_FILE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_CHAR | FS_MAKE_DIR | FS_MAKE_REG |
                FS_MAKE_SOCK | FS_MAKE_FIFO | FS_MAKE_BLOCK | FS_MAKE_SYM}},
        {2, {.fs = FS_REFER}},     /* 5.19: moving between directories; denied throughout before */
        {3, {.fs = FS_TRUNCATE}},  /* 6.2: until then seccomp alone refuses truncation by name */
        {4, {.net = 1 | 2}},       /* 6.7: TCP bind and connect, no port allowed */
        {5, {.fs = FS_IOCTL_DEV}}, /* 6.10: ioctl on devices opened later */
        {6, {.scoped = 1 | 2}},    /* 6.12: abstract sockets of, and signals to, processes outside */
};

/* The character devices that may be written to. Not all of /dev: it holds /dev/shm and the termination log. '#' is a
 * digit; '*' ends a name, and is any rest of it. */
static const struct {
	const char *pattern;
	bool gpu_only;
} devices[] = {
        {"/dev/null", false}, /* opened for writing by shells of habit in every library */
        {"/dev/zero", false}, /* mapped read-write for anonymous memory by old allocators */
        {"/dev/full", false},
        {"/dev/nvidia#*", true},       /* NVIDIA: a card */
        {"/dev/nvidiactl", true},      /* control of them all */
        {"/dev/nvidia-uvm*", true},    /* unified memory, and its tools node, opened in cuInit */
        {"/dev/nvidia-modeset", true}, /* opened by nvidia-smi and with display capability */
        {"/dev/nvidia-nvlink", true},
        {"/dev/nvidia-nvswitch*", true},
        {"/dev/nvidia-caps/*", true},               /* MIG and fabric capabilities */
        {"/dev/nvidia-caps-imex-channels/*", true}, /* memory shared between nodes (GB200) */
        {"/dev/nvhost-*", true},                    /* Tegra (Jetson): host1x engines */
        {"/dev/nvmap", true},                       /* Tegra: memory */
        {"/dev/nvgpu/*/*", true},                   /* Tegra: the GPU */
        {"/dev/kfd", true},                         /* AMD compute */
        {"/dev/dri/renderD*", true},                /* AMD memory and queues */
        {"/dev/dxg", true},                         /* either, under WSL */
};

static struct ruleset_attr handled_at(int abi)
{
	struct ruleset_attr handled = {0};

	for (size_t i = 0; i < sizeof rights / sizeof rights[0]; i++) {
		if (rights[i].abi > abi)
			break;
		handled.fs |= rights[i].adds.fs;
		handled.net |= rights[i].adds.net;
		handled.scoped |= rights[i].adds.scoped;
	}
	return handled;
}

/* An older kernel takes a longer structure as long as what it does not know is zero. */
static int create_ruleset(const struct ruleset_attr *handled)
{
	return (int)syscall(NR_CREATE_RULESET, handled, sizeof *handled, 0U);
}

/* A rule that cannot be made leaves its path unwritable, which is the safe side. */
static void allow(int ruleset, int path_fd, uint64_t access)
{
	struct path_beneath_attr rule = {.access = access, .parent_fd = path_fd};

	(void)syscall(NR_ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0U);
}

/* Takes the descriptor, and what it names if that is a character device. */
static void allow_device(int ruleset, int fd, uint64_t handled)
{
	struct stat status;

	if (fd < 0)
		return;
	if (fstat(fd, &status) == 0 && S_ISCHR(status.st_mode))
		allow(ruleset, fd, handled & (FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV));
	(void)close(fd);
}

/* glob(3) would do, but brings 18 KB of wide characters along. */
static bool matches(const char *pattern, const char *name)
{
	for (; *pattern && !strchr("*/", *pattern); pattern++, name++)
		if (*pattern == '#' ? *name < '0' || *name > '9' : *pattern != *name)
			return false;
	return *pattern == '*' || *name == '\0';
}

/* Takes the descriptor of the folder in which the pattern begins. */
// NOLINTNEXTLINE(misc-no-recursion): once for each folder in the pattern
static void allow_matching(int ruleset, int folder, const char *pattern, uint64_t handled)
{
	DIR *list = fdopendir(folder);
	const char *below = strchr(pattern, '/');
	struct dirent *entry;

	if (!list) {
		(void)close(folder);
		return;
	}
	while ((entry = readdir(list))) {
		if (entry->d_name[0] == '.' || !matches(pattern, entry->d_name))
			continue;
		if (!below) {
			allow_device(ruleset, openat(folder, entry->d_name, O_PATH | O_CLOEXEC), handled);
			continue;
		}
		int inner = openat(folder, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (inner >= 0)
			allow_matching(ruleset, inner, below + 1, handled);
	}
	(void)closedir(list);
}

/* From the last folder that has a name of its own. */
static void allow_pattern(int ruleset, const char *pattern, uint64_t handled)
{
	size_t length = strcspn(pattern, "#*");
	char path[64];

	while (pattern[length - 1] != '/')
		length--;
	(void)snprintf(path, sizeof path, "%.*s", (int)length, pattern);
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder >= 0)
		allow_matching(ruleset, folder, pattern + length, handled);
}

static void allow_devices(int ruleset, bool gpu, uint64_t handled)
{
	for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
		if (devices[i].gpu_only && !gpu)
			continue;
		if (strpbrk(devices[i].pattern, "#*"))
			allow_pattern(ruleset, devices[i].pattern, handled);
		else
			allow_device(ruleset, open(devices[i].pattern, O_PATH | O_CLOEXEC), handled);
	}
}

/* Everything but device nodes, which would be doors to the disks for root, and ioctl on them. */
static void allow_scratch(int ruleset, const char *scratch, uint64_t handled)
{
	int fd = open(scratch, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return;
	allow(ruleset, fd, handled & ~(FS_MAKE_CHAR | FS_MAKE_BLOCK | FS_IOCTL_DEV));
	(void)close(fd);
}

/* Threads name each other by /proc/self/task/TID/comm, as cuInit of drivers from 550 on does. The descriptor survives
 * the exec on purpose, see the header. */
static void allow_own_task(int ruleset, uint64_t handled)
{
	int fd = open("/proc/self/task", O_PATH | O_DIRECTORY); // NOLINT(android-cloexec-open)

	if (fd >= 0)
		allow(ruleset, fd, handled & (FS_WRITE_FILE | FS_TRUNCATE));
}

static int failed(const char **step, int *number, const char *what)
{
	*number = errno;
	*step = what;
	return 0;
}

int sandbox_landlock(bool gpu, const char *scratch, const char **step, int *number)
{
	int abi = (int)syscall(NR_CREATE_RULESET, NULL, (size_t)0, CREATE_RULESET_VERSION);
	struct ruleset_attr handled = handled_at(abi < ABI_KNOWN ? abi : ABI_KNOWN);
	int ruleset, rc;

	if (abi <= 0)
		return errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM ? 0 : failed(step, number, "landlock");
	ruleset = create_ruleset(&handled);
	if (ruleset < 0)
		return failed(step, number, "landlock_create_ruleset");
	allow_devices(ruleset, gpu, handled.fs);
	if (gpu) /* below it lies TID/net too, so nobody gets it who does not need it */
		allow_own_task(ruleset, handled.fs);
	if (scratch)
		allow_scratch(ruleset, scratch, handled.fs);
	rc = (int)syscall(NR_RESTRICT_SELF, ruleset, 0U);
	if (rc)
		(void)failed(step, number, "landlock_restrict_self");
	(void)close(ruleset);
	return rc ? 0 : abi;
}
