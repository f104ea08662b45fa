#include "cgroup.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 4096 };

/* Where the hierarchies are mounted. In a container the path of /proc/self/cgroup may be the host's, while the
 * container's own group is what is mounted: hence with the path and without. */
static const struct {
	bool unified;
	const char *mount, *file;
} PLACES[] = {
        {false, "/sys/fs/cgroup/memory", "memory.oom_control"},
        {true, "/sys/fs/cgroup", "memory.events"},
};

static bool read_file(const char *path, char text[TEXT_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, TEXT_MAX - 1);

	if (fd >= 0)
		(void)close(fd);
	text[got > 0 ? got : 0] = '\0';
	return got > 0;
}

/* Of a line `NUMBER:CONTROLLERS:PATH` the path, where it is that of the wanted hierarchy; the line is cut up. */
static const char *path_of(char *line, bool unified)
{
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!path)
		return NULL;
	*path++ = '\0';
	controllers++;
	if (unified)
		return *controllers ? NULL : path;
	for (char *rest = NULL, *one = strtok_r(controllers, ",", &rest); one; one = strtok_r(NULL, ",", &rest))
		if (strcmp(one, "memory") == 0)
			return path;
	return NULL;
}

static long count_in(const char *mount, const char *group, const char *file)
{
	char path[PATH_MAX], text[TEXT_MAX];
	int length = snprintf(path, sizeof path, "%s%s/%s", mount, group, file);

	if (length < 0 || (size_t)length >= sizeof path || !read_file(path, text))
		return -1;
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, "oom_kill ", 9) == 0)
			return strtol(line + 9, NULL, 10);
	}
	return -1;
}

long cgroup_oom_kills(void)
{
	char text[TEXT_MAX];
	long count = -1;

	for (size_t i = 0; count < 0 && i < sizeof PLACES / sizeof *PLACES; i++) {
		if (!read_file("/proc/self/cgroup", text))
			return -1;
		for (char *rest = NULL, *line = strtok_r(text, "\n", &rest); line && count < 0;
		     line = strtok_r(NULL, "\n", &rest)) {
			const char *group = path_of(line, PLACES[i].unified);
			if (!group)
				continue;
			count = count_in(PLACES[i].mount, group, PLACES[i].file);
			if (count < 0)
				count = count_in(PLACES[i].mount, "", PLACES[i].file);
		}
	}
	return count;
}
