/* One driver interface over CUDA's driver API and the HIP runtime, so that the rungs are written once. */
#ifndef KD_NATIVE_DRIVER_H
#define KD_NATIVE_DRIVER_H

#include "native_errors.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The calls that the two backends map to functions of their library. */
enum call {
	CALL_INIT,
	CALL_VERSION,
	CALL_ERROR_NAME,
	CALL_COUNT,
	CALL_DEVICE,
	CALL_NAME,
	CALL_ATTRIBUTE,
	CALL_TOTAL,
	CALL_UUID,
	CALL_CONTEXT,
	CALL_SET_CURRENT,
	CALL_MEMORY,
	CALL_ALLOCATE,
	CALL_FREE,
	CALL_TO_DEVICE,
	CALL_TO_HOST,
	CALL_MODULE,
	CALL_FUNCTION,
	CALL_LAUNCH,
	CALL_SYNCHRONIZE,
	CALL_UNLOAD,
	CALL_RELEASE,
	CALL_MAX
};

struct symbol {
	const char *name;  /* NULL: this backend needs no such call */
	const char *older; /* the name in older libraries, or NULL */
	bool optional;     /* the library may lack it */
};

struct device_facts {
	char name[128];
	char architecture[32]; /* "sm_90", "gfx942" */
	uint64_t total_bytes;
	char uuid[64]; /* "" unless asked for and told */
	bool integrated;
};

struct driver {
	const struct backend *backend;
	void *symbols[CALL_MAX];
	enum call failed; /* the call that returned the last number that was not 0 */
	int device;       /* CUdevice; the HIP ordinal */
	void *context;
	void *module;
};

typedef uint64_t device_address; /* CUdeviceptr; HIP's void pointer */

/* A table of operations. Each returns 0, or the driver's own error number with driver->failed set. */
struct backend {
	const char *name; /* of the protocol: "cuda", "hip" */
	enum error_table errors;
	const char *const *libraries; /* sonames in the order to try, NULL at the end */
	const struct symbol *symbols; /* CALL_MAX of them */
	const char *version_key;      /* of the protocol: "driver_version", "runtime_version" */

	bool version_before_init; /* answers without a device: worth knowing when initialisation fails */
	int (*init)(struct driver *driver);
	int (*version)(struct driver *driver, int *version);
	int (*count)(struct driver *driver, int *count);
	int (*describe)(struct driver *driver, int index, bool uuid, struct device_facts *facts);
	int (*open)(struct driver *driver, int index); /* a current context on the device */
	int (*memory)(struct driver *driver, uint64_t *free_bytes);
	int (*allocate)(struct driver *driver, size_t bytes, device_address *address);
	int (*free)(struct driver *driver, device_address address);
	int (*to_device)(struct driver *driver, device_address to, const void *from, size_t bytes);
	int (*to_host)(struct driver *driver, void *to, device_address from, size_t bytes);
	/* The image must outlive the module. */
	int (*load)(struct driver *driver, const void *image);
	/* One block of `threads` threads with the two parameters `in` and `out`. */
	int (*function)(struct driver *driver, const char *name, void **function);
	int (*launch)(struct driver *driver, void *function, unsigned threads, device_address in, device_address out);
	int (*synchronize)(struct driver *driver);
	int (*unload)(struct driver *driver);
	int (*close)(struct driver *driver);

	/* The driver's own static word for an error number, or NULL. */
	const char *(*error_name)(struct driver *driver, int number);
	/* The image for a device of this architecture: text for CUDA's compiler, or an anonymous page-aligned copy of a
	 * code object. NULL when there is none. */
	const void *(*image)(const char *architecture);
};

extern const struct backend CUDA_BACKEND;
extern const struct backend HIP_BACKEND;

/* Notes which call gave `number`, and passes it on. */
int driver_note(struct driver *driver, enum call call, int number);

/* Binds the symbols of a loaded library. Returns NULL, or the name of a symbol that the library lacks. */
const char *driver_bind(struct driver *driver, const struct backend *backend, void *library);

/* The name of the function behind a call: "cuInit". */
const char *driver_call_name(const struct driver *driver, enum call call);

#endif
