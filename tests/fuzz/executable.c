/* The reader of shebangs and ELF headers, and the search for the interpreter behind them, over a file of any content.
 */
#include "interpreter.h"
#include "workload.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct executable file;
	static struct workload workload;
	static struct interpreter interpreter;
	static char option[] = "-I", script[] = "x.py";
	char path[64], *argv[] = {path, option, script, NULL};
	struct error error;
	enum code code;
	int fd = memfd_create("executable", 0);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size || fchmod(fd, 0755) < 0)
		abort();
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (executable_read(path, &file, &error) == 0) {
		if (strnlen(file.interpreter, sizeof file.interpreter) == sizeof file.interpreter ||
		    strnlen(file.argument, sizeof file.argument) == sizeof file.argument)
			abort();
	}
	if (workload_find(path, "/usr/bin:/bin", &workload, &code, &error) == 0)
		(void)interpreter_from_workload(&workload, argv, "/usr/bin:/bin", &interpreter, &error);
	(void)interpreter_from_path(path, "/usr/bin:/bin", &interpreter, &error);
	(void)close(fd);
	return 0;
}
