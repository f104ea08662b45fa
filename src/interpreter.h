/* Which Python will the workload use, started how? */
#ifndef KD_INTERPRETER_H
#define KD_INTERPRETER_H

#include "error.h"
#include "workload.h"

#include <limits.h>
#include <stdbool.h>

enum { INTERPRETER_FLAGS_MAX = 32, INTERPRETER_SETTINGS_MAX = 32, INTERPRETER_STORAGE = 4096 };

enum path0 {
	PATH0_NONE,   /* no program, -c or stdin: leave what the interpreter does for -c: '' */
	PATH0_VALUE,  /* the script's folder, or the -m working directory, in path0; takes the place of '' */
	PATH0_ALWAYS, /* a folder or zip file run as the program: the first entry even under -I and -P */
};

/* Not to be copied: flags and settings point into its own storage. */
struct interpreter {
	bool found;
	bool is_wrapper;       /* a script calls itself python (FIELD-NOTES 27b); then nothing below loader is filled */
	char path[PATH_MAX];   /* the file to start */
	char argv0[PATH_MAX];  /* the argv[0] under which the workload starts it (a venv's link stays one) */
	char loader[PATH_MAX]; /* its PT_INTERP, or "" */
	int flag_count;
	char *flags[INTERPRETER_FLAGS_MAX]; /* words to put after argv[0]: -I -E -s -S -P -O -B, -X and -W with their
	                                       value as the next word, and what this version of the parser does not know
	                                     */
	int setting_count;
	char *settings[INTERPRETER_SETTINGS_MAX]; /* what `env` does before the interpreter starts, in its order:
	                                             NAME=VALUE to set, NAME to unset */
	char storage[INTERPRETER_STORAGE];
	enum path0 path0_kind;
	char path0[PATH_MAX]; /* what the workload would find in sys.path[0] */
};

/* From the workload: true when PROGRAM is a Python, or a script whose shebang (also through `env`, `env -S`, and the
 * `#!/bin/sh` + `'''exec' /path/python` form that installers write for long paths) is one, or is `env` with one.
 * argv is PROGRAM's own, argv[0] included. Follows execve (shebangs), coreutils' env, and the command line of CPython's
 * Python/initconfig.c and Modules/main.c (sys.path[0]). Returns 1 (it is Python, *interpreter filled), 0 (it is not, or
 * cannot be told: `env -i`, a shell script), or a negative errno with *error (the Python it names is missing or cannot
 * be executed). No allocation. */
int interpreter_from_workload(const struct workload *workload, char *const argv[], const char *path_variable,
                              struct interpreter *interpreter, struct error *error);

/* From --python PATH (a name without '/' is searched on PATH). Returns 0, or a negative errno with *error (missing, a
 * dangling link named as such, not executable). Any script is a wrapper here. */
int interpreter_from_path(const char *path, const char *path_variable, struct interpreter *interpreter,
                          struct error *error);

/* The first python3, else python, on PATH. Returns 1 (found), 0 (none; *error says why, should the caller need one). */
int interpreter_from_search(const char *path_variable, struct interpreter *interpreter, struct error *error);

#endif
