#include "plan.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Where the C libraries install their loaders; glibc first, as a GPU driver needs it. */
static const char *const USUAL_LOADERS[] = {
#if defined(__x86_64__)
        "/lib64/ld-linux-x86-64.so.2",
        "/lib/ld-linux-x86-64.so.2",
        "/lib/ld-musl-x86_64.so.1",
#elif defined(__aarch64__)
        "/lib/ld-linux-aarch64.so.1",
        "/lib64/ld-linux-aarch64.so.1",
        "/lib/ld-musl-aarch64.so.1",
#else
#error "no loader is known for this architecture"
#endif
};

/* The interpreter and the rule of CONTRACT.md 2, --framework. Returns as plan_make(). */
static int choose_interpreter(struct plan *plan, const struct options *options, const struct workload *workload,
                              const char *path_variable, struct error *error)
{
	struct interpreter *interpreter = &plan->interpreter;
	bool required = options->framework == FRAMEWORK_TORCH || options->device == DEVICE_CPU;
	int found = 0;

	plan->torch_rule = TORCH_REQUIRED;
	if (options->python) {
		if (interpreter_from_path(options->python, path_variable, interpreter, error) < 0)
			return -1;
		found = 1;
	} else if (workload) {
		found = interpreter_from_workload(workload, options->program, path_variable, interpreter, error);
	}
	if (found == 0 && (required || !workload)) {
		found = interpreter_from_search(path_variable, interpreter, error);
		if (found > 0 && !required)
			plan->torch_rule = TORCH_IF_PRESENT;
	}
	if (found == 0 && !required) {
		plan->torch_rule = TORCH_NOT_ASKED;
		return 0;
	}
	if (found > 0 && interpreter->is_wrapper)
		return error_set(error, ENOEXEC,
		                 "unable to check %s: it is a script, not an interpreter: name the real one with "
		                 "--python",
		                 interpreter->path) < 0
		               ? -1
		               : 0;
	return found > 0 ? 0 : -1;
}

/* PT_INTERP of a chain of scripts that ends in an ELF file; "" when there is none. */
static void loader_of(const char *path, char loader[PATH_MAX])
{
	struct executable file;
	char at[PATH_MAX];

	loader[0] = '\0';
	(void)snprintf(at, sizeof at, "%s", path);
	for (int depth = 0; depth < WORKLOAD_SHEBANG_DEPTH && executable_read(at, &file, NULL) == 0; depth++) {
		if (!file.is_script) {
			(void)snprintf(loader, PATH_MAX, "%s", file.interpreter);
			return;
		}
		(void)snprintf(at, sizeof at, "%s", file.interpreter);
	}
}

static void choose_loader(struct plan *plan, const struct options *options, const struct workload *workload)
{
	plan->loader[0] = '\0';
	/* The loader opens the native program by its name in /proc. Without /proc the CPU check is started by the kernel; a
	 * GPU driver could not work there anyway. */
	if (options->device == DEVICE_CPU && access("/proc/self/fd", X_OK) < 0)
		return;
	if (plan->interpreter.found)
		(void)snprintf(plan->loader, sizeof plan->loader, "%s", plan->interpreter.loader);
	if (!plan->loader[0] && workload)
		loader_of(workload->path, plan->loader);
	for (size_t i = 0; !plan->loader[0] && i < sizeof USUAL_LOADERS / sizeof *USUAL_LOADERS; i++)
		if (access(USUAL_LOADERS[i], X_OK) == 0)
			(void)snprintf(plan->loader, sizeof plan->loader, "%s", USUAL_LOADERS[i]);
}

/* ROCm wheels bring their own runtime: in torch/lib, or in the packages _rocm_sdk_* (FIELD-NOTES 7). The interpreter is
 * not asked, since it would have to run first; its prefix is two steps above argv[0], also in a virtual environment. */
static void choose_hip_dirs(struct plan *plan)
{
	static const char *const BELOW[] = {"torch/lib", "_rocm_sdk*/lib"};
	char prefix[PATH_MAX], pattern[PATH_MAX + 64];
	glob_t found = {0};

	plan->hip_dirs[0] = '\0';
	(void)snprintf(prefix, sizeof prefix, "%s", plan->interpreter.argv0);
	for (int i = 0; i < 2; i++)
		if (strrchr(prefix, '/'))
			*strrchr(prefix, '/') = '\0';
	if (!plan->interpreter.found || plan->interpreter.argv0[0] != '/')
		return;
	for (size_t i = 0; i < sizeof BELOW / sizeof *BELOW; i++) {
		(void)snprintf(pattern, sizeof pattern, "%s/lib/python3*/*-packages/%s", prefix, BELOW[i]);
		(void)glob(pattern, found.gl_pathc ? GLOB_APPEND : 0, NULL, &found);
	}
	size_t used = 0;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		size_t length = strlen(found.gl_pathv[i]);
		if (used + length + 2 > sizeof plan->hip_dirs || strchr(found.gl_pathv[i], ':'))
			continue;
		used += (size_t)snprintf(plan->hip_dirs + used, sizeof plan->hip_dirs - used, "%s%s", used ? ":" : "",
		                         found.gl_pathv[i]);
	}
	globfree(&found);
}

int plan_make(struct plan *plan, const struct options *options, const struct workload *workload,
              const char *path_variable, struct error *error)
{
	struct error ignored;
	int status = 0;

	memset(plan, 0, sizeof *plan);
	plan->torch_rule = TORCH_NOT_ASKED;
	if (options->framework != FRAMEWORK_NONE)
		status = choose_interpreter(plan, options, workload, path_variable, error);
	else if (options->python) /* for its loader only */
		(void)interpreter_from_path(options->python, path_variable, &plan->interpreter, &ignored);
	choose_loader(plan, options, workload);
	if (options->device == DEVICE_GPU)
		choose_hip_dirs(plan);
	return status;
}
