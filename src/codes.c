#include "codes.h"

#include <string.h>

static const struct {
	const char *name;
	int exit_status;
} CODES[CODE_COUNT] = {
        [CODE_GPU_CHECK_PASSED] = {"GPU_CHECK_PASSED", 0},
        [CODE_CPU_CHECK_PASSED] = {"CPU_CHECK_PASSED", 0},
        [CODE_USAGE_ERROR] = {"USAGE_ERROR", 2},
        [CODE_TORCH_MISSING] = {"TORCH_MISSING", 3},
        [CODE_TORCH_IMPORT_FAILED] = {"TORCH_IMPORT_FAILED", 4},
        [CODE_GPU_BACKEND_ABSENT] = {"GPU_BACKEND_ABSENT", 5},
        [CODE_GPU_UNAVAILABLE] = {"GPU_UNAVAILABLE", 6},
        [CODE_DEVICE_INDEX_INVALID] = {"DEVICE_INDEX_INVALID", 7},
        [CODE_CHECK_FAILED] = {"CHECK_FAILED", 8},
        [CODE_OUT_OF_MEMORY] = {"OUT_OF_MEMORY", 9},
        [CODE_RUNTIME_ERROR] = {"RUNTIME_ERROR", 9},
        [CODE_TIMEOUT] = {"TIMEOUT", 10},
        [CODE_WORKER_FAILED] = {"WORKER_FAILED", 11},
        [CODE_OUTPUT_WRITE_FAILED] = {"OUTPUT_WRITE_FAILED", 12},
        [CODE_INTERPRETER_FAILED] = {"INTERPRETER_FAILED", 13},
        [CODE_SANDBOX_FAILED] = {"SANDBOX_FAILED", 14},
        [CODE_WORKLOAD_NOT_EXECUTABLE] = {"WORKLOAD_NOT_EXECUTABLE", 126},
        [CODE_WORKLOAD_NOT_FOUND] = {"WORKLOAD_NOT_FOUND", 127},
        [CODE_INTERRUPTED] = {"INTERRUPTED", 128},
};

static const char *const STAGES[STAGE_COUNT] = {
        [STAGE_ARGUMENTS] = "arguments",     [STAGE_WORKLOAD] = "workload",
        [STAGE_OUTPUT] = "output",           [STAGE_SANDBOX] = "sandbox",
        [STAGE_INTERPRETER] = "interpreter", [STAGE_IMPORT] = "import",
        [STAGE_BACKEND] = "backend",         [STAGE_DEVICE] = "device",
        [STAGE_ALLOCATION] = "allocation",   [STAGE_PRODUCT] = "product",
        [STAGE_GRADIENT] = "gradient",       [STAGE_SYNCHRONIZATION] = "synchronization",
        [STAGE_COMPLETE] = "complete",
};

const char *code_name(enum code code)
{
	return CODES[code].name;
}

const char *stage_name(enum stage stage)
{
	return STAGES[stage];
}

int code_exit_status(enum code code, int signal_number)
{
	return CODES[code].exit_status + (code == CODE_INTERRUPTED ? signal_number : 0);
}

static bool same(const char *word, const char *name, size_t length)
{
	return strlen(word) == length && memcmp(word, name, length) == 0;
}

bool code_from_name(const char *name, size_t length, enum code *out)
{
	for (int i = 0; i < CODE_COUNT; i++) {
		if (same(CODES[i].name, name, length)) {
			*out = (enum code)i;
			return true;
		}
	}
	return false;
}

bool stage_from_name(const char *name, size_t length, enum stage *out)
{
	for (int i = 0; i < STAGE_COUNT; i++) {
		if (same(STAGES[i], name, length)) {
			*out = (enum stage)i;
			return true;
		}
	}
	return false;
}

bool code_is_pass(enum code code)
{
	return code == CODE_GPU_CHECK_PASSED || code == CODE_CPU_CHECK_PASSED;
}
