/* What a worker says, and what the supervisor makes of it.
 *
 * The protocol. A worker writes lines `KEY VALUE\n` (one space; 7-bit printable; at most RESULT_LINE_MAX bytes with
 * the newline, RESULT_TOTAL_MAX in all) to its result descriptor, in this vocabulary:
 *
 *   stage NAME               it enters this stage (a word of codes.h); TIMEOUT and WORKER_FAILED are told with the last
 * one wait turn                it will not go on before a byte arrives on its go descriptor (its clock stands still)
 *   no_new_privs 0|1         ) what the worker measured of its own sandbox, by reading it back and by harmless
 * forbidden seccomp 0|1              ) acts; a worker that could not measure says nothing writes_confined 0|1      )
 *   libc TEXT                "glibc 2.36", "musl"
 *   fail CODE                the code of the failure, in the stage last entered; then `end fail`
 *   call TEXT                the call that failed: "cuInit", "torch.matmul"
 *   error_number N           ) as the driver or the kernel numbers and names it
 *   error_name TEXT          ) ("CUDA_ERROR_NO_DEVICE"; for python, the exception's class)
 *   missing TEXT             name of the missing module, shared object or symbol; a bare name, never a path
 *   during NAME              stage whose work was pending when a synchronisation failed
 *   hint ID                  a hint id of messages.h
 *   computed cpu|N           a computation on this device begins; the values that follow belong to it
 *   product H H H H          C, row by row: the bits of each float32 in 8 lower-case hex digits, in the order of memory
 *   loss H                   )
 *   gradient H H H H         ) dloss/dA, row by row
 *   end pass|fail            the last line; the worker then exits 0
 *
 *   Only the python worker: python_version, python_implementation ("cpython"), torch_version, torch_cuda and torch_hip
 *   (absent where the package has none), torch_backend cuda|hip|none, torch_gpu_available 0|1, torch_device_count N,
 *   torch_arch_list A,B,...
 *   Only the native worker: backend cuda|hip, library_origin system|compat|stub|wsl|python-package|other,
 *   driver_version N, runtime_version N (as the driver codes them), device_count N; and per device
 *   `device N` followed by device_name, device_arch, device_memory_total, device_memory_free (bytes), device_uuid.
 *
 * The worker runs foreign code, so all of this is hostile input: a line that is not in the grammar, a value out of
 * range, a key of the other worker or said twice where that makes no sense turns the result into `malformed`, which is
 * WORKER_FAILED. Numbers are compared by the supervisor, never believed as "passed".
 */
#ifndef KD_RESULT_H
#define KD_RESULT_H

#include "codes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RESULT_LINE_MAX = 512,
	RESULT_TOTAL_MAX = 65536,
	RESULT_DEVICES_MAX = 128,
	RESULT_HINTS_MAX = 8,
	RESULT_NAME_MAX = 128,
	RESULT_CPU = -2, /* computation.device for the CPU; -1 is OPTIONS_INDEX_ALL */
};

enum worker_kind { WORKER_PYTHON, WORKER_NATIVE, WORKER_HOST };

struct device_facts {
	bool seen;
	char name[RESULT_NAME_MAX];
	char architecture[32];
	uint64_t memory_total_bytes; /* 0: not told */
	uint64_t memory_free_bytes;  /* 0: not told */
	char uuid[64];
};

/* Values as float32 bits; `have` counts a full set only. */
struct computation {
	int device;
	bool have_product, have_loss, have_gradient;
	uint32_t product[4], loss, gradient[4];
};

struct result {
	enum worker_kind kind;
	bool malformed, ended, ended_pass, waiting;
	enum stage stage;
	bool failed;
	enum code code;                             /* with failed */
	int no_new_privs, seccomp, writes_confined; /* -1: not measured */
	char libc[32];
	char call[64], error_name[64], missing[96];
	long error_number;
	bool have_error_number, have_during;
	enum stage during;
	int hint_count;
	int hints[RESULT_HINTS_MAX]; /* enum hint of messages.h */
	int computation_count;
	struct computation computations[RESULT_DEVICES_MAX];
	/* python */
	char python_version[32], python_implementation[32];
	char torch_version[64], torch_cuda[32], torch_hip[64], torch_backend[8], torch_arch_list[400];
	int torch_gpu_available, torch_device_count; /* -1: not told */
	/* native */
	char backend[8], library_origin[16];
	long driver_version, runtime_version; /* -1: not told */
	int device_count;                     /* -1: not told */
	int current_device;
	struct device_facts devices[RESULT_DEVICES_MAX];
	/* the reader's own state */
	size_t total, line_length;
	char line[RESULT_LINE_MAX];
};

/* Sets up an empty result for a worker of this kind. */
void result_init(struct result *result, enum worker_kind kind);

/* Reads `length` bytes as they came from the worker's descriptor, in any cut. Never fails: bad input sets
 * result->malformed, after which everything further is ignored. No allocation, no I/O. */
void result_feed(struct result *result, const char *bytes, size_t length);

#endif
