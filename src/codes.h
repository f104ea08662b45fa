/* The codes and stages of the contract (CONTRACT.md 3): one table each, read by the parser of worker
 * messages, the report, the terminal, `--list-codes` and the tests. */
#ifndef KD_CODES_H
#define KD_CODES_H

#include <stdbool.h>
#include <stddef.h>

enum code {
	CODE_GPU_CHECK_PASSED,
	CODE_CPU_CHECK_PASSED,
	CODE_USAGE_ERROR,
	CODE_TORCH_MISSING,
	CODE_TORCH_IMPORT_FAILED,
	CODE_GPU_BACKEND_ABSENT,
	CODE_GPU_UNAVAILABLE,
	CODE_DEVICE_INDEX_INVALID,
	CODE_CHECK_FAILED,
	CODE_OUT_OF_MEMORY,
	CODE_RUNTIME_ERROR,
	CODE_TIMEOUT,
	CODE_WORKER_FAILED,
	CODE_OUTPUT_WRITE_FAILED,
	CODE_INTERPRETER_FAILED,
	CODE_SANDBOX_FAILED,
	CODE_WORKLOAD_NOT_EXECUTABLE,
	CODE_WORKLOAD_NOT_FOUND,
	CODE_INTERRUPTED,
	CODE_COUNT
};

/* In the order in which a run can pass through them: "first failing layer" compares these numbers. */
enum stage {
	STAGE_ARGUMENTS,
	STAGE_WORKLOAD,
	STAGE_OUTPUT,
	STAGE_SANDBOX,
	STAGE_INTERPRETER,
	STAGE_IMPORT,
	STAGE_BACKEND,
	STAGE_DEVICE,
	STAGE_ALLOCATION,
	STAGE_PRODUCT,
	STAGE_GRADIENT,
	STAGE_SYNCHRONIZATION,
	STAGE_COMPLETE,
	STAGE_COUNT
};

/* The word of the contract for a code or stage; never NULL for a value of the enum. */
const char *code_name(enum code code);
const char *stage_name(enum stage stage);

/* The exit status of the check, 0 to 255. `signal_number` counts only for CODE_INTERRUPTED (128+n). */
int code_exit_status(enum code code, int signal_number);

/* True and *out set when `name` (length bytes, not terminated) is a word of the table. */
bool code_from_name(const char *name, size_t length, enum code *out);
bool stage_from_name(const char *name, size_t length, enum stage *out);

/* True for the two codes that are a pass. */
bool code_is_pass(enum code code);

#endif
