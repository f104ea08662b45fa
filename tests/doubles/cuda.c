/* libcuda.so.1: the driver API calls that kd-preflight makes, with the signatures of NVIDIA's cuda.h 13.0 (64-bit; the
 * _v2 names are what that header's macros stand for, and have been exported since CUDA 3.2, 7.0 and 11.4). */
#include "double.h"

#include "../../build/kernels/images.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ATTRIBUTE_COMPUTE_MODE = 20,
	ATTRIBUTE_CAPABILITY_MAJOR = 75,
	ATTRIBUTE_CAPABILITY_MINOR = 76,
	COMPUTE_MODE_DEFAULT = 0,
	COMPUTE_MODE_EXCLUSIVE_PROCESS = 3
};

struct cuda_context {
	int device;
};

static struct cuda_context contexts[DOUBLE_DEVICES_MAX];

static const struct {
	int number;
	const char *name;
} errors[] = {
        {0, "CUDA_SUCCESS"},
        {1, "CUDA_ERROR_INVALID_VALUE"},
        {2, "CUDA_ERROR_OUT_OF_MEMORY"},
        {3, "CUDA_ERROR_NOT_INITIALIZED"},
        {4, "CUDA_ERROR_DEINITIALIZED"},
        {5, "CUDA_ERROR_PROFILER_DISABLED"},
        {6, "CUDA_ERROR_PROFILER_NOT_INITIALIZED"},
        {7, "CUDA_ERROR_PROFILER_ALREADY_STARTED"},
        {8, "CUDA_ERROR_PROFILER_ALREADY_STOPPED"},
        {34, "CUDA_ERROR_STUB_LIBRARY"},
        {36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER"},
        {46, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
        {100, "CUDA_ERROR_NO_DEVICE"},
        {101, "CUDA_ERROR_INVALID_DEVICE"},
        {102, "CUDA_ERROR_DEVICE_NOT_LICENSED"},
        {200, "CUDA_ERROR_INVALID_IMAGE"},
        {201, "CUDA_ERROR_INVALID_CONTEXT"},
        {202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT"},
        {205, "CUDA_ERROR_MAP_FAILED"},
        {206, "CUDA_ERROR_UNMAP_FAILED"},
        {207, "CUDA_ERROR_ARRAY_IS_MAPPED"},
        {208, "CUDA_ERROR_ALREADY_MAPPED"},
        {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
        {210, "CUDA_ERROR_ALREADY_ACQUIRED"},
        {211, "CUDA_ERROR_NOT_MAPPED"},
        {212, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY"},
        {213, "CUDA_ERROR_NOT_MAPPED_AS_POINTER"},
        {214, "CUDA_ERROR_ECC_UNCORRECTABLE"},
        {215, "CUDA_ERROR_UNSUPPORTED_LIMIT"},
        {216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE"},
        {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"},
        {218, "CUDA_ERROR_INVALID_PTX"},
        {219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT"},
        {220, "CUDA_ERROR_NVLINK_UNCORRECTABLE"},
        {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"},
        {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
        {223, "CUDA_ERROR_JIT_COMPILATION_DISABLED"},
        {224, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY"},
        {225, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC"},
        {226, "CUDA_ERROR_CONTAINED"},
        {300, "CUDA_ERROR_INVALID_SOURCE"},
        {301, "CUDA_ERROR_FILE_NOT_FOUND"},
        {302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND"},
        {303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"},
        {304, "CUDA_ERROR_OPERATING_SYSTEM"},
        {400, "CUDA_ERROR_INVALID_HANDLE"},
        {401, "CUDA_ERROR_ILLEGAL_STATE"},
        {402, "CUDA_ERROR_LOSSY_QUERY"},
        {500, "CUDA_ERROR_NOT_FOUND"},
        {600, "CUDA_ERROR_NOT_READY"},
        {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
        {702, "CUDA_ERROR_LAUNCH_TIMEOUT"},
        {703, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING"},
        {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"},
        {705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"},
        {708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE"},
        {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
        {710, "CUDA_ERROR_ASSERT"},
        {711, "CUDA_ERROR_TOO_MANY_PEERS"},
        {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
        {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"},
        {714, "CUDA_ERROR_HARDWARE_STACK_ERROR"},
        {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION"},
        {716, "CUDA_ERROR_MISALIGNED_ADDRESS"},
        {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE"},
        {718, "CUDA_ERROR_INVALID_PC"},
        {719, "CUDA_ERROR_LAUNCH_FAILED"},
        {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"},
        {721, "CUDA_ERROR_TENSOR_MEMORY_LEAK"},
        {800, "CUDA_ERROR_NOT_PERMITTED"},
        {801, "CUDA_ERROR_NOT_SUPPORTED"},
        {802, "CUDA_ERROR_SYSTEM_NOT_READY"},
        {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
        {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"},
        {805, "CUDA_ERROR_MPS_CONNECTION_FAILED"},
        {806, "CUDA_ERROR_MPS_RPC_FAILURE"},
        {807, "CUDA_ERROR_MPS_SERVER_NOT_READY"},
        {808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED"},
        {809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED"},
        {810, "CUDA_ERROR_MPS_CLIENT_TERMINATED"},
        {811, "CUDA_ERROR_CDP_NOT_SUPPORTED"},
        {812, "CUDA_ERROR_CDP_VERSION_MISMATCH"},
        {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
        {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
        {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE"},
        {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"},
        {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
        {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
        {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"},
        {907, "CUDA_ERROR_CAPTURED_EVENT"},
        {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"},
        {909, "CUDA_ERROR_TIMEOUT"},
        {910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"},
        {911, "CUDA_ERROR_EXTERNAL_DEVICE"},
        {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE"},
        {913, "CUDA_ERROR_FUNCTION_NOT_LOADED"},
        {914, "CUDA_ERROR_INVALID_RESOURCE_TYPE"},
        {915, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"},
        {916, "CUDA_ERROR_KEY_ROTATION"},
        {999, "CUDA_ERROR_UNKNOWN"},
};

/* The text that we ship, byte for byte. Reads no further than the terminator of either. */
static int check_image(const void *image, const char *arch)
{
	(void)arch;
	return strcmp(image, kernel_ptx) == 0 ? 0 : E_INVALID_IMAGE;
}

const struct double_backend double_backend = {
        .library = "cuda",
        .arch_prefix = "sm_",
        .default_arch = "sm_90",
        .default_version = 12040,
        .busy_error = E_DEVICE_UNAVAILABLE,
        .mask = mask_cuda,
        .check_image = check_image,
};

EXPORT int cuInit(unsigned flags);
EXPORT int cuDriverGetVersion(int *version);
EXPORT int cuGetErrorName(int error, const char **name);
EXPORT int cuGetErrorString(int error, const char **text);
EXPORT int cuDeviceGetCount(int *count);
EXPORT int cuDeviceGet(int *device, int ordinal);
EXPORT int cuDeviceGetName(char *name, int size, int device);
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device);
EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device);
EXPORT int cuDeviceGetUuid(void *uuid, int device);
EXPORT int cuDeviceGetUuid_v2(void *uuid, int device);
EXPORT int cuDevicePrimaryCtxRetain(struct cuda_context **context, int device);
EXPORT int cuDevicePrimaryCtxRelease_v2(int device);
EXPORT int cuCtxSetCurrent(struct cuda_context *context);
EXPORT int cuCtxSynchronize(void);
EXPORT int cuMemGetInfo_v2(size_t *available, size_t *total);
EXPORT int cuMemAlloc_v2(unsigned long long *address, size_t size);
EXPORT int cuMemFree_v2(unsigned long long address);
EXPORT int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t size);
EXPORT int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t size);
EXPORT int cuModuleLoadData(void **module, const void *image);
EXPORT int cuModuleGetFunction(void **function, void *module, const char *name);
EXPORT int cuModuleUnload(void *module);
EXPORT int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments,
                          void **extra);

int cuInit(unsigned flags)
{
	int result = double_begin(__func__, DOUBLE_NO_DEVICE);

	if (result == DOUBLE_GO)
		result = flags ? E_INVALID_VALUE : double_init();
	return double_end(__func__, DOUBLE_NO_DEVICE, result);
}

int cuDriverGetVersion(int *version)
{
	int result = double_begin(__func__, DOUBLE_NO_DEVICE);

	if (result == DOUBLE_GO) {
		result = version ? 0 : E_INVALID_VALUE;
		if (version)
			*version = double_version();
	}
	return double_end(__func__, DOUBLE_NO_DEVICE, result);
}

static int tell_error(int error, const char **text)
{
	if (!text)
		return E_INVALID_VALUE;
	*text = NULL;
	for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
		if (errors[i].number == error)
			*text = errors[i].name;
	}
	return *text ? 0 : E_INVALID_VALUE;
}

int cuGetErrorName(int error, const char **name)
{
	int result = double_begin(__func__, DOUBLE_NO_DEVICE);

	if (result == DOUBLE_GO)
		result = tell_error(error, name);
	return double_end(__func__, DOUBLE_NO_DEVICE, result);
}

/* The real one has sentences; nothing of them may reach a report, so that the name will do. */
int cuGetErrorString(int error, const char **text)
{
	int result = double_begin(__func__, DOUBLE_NO_DEVICE);

	if (result == DOUBLE_GO)
		result = tell_error(error, text);
	return double_end(__func__, DOUBLE_NO_DEVICE, result);
}

int cuDeviceGetCount(int *count)
{
	int result = double_begin(__func__, DOUBLE_NO_DEVICE);

	if (result == DOUBLE_GO)
		result = double_count(count);
	return double_end(__func__, DOUBLE_NO_DEVICE, result);
}

static int get_device(int *device, int ordinal)
{
	int error = double_check_device(ordinal);

	if (error)
		return error;
	if (!device)
		return E_INVALID_VALUE;
	*device = ordinal;
	return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
	int result = double_begin(__func__, ordinal);

	if (result == DOUBLE_GO)
		result = get_device(device, ordinal);
	return double_end(__func__, ordinal, result);
}

int cuDeviceGetName(char *name, int size, int device)
{
	int result = double_begin(__func__, device);

	if (result == DOUBLE_GO)
		result = double_name(device, name, size);
	return double_end(__func__, device, result);
}

static int tell_attribute(int *value, int attribute, int device)
{
	int error = double_check_device(device), capability;

	if (error)
		return error;
	if (!value)
		return E_INVALID_VALUE;
	capability = (int)strtol(double_arch(device) + strlen("sm_"), NULL, 10);
	switch (attribute) {
	case ATTRIBUTE_COMPUTE_MODE:
		*value = getenv("KD_DOUBLE_EXCLUSIVE") ? COMPUTE_MODE_EXCLUSIVE_PROCESS : COMPUTE_MODE_DEFAULT;
		return 0;
	case ATTRIBUTE_CAPABILITY_MAJOR:
		*value = capability / 10;
		return 0;
	case ATTRIBUTE_CAPABILITY_MINOR:
		*value = capability % 10;
		return 0;
	default:
		return E_INVALID_VALUE;
	}
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	int result = double_begin(__func__, device);

	if (result == DOUBLE_GO)
		result = tell_attribute(value, attribute, device);
	return double_end(__func__, device, result);
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	int result = double_begin(__func__, device);

	if (result == DOUBLE_GO)
		result = double_memory_total(device, bytes);
	return double_end(__func__, device, result);
}

int cuDeviceGetUuid(void *uuid, int device)
{
	int result = double_begin(__func__, device);

	if (result == DOUBLE_GO)
		result = double_uuid(device, uuid);
	return double_end(__func__, device, result);
}

int cuDeviceGetUuid_v2(void *uuid, int device)
{
	int result = double_begin(__func__, device);

	if (result == DOUBLE_GO)
		result = double_uuid(device, uuid);
	return double_end(__func__, device, result);
}

static int retain(struct cuda_context **context, int device)
{
	int error = context ? double_context_retain(device) : E_INVALID_VALUE;

	if (error)
		return error;
	contexts[device].device = device;
	*context = &contexts[device];
	return 0;
}

int cuDevicePrimaryCtxRetain(struct cuda_context **context, int device)
{
	int result = double_begin(__func__, device);

	if (result == DOUBLE_GO)
		result = retain(context, device);
	return double_end(__func__, device, result);
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	int result = double_begin(__func__, device);

	if (result == DOUBLE_GO)
		result = double_context_release(device);
	return double_end(__func__, device, result);
}

/* NULL makes no context current. */
static int set_current(const struct cuda_context *context)
{
	if (!double_initialised())
		return E_NOT_INITIALIZED;
	if (!context) {
		double_set_current(DOUBLE_NO_DEVICE);
		return 0;
	}
	for (int i = 0; i < DOUBLE_DEVICES_MAX; i++) {
		if (context == &contexts[i] && double_context_live(i)) {
			double_set_current(i);
			return 0;
		}
	}
	return E_INVALID_CONTEXT;
}

int cuCtxSetCurrent(struct cuda_context *context)
{
	int device =
	        context >= contexts && context < contexts + DOUBLE_DEVICES_MAX ? context->device : DOUBLE_NO_DEVICE;
	int result = double_begin(__func__, device);

	if (result == DOUBLE_GO)
		result = set_current(context);
	return double_end(__func__, device, result);
}

int cuCtxSynchronize(void)
{
	int result = double_begin(__func__, double_current());

	if (result == DOUBLE_GO)
		result = double_synchronise();
	return double_end(__func__, double_current(), result);
}

int cuMemGetInfo_v2(size_t *available, size_t *total)
{
	int result = double_begin(__func__, double_current());

	if (result == DOUBLE_GO)
		result = double_memory_info(available, total);
	return double_end(__func__, double_current(), result);
}

int cuMemAlloc_v2(unsigned long long *address, size_t size)
{
	uint64_t allocated = 0;
	int result = double_begin(__func__, double_current());

	if (result == DOUBLE_GO) {
		result = address ? double_alloc(&allocated, size) : E_INVALID_VALUE;
		if (result == 0)
			*address = allocated;
	}
	return double_end(__func__, double_current(), result);
}

int cuMemFree_v2(unsigned long long address)
{
	int result = double_begin(__func__, double_current());

	if (result == DOUBLE_GO)
		result = double_free(address);
	return double_end(__func__, double_current(), result);
}

int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t size)
{
	int result = double_begin(__func__, double_current());

	if (result == DOUBLE_GO)
		result = double_upload(to, from, size);
	return double_end(__func__, double_current(), result);
}

int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t size)
{
	int result = double_begin(__func__, double_current());

	if (result == DOUBLE_GO)
		result = double_download(to, from, size);
	return double_end(__func__, double_current(), result);
}

int cuModuleLoadData(void **module, const void *image)
{
	int result = double_begin(__func__, double_current());

	if (result == DOUBLE_GO)
		result = double_module_load(module, image);
	return double_end(__func__, double_current(), result);
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
	int result = double_begin(__func__, double_current());

	if (result == DOUBLE_GO)
		result = double_module_function(function, module, name);
	return double_end(__func__, double_current(), result);
}

int cuModuleUnload(void *module)
{
	int result = double_begin(__func__, double_current());

	if (result == DOUBLE_GO)
		result = double_module_unload(module);
	return double_end(__func__, double_current(), result);
}

int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments, void **extra)
{
	const unsigned grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
	int result = double_begin(__func__, double_current());

	if (result == DOUBLE_GO)
		result = double_launch(function, grid, block, shared, stream, arguments, extra);
	return double_end(__func__, double_current(), result);
}
