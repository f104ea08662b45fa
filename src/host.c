#include "host.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *const HOST_NVIDIA_SMI_ARGUMENTS[] = {"--query-gpu=driver_version,memory.total", "--format=csv,noheader,nounits",
                                           NULL};

void host_find_nvidia_smi(const char *path_variable, char path[PATH_MAX])
{
	const char *rest = path_variable ? path_variable : "/usr/local/bin:/usr/bin:/bin";

	for (size_t length; *rest; rest += length + (rest[length] == ':')) {
		length = strcspn(rest, ":");
		int written = snprintf(path, PATH_MAX, "%.*s/nvidia-smi", (int)length, rest);
		if (length > 0 && written < PATH_MAX && access(path, X_OK) == 0)
			return;
	}
	path[0] = '\0';
}

/* "VERSION, MIB" */
static int read_line(struct host_facts *facts, const char *line)
{
	size_t version = strspn(line, "0123456789.");

	if (version == 0 || version >= sizeof facts->driver_version || line[version] != ',')
		return 0;
	const char *memory = line + version + 1 + strspn(line + version + 1, " ");
	size_t digits = strspn(memory, "0123456789");
	if (digits == 0 || digits > 12 || memory[digits + strspn(memory + digits, " \r")] ||
	    facts->memory_count == HOST_DEVICES_MAX)
		return 0;
	memcpy(facts->driver_version, line, version);
	facts->driver_version[version] = '\0';
	facts->memory_total_bytes[facts->memory_count++] = strtoull(memory, NULL, 10) << 20;
	return 1;
}

void host_read_nvidia_smi(struct host_facts *facts, const char *text, size_t length)
{
	char line[128];
	size_t used = 0;

	for (size_t i = 0; i <= length; i++) {
		if (i < length && text[i] != '\n') {
			line[used] = text[i];
			used += used + 1 < sizeof line;
			continue;
		}
		line[used] = '\0';
		if (used > 0 && !read_line(facts, line))
			facts->problem = "unreadable-answer";
		used = 0;
	}
	if (facts->memory_count == 0)
		facts->problem = "unreadable-answer";
}

static int read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		(void)close(fd);
	text[got > 0 ? got : 0] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	return got > 0;
}

void host_read_amdgpu(struct host_facts *facts)
{
	char text[64], path[PATH_MAX];
	DIR *dir = opendir("/sys/class/drm");

	facts->source = "amdgpu";
	if (!dir || access("/sys/module/amdgpu", F_OK) < 0)
		facts->problem = "not-found";
	if (read_file("/sys/module/amdgpu/version", text, sizeof text) && strspn(text, "0123456789.") == strlen(text))
		memcpy(facts->driver_version, text, sizeof text);
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		if (strncmp(entry->d_name, "card", 4) != 0 || strchr(entry->d_name, '-'))
			continue;
		(void)snprintf(path, sizeof path, "/sys/class/drm/%s/device/mem_info_vram_total", entry->d_name);
		if (read_file(path, text, sizeof text) && facts->memory_count < HOST_DEVICES_MAX)
			facts->memory_total_bytes[facts->memory_count++] = strtoull(text, NULL, 10);
	}
	if (dir)
		(void)closedir(dir);
}
