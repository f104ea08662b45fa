/* ptx-jit LIBRARY PTX sm_NN...
 *
 * Compiles PTX with a driver's own PTX compiler, without a card and without the driver being installed:
 * libnvidia-ptxjitcompiler.so.1 exports the calls of NVIDIA's PTX Compiler API (CUDA 11.1 and later; nvPTXCompiler.h).
 * Each architecture is tried in a child with a time limit, since compilers of old drivers crash on targets they do not
 * know. Prints `sm_NN SIZE` or `sm_NN - REASON`, one a line. Exits 0 when at least one compiled, 1 when none did, 2
 * when the library could not be used. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_S = 20, PTX_MAX = 1 << 16, LOG_MAX = 1 << 16, CANNOT = 2 };

struct compiler; /* opaque handle of the API */

struct api {
	int (*create)(struct compiler **handle, size_t length, const char *ptx);
	int (*compile)(struct compiler *handle, int count, const char *const *options);
	int (*program_size)(struct compiler *handle, size_t *size);
	int (*log_size)(struct compiler *handle, size_t *size);
	int (*log)(struct compiler *handle, char *text);
};

static int load(void *library, const char *name, void *slot)
{
	void *symbol = dlsym(library, name);

	if (!symbol)
		printf("missing symbol %s\n", name);
	memcpy(slot, &symbol, sizeof symbol);
	return symbol ? 0 : -1;
}

static int load_api(const char *path, struct api *api)
{
	void *library = dlopen(path, RTLD_NOW);

	if (!library) {
		printf("%s\n", dlerror());
		return -1;
	}
	if (load(library, "nvPTXCompilerCreate", &api->create) ||
	    load(library, "nvPTXCompilerCompile", &api->compile) ||
	    load(library, "nvPTXCompilerGetCompiledProgramSize", &api->program_size) ||
	    load(library, "nvPTXCompilerGetErrorLogSize", &api->log_size) ||
	    load(library, "nvPTXCompilerGetErrorLog", &api->log))
		return -1;
	return 0;
}

/* The first line of what the compiler has to say. */
static void print_log(const struct api *api, struct compiler *handle)
{
	static char text[LOG_MAX];
	size_t size = 0;

	if (api->log_size(handle, &size) == 0 && size < sizeof text && api->log(handle, text) == 0)
		printf(": %.*s", (int)strcspn(text, "\n"), text);
}

/* In a child of its own; the exit status says whether it compiled. */
static int compile(const char *path, const char *ptx, size_t length, const char *architecture)
{
	struct api api = {0};
	struct compiler *handle = NULL;
	char option[64];
	const char *options[] = {option};
	size_t size = 0;
	int status;

	(void)alarm(LIMIT_S);
	if (load_api(path, &api))
		return CANNOT;
	(void)snprintf(option, sizeof option, "--gpu-name=%s", architecture);
	status = api.create(&handle, length, ptx);
	if (status == 0)
		status = api.compile(handle, 1, options);
	if (status == 0)
		status = api.program_size(handle, &size);
	if (status == 0) {
		printf("%s %zu\n", architecture, size);
		return 0;
	}
	printf("%s - result %d", architecture, status);
	if (handle)
		print_log(&api, handle);
	putchar('\n');
	return 1;
}

int main(int argc, char **argv)
{
	static char ptx[PTX_MAX];
	size_t length;
	FILE *file;
	int compiled = 0;

	if (argc < 4)
		return CANNOT;
	file = fopen(argv[2], "r");
	if (!file)
		return CANNOT;
	length = fread(ptx, 1, sizeof ptx - 1, file);
	(void)fclose(file);

	for (int i = 3; i < argc; i++) {
		int status = 0;
		pid_t child;

		(void)fflush(stdout);
		child = fork();
		if (child == 0) {
			int result = compile(argv[1], ptx, length, argv[i]);
			(void)fflush(stdout);
			_exit(result);
		}
		if (child < 0 || waitpid(child, &status, 0) < 0)
			return CANNOT;
		if (WIFSIGNALED(status))
			printf("%s - died of signal %d\n", argv[i], WTERMSIG(status));
		else if (WEXITSTATUS(status) == CANNOT)
			return CANNOT;
		compiled += WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	return compiled == 0;
}
