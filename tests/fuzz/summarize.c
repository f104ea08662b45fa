/* --summarize over a folder with one foreign file: nothing of it reaches a terminal as a control character. */
#include "summarize.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void remove_folder(void);
static char folder[] = "/dev/shm/kd-fuzz-XXXXXX";
static int folder_fd = -1;

static void remove_folder(void)
{
	(void)unlinkat(folder_fd, "a.json", 0);
	(void)rmdir(folder);
}

static void run(int json)
{
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);

	if (!stream)
		abort();
	int status = summarize_run(folder, json, stream, stream);
	if (fclose(stream) != 0 || status < 0 || status > 255)
		abort();
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < ' ' && text[i] != '\n' && text[i] != '\t')
			abort();
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (folder_fd < 0) {
		if (!mkdtemp(folder))
			abort();
		folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		(void)atexit(remove_folder);
	}
	int fd = openat(folder_fd, "a.json", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	(void)close(fd);
	run(0);
	run(1);
	return 0;
}
