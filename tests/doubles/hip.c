/* libamdhip64.so.6: the runtime calls that kd-preflight makes, with the signatures of ROCm's hip_runtime_api.h (hip_4.2
 * symbols, the same from 5.2 to 7.2; hipDeviceGetUuid since 5.2).
 *
 * HIP knows no explicit contexts: device 0 is current after initialisation, and a device's context comes with the first
 * call that needs it. It also initialises itself at any call; here hipInit must come first. */
#include "double.h"

#include "../../build/kernels/images.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ATTRIBUTE_COMPUTE_MODE = 6, /* hipDeviceAttribute_t as renumbered in ROCm 5 */
	ATTRIBUTE_CAPABILITY_MAJOR = 23,
	ATTRIBUTE_CAPABILITY_MINOR = 61,

	/* hipDeviceProp_t of the plain symbol, whose layout never changed (hipDeviceProp_tR0000) */
	PROPERTIES_SIZE = 792,
	PROPERTIES_TOTAL_MEMORY = 256,
	PROPERTIES_ARCH_NAME = 396,

	GENERIC_SINCE = 60300000 /* ROCm 6.3 is the first to read code object v6 */
};

static const struct {
	int number;
	const char *name;
} errors[] = {
        {0, "hipSuccess"},
        {1, "hipErrorInvalidValue"},
        {2, "hipErrorOutOfMemory"},
        {3, "hipErrorNotInitialized"},
        {4, "hipErrorDeinitialized"},
        {5, "hipErrorProfilerDisabled"},
        {6, "hipErrorProfilerNotInitialized"},
        {7, "hipErrorProfilerAlreadyStarted"},
        {8, "hipErrorProfilerAlreadyStopped"},
        {9, "hipErrorInvalidConfiguration"},
        {12, "hipErrorInvalidPitchValue"},
        {13, "hipErrorInvalidSymbol"},
        {17, "hipErrorInvalidDevicePointer"},
        {21, "hipErrorInvalidMemcpyDirection"},
        {35, "hipErrorInsufficientDriver"},
        {52, "hipErrorMissingConfiguration"},
        {53, "hipErrorPriorLaunchFailure"},
        {98, "hipErrorInvalidDeviceFunction"},
        {100, "hipErrorNoDevice"},
        {101, "hipErrorInvalidDevice"},
        {200, "hipErrorInvalidImage"},
        {201, "hipErrorInvalidContext"},
        {202, "hipErrorContextAlreadyCurrent"},
        {205, "hipErrorMapFailed"},
        {206, "hipErrorUnmapFailed"},
        {207, "hipErrorArrayIsMapped"},
        {208, "hipErrorAlreadyMapped"},
        {209, "hipErrorNoBinaryForGpu"},
        {210, "hipErrorAlreadyAcquired"},
        {211, "hipErrorNotMapped"},
        {212, "hipErrorNotMappedAsArray"},
        {213, "hipErrorNotMappedAsPointer"},
        {214, "hipErrorECCNotCorrectable"},
        {215, "hipErrorUnsupportedLimit"},
        {216, "hipErrorContextAlreadyInUse"},
        {217, "hipErrorPeerAccessUnsupported"},
        {218, "hipErrorInvalidKernelFile"},
        {219, "hipErrorInvalidGraphicsContext"},
        {300, "hipErrorInvalidSource"},
        {301, "hipErrorFileNotFound"},
        {302, "hipErrorSharedObjectSymbolNotFound"},
        {303, "hipErrorSharedObjectInitFailed"},
        {304, "hipErrorOperatingSystem"},
        {400, "hipErrorInvalidHandle"},
        {401, "hipErrorIllegalState"},
        {500, "hipErrorNotFound"},
        {600, "hipErrorNotReady"},
        {700, "hipErrorIllegalAddress"},
        {701, "hipErrorLaunchOutOfResources"},
        {702, "hipErrorLaunchTimeOut"},
        {704, "hipErrorPeerAccessAlreadyEnabled"},
        {705, "hipErrorPeerAccessNotEnabled"},
        {708, "hipErrorSetOnActiveProcess"},
        {709, "hipErrorContextIsDestroyed"},
        {710, "hipErrorAssert"},
        {712, "hipErrorHostMemoryAlreadyRegistered"},
        {713, "hipErrorHostMemoryNotRegistered"},
        {719, "hipErrorLaunchFailure"},
        {720, "hipErrorCooperativeLaunchTooLarge"},
        {801, "hipErrorNotSupported"},
        {900, "hipErrorStreamCaptureUnsupported"},
        {901, "hipErrorStreamCaptureInvalidated"},
        {902, "hipErrorStreamCaptureMerge"},
        {903, "hipErrorStreamCaptureUnmatched"},
        {904, "hipErrorStreamCaptureUnjoined"},
        {905, "hipErrorStreamCaptureIsolation"},
        {906, "hipErrorStreamCaptureImplicit"},
        {907, "hipErrorCapturedEvent"},
        {908, "hipErrorStreamCaptureWrongThread"},
        {910, "hipErrorGraphExecUpdateFailure"},
        {911, "hipErrorInvalidChannelDescriptor"},
        {912, "hipErrorInvalidTexture"},
        {999, "hipErrorUnknown"},
        {1052, "hipErrorRuntimeMemory"},
        {1053, "hipErrorRuntimeOther"},
};

/* LLVM, AMDGPUUsage.rst, "Generic processor code object versioning". */
static const struct {
	const char *generic;
	const char *covers;
} generics[] = {
        {"gfx9-generic", " gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c "},
        {"gfx9-4-generic", " gfx942 gfx950 "},
        {"gfx10-1-generic", " gfx1010 gfx1011 gfx1012 gfx1013 "},
        {"gfx10-3-generic", " gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036 "},
        {"gfx11-generic", " gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 "},
        {"gfx12-generic", " gfx1200 gfx1201 "},
};

/* arch may carry features: gfx942:sramecc+:xnack-. */
static bool image_fits(const char *image, const char *arch)
{
	size_t length = strcspn(arch, ":");
	char word[40];

	if (strlen(image) == length && strncmp(image, arch, length) == 0)
		return true;
	if (double_version() < GENERIC_SINCE)
		return false;
	(void)snprintf(word, sizeof word, " %.*s ", (int)length, arch);
	for (size_t i = 0; i < sizeof generics / sizeof generics[0]; i++) {
		if (strcmp(generics[i].generic, image) == 0)
			return strstr(generics[i].covers, word) != NULL;
	}
	return false;
}

/* hipModuleLoadData is told no size: it follows from the ELF header, the section headers being what comes last in a
 * linker's output. */
static int check_image(const void *image, const char *arch)
{
	Elf64_Ehdr header;
	uint64_t size;

	if (strncmp(image, ELFMAG, SELFMAG) != 0)
		return E_INVALID_IMAGE;
	memcpy(&header, image, sizeof header);
	size = header.e_shoff + (uint64_t)header.e_shnum * header.e_shentsize;
	for (unsigned i = 0; i < kernel_image_count; i++) {
		const struct kernel_image *known = &kernel_images[i];
		if (known->size == size && memcmp(known->bytes, image, size) == 0 &&
		    image_fits(known->architecture, arch))
			return 0;
	}
	for (unsigned i = 0; i < kernel_image_count; i++) {
		if (kernel_images[i].size == size && memcmp(kernel_images[i].bytes, image, size) == 0)
			return E_NO_BINARY_FOR_GPU;
	}
	return E_INVALID_IMAGE;
}

const struct double_backend double_backend = {
        .library = "hip",
        .arch_prefix = "gfx",
        .default_arch = "gfx942:sramecc+:xnack-",
        .default_version = 60342131,
        .busy_error = E_CONTEXT_ALREADY_IN_USE,
        .mask = mask_hip,
        .check_image = check_image,
};

EXPORT int hipInit(unsigned flags);
EXPORT int hipRuntimeGetVersion(int *version);
EXPORT const char *hipGetErrorName(int error);
EXPORT const char *hipGetErrorString(int error);
EXPORT int hipGetDeviceCount(int *count);
EXPORT int hipSetDevice(int device);
EXPORT int hipDeviceGetName(char *name, int size, int device);
EXPORT int hipDeviceGetAttribute(int *value, int attribute, int device);
EXPORT int hipDeviceTotalMem(size_t *bytes, int device);
EXPORT int hipDeviceGetUuid(void *uuid, int device);
EXPORT int hipGetDeviceProperties(void *properties, int device);
EXPORT int hipDeviceSynchronize(void);
EXPORT int hipMemGetInfo(size_t *available, size_t *total);
EXPORT int hipMalloc(void **address, size_t size);
EXPORT int hipFree(void *address);
EXPORT int hipMemcpyHtoD(void *to, void *from, size_t size);
EXPORT int hipMemcpyDtoH(void *to, void *from, size_t size);
EXPORT int hipModuleLoadData(void **module, const void *image);
EXPORT int hipModuleGetFunction(void **function, void *module, const char *name);
EXPORT int hipModuleUnload(void *module);
EXPORT int hipModuleLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                 unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments,
                                 void **extra);

/* hipInit ran and found nothing: hipGetDeviceCount then says so (100), where CUDA would say "not initialised". */
static bool found_none;

/* The context of the current device, made when it is first needed. */
static int need_device(void)
{
	if (!double_initialised())
		return E_NOT_INITIALIZED;
	return double_context_live(double_current()) ? 0 : double_context_retain(double_current());
}

/* double_begin for calls that act on the current device. */
static int begin_here(const char *call)
{
	int result = double_begin(call, double_current());

	if (result == DOUBLE_GO) {
		result = need_device();
		if (result == 0)
			result = DOUBLE_GO;
	}
	return result;
}

int hipInit(unsigned flags)
{
	int result = double_begin(__func__, DOUBLE_NO_DEVICE);

	if (result == DOUBLE_GO) {
		result = flags ? E_INVALID_VALUE : double_init();
		found_none = result == E_NO_DEVICE;
		if (result == 0)
			double_set_current(0);
	}
	return double_end(__func__, DOUBLE_NO_DEVICE, result);
}

int hipRuntimeGetVersion(int *version)
{
	int result = double_begin(__func__, DOUBLE_NO_DEVICE);

	if (result == DOUBLE_GO) {
		result = version ? 0 : E_INVALID_VALUE;
		if (version)
			*version = double_version();
	}
	return double_end(__func__, DOUBLE_NO_DEVICE, result);
}

static const char *error_name(int error)
{
	for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
		if (errors[i].number == error)
			return errors[i].name;
	}
	return "hipErrorUnknown";
}

const char *hipGetErrorName(int error)
{
	(void)double_begin(__func__, DOUBLE_NO_DEVICE);
	(void)double_end(__func__, DOUBLE_NO_DEVICE, 0);
	return error_name(error);
}

/* The real one has sentences; nothing of them may reach a report, so that the name will do. */
const char *hipGetErrorString(int error)
{
	(void)double_begin(__func__, DOUBLE_NO_DEVICE);
	(void)double_end(__func__, DOUBLE_NO_DEVICE, 0);
	return error_name(error);
}

int hipGetDeviceCount(int *count)
{
	int result = double_begin(__func__, DOUBLE_NO_DEVICE);

	if (result == DOUBLE_GO && found_none && count) {
		*count = 0;
		result = E_NO_DEVICE;
	} else if (result == DOUBLE_GO) {
		result = double_count(count);
	}
	return double_end(__func__, DOUBLE_NO_DEVICE, result);
}

int hipSetDevice(int device)
{
	int result = double_begin(__func__, device);

	if (result == DOUBLE_GO) {
		result = double_check_device(device);
		if (result == 0) {
			double_set_current(device);
			result = need_device();
		}
	}
	return double_end(__func__, device, result);
}

int hipDeviceGetName(char *name, int size, int device)
{
	int result = double_begin(__func__, device);

	if (result == DOUBLE_GO)
		result = double_name(device, name, size);
	return double_end(__func__, device, result);
}

/* gfx90a is 9.0: the last two hexadecimal digits are minor and stepping, what is before them major. */
static void capability(const char *arch, int *major, int *minor)
{
	size_t digits = strcspn(arch + strlen("gfx"), ":");
	char number[8] = "";

	memcpy(number, arch + strlen("gfx"), digits < sizeof number ? digits : sizeof number - 1);
	*major = *minor = 0;
	if (digits < 3 || digits >= sizeof number)
		return;
	*minor = number[digits - 2] - '0';
	number[digits - 2] = '\0';
	*major = (int)strtol(number, NULL, 10);
}

static int tell_attribute(int *value, int attribute, int device)
{
	int error = double_check_device(device), major, minor;

	if (error)
		return error;
	if (!value)
		return E_INVALID_VALUE;
	capability(double_arch(device), &major, &minor);
	switch (attribute) {
	case ATTRIBUTE_COMPUTE_MODE:
		*value = 0;
		return 0;
	case ATTRIBUTE_CAPABILITY_MAJOR:
		*value = major;
		return 0;
	case ATTRIBUTE_CAPABILITY_MINOR:
		*value = minor;
		return 0;
	default:
		return E_INVALID_VALUE;
	}
}

int hipDeviceGetAttribute(int *value, int attribute, int device)
{
	int result = double_begin(__func__, device);

	if (result == DOUBLE_GO)
		result = tell_attribute(value, attribute, device);
	return double_end(__func__, device, result);
}

int hipDeviceTotalMem(size_t *bytes, int device)
{
	int result = double_begin(__func__, device);

	if (result == DOUBLE_GO)
		result = double_memory_total(device, bytes);
	return double_end(__func__, device, result);
}

/* As the real one: not bytes, but the 16 hex digits of "GPU-..." as text, unterminated. */
static int tell_uuid(void *uuid, int device)
{
	int error = double_check_device(device);
	char text[48];

	if (error)
		return error;
	if (!uuid)
		return E_INVALID_VALUE;
	mask_uuid_hip(double_physical(device), text);
	memcpy(uuid, text + strlen("GPU-"), 16);
	return 0;
}

int hipDeviceGetUuid(void *uuid, int device)
{
	int result = double_begin(__func__, device);

	if (result == DOUBLE_GO)
		result = tell_uuid(uuid, device);
	return double_end(__func__, device, result);
}

static int tell_properties(char *properties, int device)
{
	size_t total;
	int error = double_memory_total(device, &total);

	if (error)
		return error;
	if (!properties)
		return E_INVALID_VALUE;
	memset(properties, 0, PROPERTIES_SIZE);
	(void)double_name(device, properties, PROPERTIES_TOTAL_MEMORY);
	memcpy(properties + PROPERTIES_TOTAL_MEMORY, &total, sizeof total);
	(void)snprintf(properties + PROPERTIES_ARCH_NAME, 256, "%s", double_arch(device));
	return 0;
}

int hipGetDeviceProperties(void *properties, int device)
{
	int result = double_begin(__func__, device);

	if (result == DOUBLE_GO)
		result = tell_properties(properties, device);
	return double_end(__func__, device, result);
}

int hipDeviceSynchronize(void)
{
	int result = begin_here(__func__);

	if (result == DOUBLE_GO)
		result = double_synchronise();
	return double_end(__func__, double_current(), result);
}

int hipMemGetInfo(size_t *available, size_t *total)
{
	int result = begin_here(__func__);

	if (result == DOUBLE_GO)
		result = double_memory_info(available, total);
	return double_end(__func__, double_current(), result);
}

int hipMalloc(void **address, size_t size)
{
	uint64_t allocated = 0;
	int result = begin_here(__func__);

	if (result == DOUBLE_GO) {
		result = address ? double_alloc(&allocated, size) : E_INVALID_VALUE;
		if (result == 0)
			*address = (void *)(uintptr_t)allocated;
	}
	return double_end(__func__, double_current(), result);
}

int hipFree(void *address)
{
	int result = begin_here(__func__);

	if (result == DOUBLE_GO)
		result = double_free((uintptr_t)address);
	return double_end(__func__, double_current(), result);
}

int hipMemcpyHtoD(void *to, void *from, size_t size)
{
	int result = begin_here(__func__);

	if (result == DOUBLE_GO)
		result = double_upload((uintptr_t)to, from, size);
	return double_end(__func__, double_current(), result);
}

int hipMemcpyDtoH(void *to, void *from, size_t size)
{
	int result = begin_here(__func__);

	if (result == DOUBLE_GO)
		result = double_download(to, (uintptr_t)from, size);
	return double_end(__func__, double_current(), result);
}

int hipModuleLoadData(void **module, const void *image)
{
	int result = begin_here(__func__);

	if (result == DOUBLE_GO)
		result = double_module_load(module, image);
	return double_end(__func__, double_current(), result);
}

int hipModuleGetFunction(void **function, void *module, const char *name)
{
	int result = begin_here(__func__);

	if (result == DOUBLE_GO)
		result = double_module_function(function, module, name);
	return double_end(__func__, double_current(), result);
}

int hipModuleUnload(void *module)
{
	int result = begin_here(__func__);

	if (result == DOUBLE_GO)
		result = double_module_unload(module);
	return double_end(__func__, double_current(), result);
}

int hipModuleLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments,
                          void **extra)
{
	const unsigned grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
	int result = begin_here(__func__);

	if (result == DOUBLE_GO)
		result = double_launch(function, grid, block, shared, stream, arguments, extra);
	return double_end(__func__, double_current(), result);
}
