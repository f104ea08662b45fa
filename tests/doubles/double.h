/* What the two driver doubles share: a strict little GPU, and the fault language.
 *
 * A double is a library with a driver's name and exports that needs no GPU. It really computes, with the host build of
 * kernels/check.c, and is stricter than the driver it stands for: what the real one forgives, it refuses. It is for
 * tests. A pass over it says nothing about a GPU, so its devices are called "kd-double GPU N".
 *
 * Set up by environment, read when the library is loaded:
 *
 *   KD_DOUBLE_DEVICES=N          devices in the machine, 0 to 64 (1)
 *   KD_DOUBLE_ARCH=A[,A...]      their architectures, the last one for all that follow: sm_NN counts for CUDA (sm_90),
 *                                gfx... for HIP (gfx942); words of the other kind are passed over
 *   KD_DOUBLE_DRIVER_VERSION=N   as the driver codes it (CUDA 12040, HIP 60342131)
 *   KD_DOUBLE_MEMORY=BYTES       of each device (17179869184)
 *   KD_DOUBLE_EXCLUSIVE=NAME     a context locks its device: another process then gets 46 (HIP: 216). NAME is any text,
 * a path by custom; the lock of device N is the abstract AF_UNIX SOCK_SEQPACKET address "kd-double:NAME:N", which a
 * sandboxed worker can still bind and which dies with it KD_DOUBLE_LOG=stderr|fd:N|FILE   one line a call: "kd-double
 * PID CALL DEVICE RESULT" KD_DOUBLE_FAULT=SPEC         see fault.c
 *
 * and by the masks of the real drivers (mask.c). A value that is none of these kills the process loudly, with SIGTRAP,
 * which no test expects: a typo in a test must not look like the failure that the test waits for.
 *
 * One thread at a time. Core functions return 0 or an error number; the numbers that are used here mean the same in
 * CUDA and HIP. */
#ifndef KD_DOUBLE_H
#define KD_DOUBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

enum {
	DOUBLE_DEVICES_MAX = 64,
	DOUBLE_NO_DEVICE = -1, /* a call that belongs to no device */
	DOUBLE_GO = -1,        /* double_begin: no fault, do the work */
	DOUBLE_POISON = 0xA5,  /* every byte of fresh device memory */

	E_INVALID_VALUE = 1,
	E_OUT_OF_MEMORY = 2,
	E_NOT_INITIALIZED = 3,
	E_DEVICE_UNAVAILABLE = 46, /* CUDA only */
	E_NO_DEVICE = 100,
	E_INVALID_DEVICE = 101,
	E_INVALID_IMAGE = 200,
	E_INVALID_CONTEXT = 201,
	E_NO_BINARY_FOR_GPU = 209,
	E_CONTEXT_ALREADY_IN_USE = 216, /* HIP's word for a busy device */
	E_INVALID_HANDLE = 400,
	E_NOT_FOUND = 500,
	E_ILLEGAL_ADDRESS = 700
};

enum kernel { KERNEL_PRODUCT, KERNEL_GRADIENT };

/* What the ABI file tells of itself. */
struct double_backend {
	const char *library;     /* "cuda", "hip" */
	const char *arch_prefix; /* "sm_", "gfx" */
	const char *default_arch;
	int default_version;
	int busy_error; /* of a context on a device that another process holds */
	/* Fills visible[] with physical ordinals, in order; returns how many. */
	int (*mask)(int devices, int visible[DOUBLE_DEVICES_MAX]);
	/* Is `image` one that we ship and that fits `arch`? 0 or an error number. Reads no further than the image goes.
	 */
	int (*check_image)(const void *image, const char *arch);
};

/* Defined once by each ABI file. */
extern const struct double_backend double_backend;

/* Every exported call is framed by these two. double_begin logs nothing yet, applies the faults that fit, and returns
 * DOUBLE_GO or the number to return at once; double_end logs and hands `result` through. `device` is the visible
 * ordinal that the call is about, or DOUBLE_NO_DEVICE. */
int double_begin(const char *call, int device);
int double_end(const char *call, int device, int result);

/* Prints "kd-double: ..." on stderr and dies of SIGTRAP. */
__attribute__((noreturn, format(printf, 1, 2))) void double_die(const char *format, ...);

/* Initialisation and devices. */
int double_init(void);
bool double_initialised(void);
int double_version(void);
int double_count(int *count);
int double_check_device(int device); /* 0, E_NOT_INITIALIZED or E_INVALID_DEVICE */
int double_name(int device, char *name, int size);
int double_uuid(int device, uint8_t uuid[16]);
const char *double_arch(int device); /* of a valid device */
int double_memory_total(int device, size_t *bytes);
int double_physical(int device); /* of a valid device */

/* Contexts, one a device, counted. */
int double_context_retain(int device);
int double_context_release(int device);
bool double_context_live(int device);
void double_set_current(int device); /* DOUBLE_NO_DEVICE: none */
int double_current(void);            /* the current device, or DOUBLE_NO_DEVICE */

/* All of these need a live current context (else E_INVALID_CONTEXT). Addresses and handles are never reused, and no
 * address is one of this process: a client that reads through it crashes. */
int double_memory_info(size_t *available, size_t *total);
int double_alloc(uint64_t *address, size_t size);
int double_free(uint64_t address);
int double_upload(uint64_t to, const void *from, size_t size);
int double_download(void *to, uint64_t from, size_t size);
int double_module_load(void **module, const void *image);
int double_module_function(void **function, void *module, const char *name);
int double_module_unload(void *module);
/* Exactly one block of CHECK_THREADS threads, no shared memory, the default stream, arguments by pointer. */
int double_launch(void *function, const unsigned grid[3], const unsigned block[3], unsigned shared, const void *stream,
                  void *const *arguments, void *const *extra);
int double_synchronise(void);

/* fault.c: parsed when the library is loaded. */
void fault_parse(const char *spec);
/* Applies what fits to this call, in the order of the spec. Returns DOUBLE_GO or a number to return. */
int fault_apply(const char *call, int device);
/* After the kernel ran on `out`: corrupts its results as the launch's faults say. */
void fault_corrupt(enum kernel kernel, float *out);

/* mask.c */
int mask_cuda(int devices, int visible[DOUBLE_DEVICES_MAX]);
int mask_hip(int devices, int visible[DOUBLE_DEVICES_MAX]);
/* The text forms of device UUIDs that masks are matched against; `physical` is the ordinal in the machine. */
void mask_uuid_bytes(int physical, uint8_t uuid[16]);
void mask_uuid_cuda(int physical, char text[48]); /* GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx */
void mask_uuid_hip(int physical, char text[48]);  /* GPU-xxxxxxxxxxxxxxxx */

#endif
