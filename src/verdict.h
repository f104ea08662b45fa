/* From what the workers did to one code, stage and set of hints: a pure function, no I/O, no clock. */
#ifndef KD_VERDICT_H
#define KD_VERDICT_H

#include "codes.h"
#include "messages.h"
#include "options.h"
#include "result.h"

#include <stdbool.h>
#include <stdint.h>

/* How a worker's life went, as the supervisor saw it. */
enum fate {
	FATE_NOT_STARTED,    /* nothing asked for it, or an earlier worker made it pointless */
	FATE_SANDBOX_FAILED, /* the child could not put up what --sandbox require demands */
	FATE_EXEC_FAILED,    /* the child could not become the worker */
	FATE_EXITED,
	FATE_SIGNALED,
	FATE_TIMEOUT,
	FATE_NO_TURN, /* it waited for a turn at the GPU that never came (a native worker could not be killed) */
};

struct outcome {
	enum fate fate;
	int exit_status;  /* FATE_EXITED */
	int signal;       /* FATE_SIGNALED */
	int error_number; /* FATE_SANDBOX_FAILED, FATE_EXEC_FAILED: positive errno */
	const char *call; /* likewise: static, the call that failed */
	bool unkillable;  /* it outlived its SIGKILL */
	int64_t elapsed_ms;
	const struct result *result;
};

enum torch_rule {
	TORCH_NOT_ASKED,
	TORCH_IF_PRESENT, /* its absence is no failure; once there it counts like TORCH_REQUIRED */
	TORCH_REQUIRED,
};

struct verdict_input {
	enum device device;
	enum torch_rule torch_rule;
	int device_index;             /* or OPTIONS_INDEX_ALL */
	int expect_devices;           /* or OPTIONS_EXPECT_OFF */
	bool has_loader;              /* a dynamic loader was found for the native worker */
	int interrupted_by;           /* a signal, or 0 */
	const struct outcome *python; /* never NULL; FATE_NOT_STARTED where none was run */
	const struct outcome *native; /* one per device that was asked for, in the order of the index */
	int native_count;
};

enum { VERDICT_TEXT_MAX = 24, VERDICT_HINTS_MAX = 16 };

/* The facts of a failure; a member is told when it is not 0, NULL or "" (have_ where 0 is a fact). */
struct detail {
	bool have;
	const char *call, *error_name, *missing; /* point into the outcomes' results or are static */
	bool have_error_number;
	long error_number;
	int signal;
	char expected[VERDICT_TEXT_MAX], observed[VERDICT_TEXT_MAX];
	bool have_during;
	enum stage during;
	bool unkillable;
	int64_t elapsed_ms; /* -1: not told */
};

struct verdict {
	enum code code;
	enum stage stage;
	int signal; /* for CODE_INTERRUPTED */
	struct detail detail;
	int hint_count;
	enum hint hints[VERDICT_HINTS_MAX];
	bool torch_checked;       /* PyTorch was there and counted */
	const struct outcome *by; /* the worker that decided, or NULL */
	bool product_verified, gradient_verified;
	bool have_loss;
	float loss;
};

struct verdict verdict_decide(const struct verdict_input *input);

/* The code of one worker alone, for the report's list of devices; CODE_COUNT when it was not checked. `device` as in
 * struct computation. */
enum code verdict_of_device(const struct outcome *outcome, int device);

/* Adds a hint once; a full list drops it. */
void verdict_add_hint(struct verdict *verdict, enum hint hint);

#endif
