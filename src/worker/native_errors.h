/* What a driver's error number means: its name, the layer at fault, and the hint that follows from the number alone. */
#ifndef KD_NATIVE_ERRORS_H
#define KD_NATIVE_ERRORS_H

#include "native_hints.h"

#include <stddef.h>
#include <stdint.h>

enum error_table { ERROR_TABLE_CUDA, ERROR_TABLE_HIP, ERROR_TABLE_COUNT };

enum error_kind {
	ERROR_RUNTIME,
	ERROR_MEMORY,
	ERROR_UNAVAILABLE, /* the GPU or its driver refuses this process */
	ERROR_INDEX,
	ERROR_STUB, /* the library is the toolkit's stub, not a driver */
};

/* Which kind of operation met the error. */
enum error_step {
	STEP_INIT,    /* initialisation, counting */
	STEP_DEVICE,  /* asking a device for its properties */
	STEP_CONTEXT, /* creating a context */
	STEP_WORK,    /* everything on that context */
};

struct error_facts {
	enum error_kind kind;
	enum native_hint hint;
	char name[48]; /* "CUDA_ERROR_NO_DEVICE", or "" for a number that the table lacks */
};

void error_look_up(enum error_table table, int number, struct error_facts *facts);

/* The word of CONTRACT.md 3 for an error of this kind in this step. */
const char *error_code(enum error_kind kind, enum error_step step);

#endif
