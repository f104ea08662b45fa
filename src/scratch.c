#include "scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 32, ENTRIES_MAX = 100000 };

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
	const char *const places[] = {variable(envp, "TMPDIR"), variable(envp, "TEMP"), variable(envp, "TMP"), "/tmp",
				      "/var/tmp", "/usr/tmp", getcwd(cwd, sizeof cwd)};

	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		if (!places[i] || places[i][0] != '/') /* a relative one would move with the worker's directory */
			continue;
		int length = snprintf(scratch->path, sizeof scratch->path, "%s/kd-preflight-XXXXXX", places[i]);
		if (length > 0 && (size_t)length < sizeof scratch->path && mkdtemp(scratch->path))
			return;
	}
	scratch->path[0] = '\0';
}

static void empty(int dir_fd, int depth, int *entries)
{
	DIR *dir = fdopendir(dir_fd);

	if (!dir) {
		(void)close(dir_fd);
		return;
	}
	for (struct dirent *entry; (entry = readdir(dir)) && --*entries > 0;) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(dir), entry->d_name, 0) == 0 || depth == DEPTH_MAX)
			continue;
		int below = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below < 0)
			continue;
		(void)fchmod(below, 0700);
		empty(below, depth + 1, entries);
		(void)unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
	}
	(void)closedir(dir);
}

void scratch_remove(struct scratch *scratch)
{
	int entries = ENTRIES_MAX;

	if (!scratch->path[0])
		return;
	int fd = open(scratch->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		empty(fd, 0, &entries);
	(void)rmdir(scratch->path);
	scratch->path[0] = '\0';
}
