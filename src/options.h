/* The command line and its twins in the environment (CONTRACT.md 2), from one table. */
#ifndef KD_OPTIONS_H
#define KD_OPTIONS_H

#include "error.h"
#include "messages.h"
#include "sandbox.h"

#include <stdbool.h>
#include <stdio.h>

enum action { ACTION_CHECK, ACTION_SUMMARIZE, ACTION_LIST_CODES, ACTION_VERSION, ACTION_HELP };
enum device { DEVICE_GPU, DEVICE_CPU };
enum framework { FRAMEWORK_AUTO, FRAMEWORK_TORCH, FRAMEWORK_NONE };
enum format { FORMAT_TEXT, FORMAT_JSON };

enum {
	OPTIONS_INDEX_ALL = -1,
	OPTIONS_EXPECT_OFF = -1,
	OPTIONS_INDEX_MAX = 65535,
	OPTIONS_TIMEOUT_MIN_S = 5,
	OPTIONS_TIMEOUT_MAX_S = 120,
};

struct options {
	enum action action;
	enum device device;
	int device_index;   /* or OPTIONS_INDEX_ALL */
	int expect_devices; /* or OPTIONS_EXPECT_OFF */
	int timeout_s;
	const char *output; /* NULL: none */
	bool host_check;
	enum framework framework;
	const char *python; /* NULL: from PROGRAM, else PATH */
	enum sandbox_mode sandbox;
	const char *termination_log; /* NULL: none */
	enum format format;
	bool device_uuid;
	enum language language;
	bool verbose;
	const char *summarize_dir; /* with ACTION_SUMMARIZE */
	char *const *program;      /* PROGRAM and its arguments, NULL-terminated, inside argv; NULL: none */
};

/* Reads the environment, then argv (which wins). Strings in *options point into argv and the environment. Returns 0, or
 * -EINVAL with *error naming the first bad thing and what is accepted; *options then holds all that could be read, so
 * that the report of the error can go where it was asked for. */
int options_parse(struct options *options, int argc, char *const argv[], char *const envp[], struct error *error);

/* Prints `--help`, from the same table. */
void options_print_help(FILE *stream);

/* The words of the table for a value, as the report shows them. */
const char *options_device_word(enum device device);
const char *options_framework_word(enum framework framework);
const char *options_sandbox_word(enum sandbox_mode mode);

#endif
