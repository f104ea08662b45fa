/* The HIP runtime behind the driver interface. Signatures: hip_runtime_api.h of HIP 5.2; all of these have kept their
 * symbol version hip_4.2 up to 7.2 (DESIGN.md 4). */
#include "native_driver.h"

#include "native_images.h"
#include "native_text.h"

static const char *const HIP_LIBRARIES[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", NULL};

static const struct symbol HIP_SYMBOLS[CALL_MAX] = {
        [CALL_INIT] = {"hipInit", NULL, false},
        [CALL_VERSION] = {"hipRuntimeGetVersion", NULL, false},
        [CALL_ERROR_NAME] = {"hipGetErrorName", NULL, true},
        [CALL_COUNT] = {"hipGetDeviceCount", NULL, false},
        [CALL_NAME] = {"hipDeviceGetName", NULL, false},
        [CALL_ATTRIBUTE] = {"hipGetDeviceProperties", NULL, false},
        [CALL_TOTAL] = {"hipDeviceTotalMem", NULL, false},
        [CALL_UUID] = {"hipDeviceGetUuid", NULL, true}, /* since HIP 5.1 */
        [CALL_CONTEXT] = {"hipSetDevice", NULL, false},
        [CALL_MEMORY] = {"hipMemGetInfo", NULL, false},
        [CALL_ALLOCATE] = {"hipMalloc", NULL, false},
        [CALL_FREE] = {"hipFree", NULL, false},
        [CALL_TO_DEVICE] = {"hipMemcpyHtoD", NULL, false},
        [CALL_TO_HOST] = {"hipMemcpyDtoH", NULL, false},
        [CALL_MODULE] = {"hipModuleLoadData", NULL, false},
        [CALL_FUNCTION] = {"hipModuleGetFunction", NULL, false},
        [CALL_LAUNCH] = {"hipModuleLaunchKernel", NULL, false},
        [CALL_SYNCHRONIZE] = {"hipDeviceSynchronize", NULL, false},
        [CALL_UNLOAD] = {"hipModuleUnload", NULL, false},
};

/* hipDeviceProp_t as the plain symbol hipGetDeviceProperties fills it in every release: the layout of HIP 5. */
enum {
	HIP_PROPERTIES_SIZE = 4096,
	HIP_PROPERTIES_ARCHITECTURE = 396, /* gcnArchName, char[256] */
	HIP_PROPERTIES_INTEGRATED = 652,   /* int */
};

#define HIP(driver, call, parameters, ...)                                                                             \
	driver_note((driver), (call), ((int(*) parameters)(driver)->symbols[(call)])(__VA_ARGS__))

static int hip_init(struct driver *driver)
{
	return HIP(driver, CALL_INIT, (unsigned), 0);
}

static int hip_version(struct driver *driver, int *version)
{
	return HIP(driver, CALL_VERSION, (int *), version);
}

static int hip_count(struct driver *driver, int *count)
{
	return HIP(driver, CALL_COUNT, (int *), count);
}

/* "gfx90a:sramecc+:xnack-" without its features; "" when that is no architecture. */
static void hip_architecture(const char *properties, struct device_facts *facts)
{
	const char *full = properties + HIP_PROPERTIES_ARCHITECTURE;
	size_t length = 0;

	if (!text_starts(full, "gfx"))
		return;
	while (full[length] && full[length] != ':' && length + 1 < sizeof facts->architecture) {
		facts->architecture[length] = full[length];
		length++;
	}
	facts->architecture[length] = '\0';
}

/* HIP gives the 16 characters that rocminfo shows behind "GPU-"; all zero where the chip has no number. */
static int hip_uuid(struct driver *driver, int index, struct device_facts *facts)
{
	char bytes[17] = {0};
	int number = HIP(driver, CALL_UUID, (void *, int), bytes, index);

	if (!number && bytes[0]) {
		text_copy(facts->uuid, sizeof facts->uuid, "GPU-");
		text_append(facts->uuid, sizeof facts->uuid, bytes);
	}
	return number;
}

static int hip_describe(struct driver *driver, int index, bool uuid, struct device_facts *facts)
{
	_Alignas(16) char properties[HIP_PROPERTIES_SIZE] = {0};
	int number, integrated;
	size_t total = 0;

	*facts = (struct device_facts){.total_bytes = 0};
	if ((number = HIP(driver, CALL_NAME, (char *, int, int), facts->name, (int)sizeof facts->name - 1, index)) ||
	    (number = HIP(driver, CALL_ATTRIBUTE, (void *, int), properties, index)) ||
	    (number = HIP(driver, CALL_TOTAL, (size_t *, int), &total, index)))
		return number;
	hip_architecture(properties, facts);
	memcpy(&integrated, properties + HIP_PROPERTIES_INTEGRATED, sizeof integrated);
	facts->integrated = integrated == 1;
	facts->total_bytes = total;
	return uuid && driver->symbols[CALL_UUID] ? hip_uuid(driver, index, facts) : 0;
}

static int hip_open(struct driver *driver, int index)
{
	driver->device = index;
	return HIP(driver, CALL_CONTEXT, (int), index);
}

static int hip_memory(struct driver *driver, uint64_t *free_bytes)
{
	size_t free = 0, total = 0;
	int number = HIP(driver, CALL_MEMORY, (size_t *, size_t *), &free, &total);

	*free_bytes = free;
	return number;
}

static int hip_allocate(struct driver *driver, size_t bytes, device_address *address)
{
	return HIP(driver, CALL_ALLOCATE, (device_address *, size_t), address, bytes);
}

static int hip_free(struct driver *driver, device_address address)
{
	return HIP(driver, CALL_FREE, (device_address), address);
}

static int hip_to_device(struct driver *driver, device_address to, const void *from, size_t bytes)
{
	return HIP(driver, CALL_TO_DEVICE, (device_address, const void *, size_t), to, from, bytes);
}

static int hip_to_host(struct driver *driver, void *to, device_address from, size_t bytes)
{
	return HIP(driver, CALL_TO_HOST, (void *, device_address, size_t), to, from, bytes);
}

static int hip_load(struct driver *driver, const void *image)
{
	return HIP(driver, CALL_MODULE, (void **, const void *), &driver->module, image);
}

static int hip_function(struct driver *driver, const char *name, void **function)
{
	return HIP(driver, CALL_FUNCTION, (void **, void *, const char *), function, driver->module, name);
}

static int hip_launch(struct driver *driver, void *function, unsigned threads, device_address in, device_address out)
{
	void *parameters[] = {&in, &out};

	return HIP(driver, CALL_LAUNCH,
	           (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
	            void **),
	           function, 1, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL);
}

static int hip_synchronize(struct driver *driver)
{
	return HIP(driver, CALL_SYNCHRONIZE, (void), );
}

static int hip_unload(struct driver *driver)
{
	return HIP(driver, CALL_UNLOAD, (void *), driver->module);
}

/* The primary context of HIP goes with the process. */
static int hip_close(struct driver *driver)
{
	(void)driver;
	return 0;
}

static const char *hip_error_name(struct driver *driver, int number)
{
	if (!driver->symbols[CALL_ERROR_NAME])
		return NULL;
	return ((const char *(*)(int))driver->symbols[CALL_ERROR_NAME])(number);
}

const struct backend HIP_BACKEND = {
        .name = "hip",
        .errors = ERROR_TABLE_HIP,
        .libraries = HIP_LIBRARIES,
        .symbols = HIP_SYMBOLS,
        .version_key = "runtime_version",
        .version_before_init = false, /* it would initialise */
        .init = hip_init,
        .version = hip_version,
        .count = hip_count,
        .describe = hip_describe,
        .open = hip_open,
        .memory = hip_memory,
        .allocate = hip_allocate,
        .free = hip_free,
        .to_device = hip_to_device,
        .to_host = hip_to_host,
        .load = hip_load,
        .function = hip_function,
        .launch = hip_launch,
        .synchronize = hip_synchronize,
        .unload = hip_unload,
        .close = hip_close,
        .error_name = hip_error_name,
        .image = image_for_hip,
};
