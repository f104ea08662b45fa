/* PROGRAM, looked at before anything runs: where execve would find it, and whether it could start it. */
#ifndef KD_WORKLOAD_H
#define KD_WORKLOAD_H

#include "codes.h"
#include "error.h"

#include <limits.h>
#include <stdbool.h>

enum { WORKLOAD_SHEBANG_DEPTH = 5 /* as the kernel's exec: Linux fs/binfmt_script.c, exec.c */ };

/* A file as the kernel's exec sees it. */
struct executable {
	bool is_script;
	char interpreter[PATH_MAX]; /* script: the path after #!; ELF: PT_INTERP, or "" when it has none */
	char argument[256];         /* script: the one optional argument, unsplit, or "" */
};

struct workload {
	char path[PATH_MAX]; /* what to give to execve */
	struct executable file;
};

/* Reads the first bytes of PATH. Returns 0, or a negative errno: -ENOENT (missing or dangling), -EACCES (no execute
 * permission, a directory, not a regular file), -ENOEXEC (neither a script nor an ELF file for this machine). */
int executable_read(const char *path, struct executable *executable, struct error *error);

/* Searches NAME as execvp does (a name with '/' is taken as it is; else PATH, its default where unset) and checks the
 * whole chain of interpreters. Returns 0; else -1 with *code WORKLOAD_NOT_FOUND or WORKLOAD_NOT_EXECUTABLE, and *error
 * filled with a message that names the thing and the way out. No allocation. */
int workload_find(const char *name, const char *path_variable, struct workload *workload, enum code *code,
                  struct error *error);

#endif
