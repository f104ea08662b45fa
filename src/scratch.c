#include "scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 32, ENTRIES_MAX = 1000000, PASSES_MAX = ENTRIES_MAX / DEPTH_MAX };

static const char *variable(char *const envp[], const char *name)
{
	size_t length = strlen(name);

	for (; envp && *envp; envp++)
		if (strncmp(*envp, name, length) == 0 && (*envp)[length] == '=' && (*envp)[length + 1])
			return *envp + length + 1;
	return NULL;
}

void scratch_create(struct scratch *scratch, char *const envp[])
{
	char cwd[PATH_MAX];
	const char *const places[] = {
	        variable(envp, "TMPDIR"), variable(envp, "TEMP"), variable(envp, "TMP"), "/tmp", "/var/tmp", "/usr/tmp",
	        getcwd(cwd, sizeof cwd)};

	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		if (!places[i] || places[i][0] != '/') /* a relative one would move with the worker's directory */
			continue;
		int length = snprintf(scratch->path, sizeof scratch->path, "%s/kd-preflight-XXXXXX", places[i]);
		if (length > 0 && (size_t)length < sizeof scratch->path && mkdtemp(scratch->path))
			return;
	}
	scratch->path[0] = '\0';
}

/* The worker may have taken our rights on a directory of its own; of a link that stands in its place nothing changes.
 */
static int open_directory(int dir_fd, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dir_fd, name, flags);

	if (fd < 0 && errno == EACCES && fchmodat(dir_fd, name, 0700, AT_SYMLINK_NOFOLLOW) == 0)
		fd = openat(dir_fd, name, flags);
	if (fd >= 0)
		(void)fchmod(fd, 0700);
	return fd;
}

/* What is left to spend. */
struct budget {
	int entries, moves;
};

/* Too deep for one descriptor a level: moved to the top, where the next pass finds it. */
static void move_up(int dir_fd, const char *name, int top_fd, struct budget *budget)
{
	char up[32];

	(void)snprintf(up, sizeof up, ".deep-%d", budget->moves++);
	(void)renameat(dir_fd, name, top_fd, up);
}

static void empty(int dir_fd, int depth, int top_fd, struct budget *budget)
{
	DIR *dir = fdopendir(dir_fd);

	if (!dir) {
		(void)close(dir_fd);
		return;
	}
	for (struct dirent *entry; (entry = readdir(dir)) && --budget->entries > 0;) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(dir), entry->d_name, 0) == 0)
			continue;
		if (depth == DEPTH_MAX) {
			move_up(dirfd(dir), entry->d_name, top_fd, budget);
			continue;
		}
		int below = open_directory(dirfd(dir), entry->d_name);
		if (below < 0)
			continue;
		empty(below, depth + 1, top_fd, budget);
		(void)unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
	}
	(void)closedir(dir);
}

void scratch_remove(struct scratch *scratch)
{
	struct budget budget = {.entries = ENTRIES_MAX};

	if (!scratch->path[0])
		return;
	int top_fd = open_directory(AT_FDCWD, scratch->path);
	for (int passes = 0; passes < PASSES_MAX && top_fd >= 0 && budget.entries > 0; passes++) {
		int fd = open_directory(top_fd, ".");
		if (fd >= 0)
			empty(fd, 0, top_fd, &budget);
		if (rmdir(scratch->path) == 0)
			break;
	}
	if (top_fd >= 0)
		(void)close(top_fd);
	if (access(scratch->path, F_OK) < 0)
		scratch->path[0] = '\0';
}
