#include "plan.h"

#include <dirent.h>
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
	/* The loader opens the native program by its name in /proc. Without /proc the CPU check is started by the
	 * kernel; a GPU driver could not work there anyway. */
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

/* Adds a folder to DIR:DIR where it exists and fits; a name with ':' cannot be told. */
static void add_folder(char list[PATH_MAX], const char *folder)
{
	size_t used = strlen(list), length = strlen(folder);

	if (used + length + 2 > PATH_MAX || strchr(folder, ':') || access(folder, X_OK) < 0)
		return;
	(void)snprintf(list + used, PATH_MAX - used, "%s%s", used ? ":" : "", folder);
}

/* Calls `act` with "FOLDER/NAME" for each entry of FOLDER whose name begins with `prefix`. */
static void each_entry(const char *folder, const char *prefix, void (*act)(struct plan *, const char *),
                       struct plan *plan)
{
	char path[PATH_MAX];
	DIR *dir = opendir(folder);

	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
		    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < PATH_MAX)
			act(plan, path);
	if (dir)
		(void)closedir(dir);
}

static void add_sdk(struct plan *plan, const char *package)
{
	char folder[PATH_MAX];

	if (snprintf(folder, sizeof folder, "%s/lib", package) < PATH_MAX)
		add_folder(plan->hip_dirs, folder);
}

static void add_packages(struct plan *plan, const char *python_folder)
{
	static const char *const NAMES[] = {"site-packages", "dist-packages"};
	char folder[PATH_MAX], torch[PATH_MAX];

	for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
		if (snprintf(folder, sizeof folder, "%s/%s", python_folder, NAMES[i]) >= PATH_MAX ||
		    snprintf(torch, sizeof torch, "%s/torch/lib", folder) >= PATH_MAX)
			continue;
		add_folder(plan->hip_dirs, torch);
		each_entry(folder, "_rocm_sdk", add_sdk, plan);
	}
}

/* ROCm wheels bring their own runtime: in torch/lib, or in the packages _rocm_sdk_* (FIELD-NOTES 7). The interpreter is
 * not asked, since it would have to run first; its prefix is two steps above the file that is started, whose link in a
 * virtual environment is not followed. */
static void choose_hip_dirs(struct plan *plan)
{
	const char *path = plan->interpreter.path;
	char lib[2 * PATH_MAX + 8] = "";

	if (!plan->interpreter.found || (path[0] != '/' && !getcwd(lib, PATH_MAX)))
		return;
	size_t used = strlen(lib);
	(void)snprintf(lib + used, sizeof lib - used, "%s%s", used ? "/" : "", path);
	for (int i = 0; i < 2; i++)
		if (strrchr(lib, '/'))
			*strrchr(lib, '/') = '\0';
	used = strlen(lib);
	(void)snprintf(lib + used, sizeof lib - used, "/lib");
	each_entry(lib, "python3", add_packages, plan);
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
