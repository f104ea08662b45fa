/* CUDA's driver API behind the driver interface. Signatures: cuda.h of CUDA 12.8; the functions and their suffixes are
 * the same in every driver from 390 on (DESIGN.md 3). */
#include "native_driver.h"

#include "native_images.h"
#include "native_text.h"

static const char *const CUDA_LIBRARIES[] = {"libcuda.so.1", NULL};

static const struct symbol CUDA_SYMBOLS[CALL_MAX] = {
        [CALL_INIT] = {"cuInit", NULL, false},
        [CALL_VERSION] = {"cuDriverGetVersion", NULL, false},
        [CALL_ERROR_NAME] = {"cuGetErrorName", NULL, true},
        [CALL_COUNT] = {"cuDeviceGetCount", NULL, false},
        [CALL_DEVICE] = {"cuDeviceGet", NULL, false},
        [CALL_NAME] = {"cuDeviceGetName", NULL, false},
        [CALL_ATTRIBUTE] = {"cuDeviceGetAttribute", NULL, false},
        [CALL_TOTAL] = {"cuDeviceTotalMem_v2", NULL, false},
        [CALL_UUID] = {"cuDeviceGetUuid", NULL, true}, /* since CUDA 9.2 */
        [CALL_CONTEXT] = {"cuDevicePrimaryCtxRetain", NULL, false},
        [CALL_SET_CURRENT] = {"cuCtxSetCurrent", NULL, false},
        [CALL_MEMORY] = {"cuMemGetInfo_v2", NULL, false},
        [CALL_ALLOCATE] = {"cuMemAlloc_v2", NULL, false},
        [CALL_FREE] = {"cuMemFree_v2", NULL, false},
        [CALL_TO_DEVICE] = {"cuMemcpyHtoD_v2", NULL, false},
        [CALL_TO_HOST] = {"cuMemcpyDtoH_v2", NULL, false},
        [CALL_MODULE] = {"cuModuleLoadData", NULL, false},
        [CALL_FUNCTION] = {"cuModuleGetFunction", NULL, false},
        [CALL_LAUNCH] = {"cuLaunchKernel", NULL, false},
        [CALL_SYNCHRONIZE] = {"cuCtxSynchronize", NULL, false},
        [CALL_UNLOAD] = {"cuModuleUnload", NULL, false},
        /* _v2 since CUDA 11.0 */
        [CALL_RELEASE] = {"cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease", false},
};

enum {
	CUDA_ATTRIBUTE_INTEGRATED = 18,
	CUDA_ATTRIBUTE_MAJOR = 75, /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
	CUDA_ATTRIBUTE_MINOR = 76,
};

/* Calls the function behind `call`, which takes the types `parameters`, and notes its number. */
#define CUDA(driver, call, parameters, ...)                                                                            \
	driver_note((driver), (call), ((int(*) parameters)(driver)->symbols[(call)])(__VA_ARGS__))

static int cuda_init(struct driver *driver)
{
	return CUDA(driver, CALL_INIT, (unsigned), 0);
}

static int cuda_version(struct driver *driver, int *version)
{
	return CUDA(driver, CALL_VERSION, (int *), version);
}

static int cuda_count(struct driver *driver, int *count)
{
	return CUDA(driver, CALL_COUNT, (int *), count);
}

static int cuda_attribute(struct driver *driver, int device, int attribute, int *value)
{
	return CUDA(driver, CALL_ATTRIBUTE, (int *, int, int), value, attribute, device);
}

/* "GPU-" and the 16 bytes as nvidia-smi writes them. */
static int cuda_uuid(struct driver *driver, int device, struct device_facts *facts)
{
	static const char DIGITS[] = "0123456789abcdef";
	unsigned char bytes[16] = {0};
	char *to = facts->uuid + text_copy(facts->uuid, sizeof facts->uuid, "GPU-");
	int number = CUDA(driver, CALL_UUID, (void *, int), bytes, device);

	if (number) {
		facts->uuid[0] = '\0';
		return number;
	}
	for (unsigned i = 0; i < sizeof bytes; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*to++ = '-';
		*to++ = DIGITS[bytes[i] >> 4];
		*to++ = DIGITS[bytes[i] & 15];
	}
	*to = '\0';
	return 0;
}

static int cuda_describe(struct driver *driver, int index, bool uuid, struct device_facts *facts)
{
	int number, device = 0, major = 0, minor = 0, integrated = 0;
	size_t total = 0;

	*facts = (struct device_facts){.total_bytes = 0};
	if ((number = CUDA(driver, CALL_DEVICE, (int *, int), &device, index)) ||
	    (number = CUDA(driver, CALL_NAME, (char *, int, int), facts->name, (int)sizeof facts->name - 1, device)) ||
	    (number = cuda_attribute(driver, device, CUDA_ATTRIBUTE_MAJOR, &major)) ||
	    (number = cuda_attribute(driver, device, CUDA_ATTRIBUTE_MINOR, &minor)) ||
	    (number = CUDA(driver, CALL_TOTAL, (size_t *, int), &total, device)))
		return number;
	text_copy(facts->architecture, sizeof facts->architecture, "sm_");
	text_append_number(facts->architecture, sizeof facts->architecture, major);
	text_append_number(facts->architecture, sizeof facts->architecture, minor);
	facts->total_bytes = total;
	/* Only a hint hangs on it: a driver that does not answer this one is none the worse. */
	if (cuda_attribute(driver, device, CUDA_ATTRIBUTE_INTEGRATED, &integrated) == 0)
		facts->integrated = integrated == 1;
	return uuid && driver->symbols[CALL_UUID] ? cuda_uuid(driver, device, facts) : 0;
}

/* The primary context, as the CUDA runtime uses it; cuCtxCreate changed its signature in CUDA 13. */
static int cuda_open(struct driver *driver, int index)
{
	int number;

	if ((number = CUDA(driver, CALL_DEVICE, (int *, int), &driver->device, index)) ||
	    (number = CUDA(driver, CALL_CONTEXT, (void **, int), &driver->context, driver->device)))
		return number;
	return CUDA(driver, CALL_SET_CURRENT, (void *), driver->context);
}

static int cuda_memory(struct driver *driver, uint64_t *free_bytes)
{
	size_t free = 0, total = 0;
	int number = CUDA(driver, CALL_MEMORY, (size_t *, size_t *), &free, &total);

	*free_bytes = free;
	return number;
}

static int cuda_allocate(struct driver *driver, size_t bytes, device_address *address)
{
	return CUDA(driver, CALL_ALLOCATE, (device_address *, size_t), address, bytes);
}

static int cuda_free(struct driver *driver, device_address address)
{
	return CUDA(driver, CALL_FREE, (device_address), address);
}

static int cuda_to_device(struct driver *driver, device_address to, const void *from, size_t bytes)
{
	return CUDA(driver, CALL_TO_DEVICE, (device_address, const void *, size_t), to, from, bytes);
}

static int cuda_to_host(struct driver *driver, void *to, device_address from, size_t bytes)
{
	return CUDA(driver, CALL_TO_HOST, (void *, device_address, size_t), to, from, bytes);
}

static int cuda_load(struct driver *driver, const void *image)
{
	return CUDA(driver, CALL_MODULE, (void **, const void *), &driver->module, image);
}

static int cuda_function(struct driver *driver, const char *name, void **function)
{
	return CUDA(driver, CALL_FUNCTION, (void **, void *, const char *), function, driver->module, name);
}

static int cuda_launch(struct driver *driver, void *function, unsigned threads, device_address in, device_address out)
{
	void *parameters[] = {&in, &out};

	return CUDA(driver, CALL_LAUNCH,
	            (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
	             void **),
	            function, 1, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL);
}

static int cuda_synchronize(struct driver *driver)
{
	return CUDA(driver, CALL_SYNCHRONIZE, (void), );
}

static int cuda_unload(struct driver *driver)
{
	return CUDA(driver, CALL_UNLOAD, (void *), driver->module);
}

static int cuda_close(struct driver *driver)
{
	return CUDA(driver, CALL_RELEASE, (int), driver->device);
}

static const char *cuda_error_name(struct driver *driver, int number)
{
	const char *name = NULL;

	if (!driver->symbols[CALL_ERROR_NAME])
		return NULL;
	if (((int (*)(int, const char **))driver->symbols[CALL_ERROR_NAME])(number, &name))
		return NULL;
	return name;
}

const struct backend CUDA_BACKEND = {
        .name = "cuda",
        .errors = ERROR_TABLE_CUDA,
        .libraries = CUDA_LIBRARIES,
        .symbols = CUDA_SYMBOLS,
        .version_key = "driver_version",
        .version_before_init = true,
        .init = cuda_init,
        .version = cuda_version,
        .count = cuda_count,
        .describe = cuda_describe,
        .open = cuda_open,
        .memory = cuda_memory,
        .allocate = cuda_allocate,
        .free = cuda_free,
        .to_device = cuda_to_device,
        .to_host = cuda_to_host,
        .load = cuda_load,
        .function = cuda_function,
        .launch = cuda_launch,
        .synchronize = cuda_synchronize,
        .unload = cuda_unload,
        .close = cuda_close,
        .error_name = cuda_error_name,
        .image = image_for_cuda,
};
