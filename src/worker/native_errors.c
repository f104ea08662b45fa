#include "native_errors.h"

#include "native_text.h"

/* Arrays instead of pointers: 36 bytes a row and no relocation. */
struct error_row {
	uint16_t number;
	uint8_t kind, hint;
	char name[32]; /* without the prefix */
};

/* CUresult of cuda.h, CUDA 12.8: all of it. */
static const struct error_row CUDA_ERRORS[] = {
        {1, ERROR_RUNTIME, HINT_NONE, "INVALID_VALUE"},
        {2, ERROR_MEMORY, HINT_NONE, "OUT_OF_MEMORY"},
        {3, ERROR_RUNTIME, HINT_NONE, "NOT_INITIALIZED"},
        {4, ERROR_RUNTIME, HINT_NONE, "DEINITIALIZED"},
        {5, ERROR_RUNTIME, HINT_NONE, "PROFILER_DISABLED"},
        {6, ERROR_RUNTIME, HINT_NONE, "PROFILER_NOT_INITIALIZED"},
        {7, ERROR_RUNTIME, HINT_NONE, "PROFILER_ALREADY_STARTED"},
        {8, ERROR_RUNTIME, HINT_NONE, "PROFILER_ALREADY_STOPPED"},
        {34, ERROR_STUB, HINT_LIBRARY_STUB, "STUB_LIBRARY"},
        {46, ERROR_UNAVAILABLE, HINT_EXCLUSIVE_MODE, "DEVICE_UNAVAILABLE"},
        {100, ERROR_UNAVAILABLE, HINT_NONE, "NO_DEVICE"},
        {101, ERROR_INDEX, HINT_NONE, "INVALID_DEVICE"},
        {102, ERROR_UNAVAILABLE, HINT_VGPU_LICENSE, "DEVICE_NOT_LICENSED"},
        {200, ERROR_RUNTIME, HINT_NO_KERNEL_IMAGE, "INVALID_IMAGE"},
        {201, ERROR_RUNTIME, HINT_NONE, "INVALID_CONTEXT"},
        {202, ERROR_RUNTIME, HINT_NONE, "CONTEXT_ALREADY_CURRENT"},
        {205, ERROR_RUNTIME, HINT_NONE, "MAP_FAILED"},
        {206, ERROR_RUNTIME, HINT_NONE, "UNMAP_FAILED"},
        {207, ERROR_RUNTIME, HINT_NONE, "ARRAY_IS_MAPPED"},
        {208, ERROR_RUNTIME, HINT_NONE, "ALREADY_MAPPED"},
        {209, ERROR_RUNTIME, HINT_NO_KERNEL_IMAGE, "NO_BINARY_FOR_GPU"},
        {210, ERROR_RUNTIME, HINT_NONE, "ALREADY_ACQUIRED"},
        {211, ERROR_RUNTIME, HINT_NONE, "NOT_MAPPED"},
        {212, ERROR_RUNTIME, HINT_NONE, "NOT_MAPPED_AS_ARRAY"},
        {213, ERROR_RUNTIME, HINT_NONE, "NOT_MAPPED_AS_POINTER"},
        {214, ERROR_RUNTIME, HINT_ECC_ERROR, "ECC_UNCORRECTABLE"},
        {215, ERROR_RUNTIME, HINT_NONE, "UNSUPPORTED_LIMIT"},
        {216, ERROR_UNAVAILABLE, HINT_EXCLUSIVE_MODE, "CONTEXT_ALREADY_IN_USE"},
        {217, ERROR_RUNTIME, HINT_NONE, "PEER_ACCESS_UNSUPPORTED"},
        {218, ERROR_RUNTIME, HINT_NONE, "INVALID_PTX"},
        {219, ERROR_RUNTIME, HINT_NONE, "INVALID_GRAPHICS_CONTEXT"},
        {220, ERROR_RUNTIME, HINT_NONE, "NVLINK_UNCORRECTABLE"},
        {221, ERROR_RUNTIME, HINT_JIT_LIBRARY_MISSING, "JIT_COMPILER_NOT_FOUND"},
        {222, ERROR_RUNTIME, HINT_PTX_NEWER_THAN_DRIVER, "UNSUPPORTED_PTX_VERSION"},
        {223, ERROR_RUNTIME, HINT_NONE, "JIT_COMPILATION_DISABLED"},
        {224, ERROR_RUNTIME, HINT_NONE, "UNSUPPORTED_EXEC_AFFINITY"},
        {225, ERROR_RUNTIME, HINT_NONE, "UNSUPPORTED_DEVSIDE_SYNC"},
        {226, ERROR_RUNTIME, HINT_NONE, "CONTAINED"},
        {300, ERROR_RUNTIME, HINT_NONE, "INVALID_SOURCE"},
        {301, ERROR_RUNTIME, HINT_NONE, "FILE_NOT_FOUND"},
        {302, ERROR_RUNTIME, HINT_NONE, "SHARED_OBJECT_SYMBOL_NOT_FOUND"},
        {303, ERROR_RUNTIME, HINT_NONE, "SHARED_OBJECT_INIT_FAILED"},
        {304, ERROR_RUNTIME, HINT_DRIVER_CALL_REFUSED, "OPERATING_SYSTEM"},
        {400, ERROR_RUNTIME, HINT_NONE, "INVALID_HANDLE"},
        {401, ERROR_RUNTIME, HINT_NONE, "ILLEGAL_STATE"},
        {402, ERROR_RUNTIME, HINT_NONE, "LOSSY_QUERY"},
        {500, ERROR_RUNTIME, HINT_NONE, "NOT_FOUND"},
        {600, ERROR_RUNTIME, HINT_NONE, "NOT_READY"},
        {700, ERROR_RUNTIME, HINT_NONE, "ILLEGAL_ADDRESS"},
        {701, ERROR_RUNTIME, HINT_NONE, "LAUNCH_OUT_OF_RESOURCES"},
        {702, ERROR_RUNTIME, HINT_NONE, "LAUNCH_TIMEOUT"},
        {703, ERROR_RUNTIME, HINT_NONE, "LAUNCH_INCOMPATIBLE_TEXTURING"},
        {704, ERROR_RUNTIME, HINT_NONE, "PEER_ACCESS_ALREADY_ENABLED"},
        {705, ERROR_RUNTIME, HINT_NONE, "PEER_ACCESS_NOT_ENABLED"},
        {708, ERROR_RUNTIME, HINT_NONE, "PRIMARY_CONTEXT_ACTIVE"},
        {709, ERROR_RUNTIME, HINT_NONE, "CONTEXT_IS_DESTROYED"},
        {710, ERROR_RUNTIME, HINT_NONE, "ASSERT"},
        {711, ERROR_RUNTIME, HINT_NONE, "TOO_MANY_PEERS"},
        {712, ERROR_RUNTIME, HINT_NONE, "HOST_MEMORY_ALREADY_REGISTERED"},
        {713, ERROR_RUNTIME, HINT_NONE, "HOST_MEMORY_NOT_REGISTERED"},
        {714, ERROR_RUNTIME, HINT_NONE, "HARDWARE_STACK_ERROR"},
        {715, ERROR_RUNTIME, HINT_NONE, "ILLEGAL_INSTRUCTION"},
        {716, ERROR_RUNTIME, HINT_NONE, "MISALIGNED_ADDRESS"},
        {717, ERROR_RUNTIME, HINT_NONE, "INVALID_ADDRESS_SPACE"},
        {718, ERROR_RUNTIME, HINT_NONE, "INVALID_PC"},
        {719, ERROR_RUNTIME, HINT_NONE, "LAUNCH_FAILED"},
        {720, ERROR_RUNTIME, HINT_NONE, "COOPERATIVE_LAUNCH_TOO_LARGE"},
        {721, ERROR_RUNTIME, HINT_NONE, "TENSOR_MEMORY_LEAK"},
        {800, ERROR_RUNTIME, HINT_NONE, "NOT_PERMITTED"},
        {801, ERROR_RUNTIME, HINT_NONE, "NOT_SUPPORTED"},
        {802, ERROR_UNAVAILABLE, HINT_FABRIC_MANAGER, "SYSTEM_NOT_READY"},
        {803, ERROR_UNAVAILABLE, HINT_DRIVER_LIBRARY_MISMATCH, "SYSTEM_DRIVER_MISMATCH"},
        {804, ERROR_UNAVAILABLE, HINT_COMPAT_NEEDS_DATACENTER, "COMPAT_NOT_SUPPORTED_ON_DEVICE"},
        {805, ERROR_UNAVAILABLE, HINT_MPS, "MPS_CONNECTION_FAILED"},
        {806, ERROR_UNAVAILABLE, HINT_MPS, "MPS_RPC_FAILURE"},
        {807, ERROR_UNAVAILABLE, HINT_MPS, "MPS_SERVER_NOT_READY"},
        {808, ERROR_UNAVAILABLE, HINT_MPS, "MPS_MAX_CLIENTS_REACHED"},
        {809, ERROR_UNAVAILABLE, HINT_MPS, "MPS_MAX_CONNECTIONS_REACHED"},
        {810, ERROR_UNAVAILABLE, HINT_MPS, "MPS_CLIENT_TERMINATED"},
        {811, ERROR_RUNTIME, HINT_NONE, "CDP_NOT_SUPPORTED"},
        {812, ERROR_RUNTIME, HINT_NONE, "CDP_VERSION_MISMATCH"},
        {900, ERROR_RUNTIME, HINT_NONE, "STREAM_CAPTURE_UNSUPPORTED"},
        {901, ERROR_RUNTIME, HINT_NONE, "STREAM_CAPTURE_INVALIDATED"},
        {902, ERROR_RUNTIME, HINT_NONE, "STREAM_CAPTURE_MERGE"},
        {903, ERROR_RUNTIME, HINT_NONE, "STREAM_CAPTURE_UNMATCHED"},
        {904, ERROR_RUNTIME, HINT_NONE, "STREAM_CAPTURE_UNJOINED"},
        {905, ERROR_RUNTIME, HINT_NONE, "STREAM_CAPTURE_ISOLATION"},
        {906, ERROR_RUNTIME, HINT_NONE, "STREAM_CAPTURE_IMPLICIT"},
        {907, ERROR_RUNTIME, HINT_NONE, "CAPTURED_EVENT"},
        {908, ERROR_RUNTIME, HINT_NONE, "STREAM_CAPTURE_WRONG_THREAD"},
        {909, ERROR_RUNTIME, HINT_NONE, "TIMEOUT"},
        {910, ERROR_RUNTIME, HINT_NONE, "GRAPH_EXEC_UPDATE_FAILURE"},
        {911, ERROR_RUNTIME, HINT_NONE, "EXTERNAL_DEVICE"},
        {912, ERROR_RUNTIME, HINT_NONE, "INVALID_CLUSTER_SIZE"},
        {913, ERROR_RUNTIME, HINT_NONE, "FUNCTION_NOT_LOADED"},
        {914, ERROR_RUNTIME, HINT_NONE, "INVALID_RESOURCE_TYPE"},
        {915, ERROR_RUNTIME, HINT_NONE, "INVALID_RESOURCE_CONFIGURATION"},
        {916, ERROR_RUNTIME, HINT_NONE, "KEY_ROTATION"},
        {999, ERROR_RUNTIME, HINT_NONE, "UNKNOWN"},
};

/* hipError_t of hip_runtime_api.h, HIP 5.2. */
static const struct error_row HIP_ERRORS[] = {
        {1, ERROR_RUNTIME, HINT_NONE, "InvalidValue"},
        {2, ERROR_MEMORY, HINT_NONE, "OutOfMemory"},
        {3, ERROR_RUNTIME, HINT_NONE, "NotInitialized"},
        {4, ERROR_RUNTIME, HINT_NONE, "Deinitialized"},
        {5, ERROR_RUNTIME, HINT_NONE, "ProfilerDisabled"},
        {6, ERROR_RUNTIME, HINT_NONE, "ProfilerNotInitialized"},
        {7, ERROR_RUNTIME, HINT_NONE, "ProfilerAlreadyStarted"},
        {8, ERROR_RUNTIME, HINT_NONE, "ProfilerAlreadyStopped"},
        {9, ERROR_RUNTIME, HINT_NONE, "InvalidConfiguration"},
        {12, ERROR_RUNTIME, HINT_NONE, "InvalidPitchValue"},
        {13, ERROR_RUNTIME, HINT_NONE, "InvalidSymbol"},
        {17, ERROR_RUNTIME, HINT_NONE, "InvalidDevicePointer"},
        {21, ERROR_RUNTIME, HINT_NONE, "InvalidMemcpyDirection"},
        {35, ERROR_UNAVAILABLE, HINT_DRIVER_TOO_OLD, "InsufficientDriver"},
        {52, ERROR_RUNTIME, HINT_NONE, "MissingConfiguration"},
        {53, ERROR_RUNTIME, HINT_NONE, "PriorLaunchFailure"},
        {98, ERROR_RUNTIME, HINT_NO_KERNEL_IMAGE, "InvalidDeviceFunction"},
        {100, ERROR_UNAVAILABLE, HINT_NONE, "NoDevice"},
        {101, ERROR_INDEX, HINT_NONE, "InvalidDevice"},
        {200, ERROR_RUNTIME, HINT_NO_KERNEL_IMAGE, "InvalidImage"},
        {201, ERROR_RUNTIME, HINT_NONE, "InvalidContext"},
        {202, ERROR_RUNTIME, HINT_NONE, "ContextAlreadyCurrent"},
        {205, ERROR_RUNTIME, HINT_NONE, "MapFailed"},
        {206, ERROR_RUNTIME, HINT_NONE, "UnmapFailed"},
        {207, ERROR_RUNTIME, HINT_NONE, "ArrayIsMapped"},
        {208, ERROR_RUNTIME, HINT_NONE, "AlreadyMapped"},
        {209, ERROR_RUNTIME, HINT_NO_KERNEL_IMAGE, "NoBinaryForGpu"},
        {210, ERROR_RUNTIME, HINT_NONE, "AlreadyAcquired"},
        {211, ERROR_RUNTIME, HINT_NONE, "NotMapped"},
        {212, ERROR_RUNTIME, HINT_NONE, "NotMappedAsArray"},
        {213, ERROR_RUNTIME, HINT_NONE, "NotMappedAsPointer"},
        {214, ERROR_RUNTIME, HINT_ECC_ERROR, "ECCNotCorrectable"},
        {215, ERROR_RUNTIME, HINT_NONE, "UnsupportedLimit"},
        {216, ERROR_UNAVAILABLE, HINT_EXCLUSIVE_MODE, "ContextAlreadyInUse"},
        {217, ERROR_RUNTIME, HINT_NONE, "PeerAccessUnsupported"},
        {218, ERROR_RUNTIME, HINT_NO_KERNEL_IMAGE, "InvalidKernelFile"},
        {219, ERROR_RUNTIME, HINT_NONE, "InvalidGraphicsContext"},
        {300, ERROR_RUNTIME, HINT_NONE, "InvalidSource"},
        {301, ERROR_RUNTIME, HINT_NONE, "FileNotFound"},
        {302, ERROR_RUNTIME, HINT_NONE, "SharedObjectSymbolNotFound"},
        {303, ERROR_RUNTIME, HINT_NONE, "SharedObjectInitFailed"},
        {304, ERROR_RUNTIME, HINT_DRIVER_CALL_REFUSED, "OperatingSystem"},
        {400, ERROR_RUNTIME, HINT_NONE, "InvalidHandle"},
        {401, ERROR_RUNTIME, HINT_NONE, "IllegalState"},
        {500, ERROR_RUNTIME, HINT_NONE, "NotFound"},
        {600, ERROR_RUNTIME, HINT_NONE, "NotReady"},
        {700, ERROR_RUNTIME, HINT_NONE, "IllegalAddress"},
        {701, ERROR_RUNTIME, HINT_NONE, "LaunchOutOfResources"},
        {702, ERROR_RUNTIME, HINT_NONE, "LaunchTimeOut"},
        {704, ERROR_RUNTIME, HINT_NONE, "PeerAccessAlreadyEnabled"},
        {705, ERROR_RUNTIME, HINT_NONE, "PeerAccessNotEnabled"},
        {708, ERROR_RUNTIME, HINT_NONE, "SetOnActiveProcess"},
        {709, ERROR_RUNTIME, HINT_NONE, "ContextIsDestroyed"},
        {710, ERROR_RUNTIME, HINT_NONE, "Assert"},
        {712, ERROR_RUNTIME, HINT_NONE, "HostMemoryAlreadyRegistered"},
        {713, ERROR_RUNTIME, HINT_NONE, "HostMemoryNotRegistered"},
        {719, ERROR_RUNTIME, HINT_NONE, "LaunchFailure"},
        {720, ERROR_RUNTIME, HINT_NONE, "CooperativeLaunchTooLarge"},
        {801, ERROR_RUNTIME, HINT_NONE, "NotSupported"},
        {900, ERROR_RUNTIME, HINT_NONE, "StreamCaptureUnsupported"},
        {901, ERROR_RUNTIME, HINT_NONE, "StreamCaptureInvalidated"},
        {902, ERROR_RUNTIME, HINT_NONE, "StreamCaptureMerge"},
        {903, ERROR_RUNTIME, HINT_NONE, "StreamCaptureUnmatched"},
        {904, ERROR_RUNTIME, HINT_NONE, "StreamCaptureUnjoined"},
        {905, ERROR_RUNTIME, HINT_NONE, "StreamCaptureIsolation"},
        {906, ERROR_RUNTIME, HINT_NONE, "StreamCaptureImplicit"},
        {907, ERROR_RUNTIME, HINT_NONE, "CapturedEvent"},
        {908, ERROR_RUNTIME, HINT_NONE, "StreamCaptureWrongThread"},
        {910, ERROR_RUNTIME, HINT_NONE, "GraphExecUpdateFailure"},
        {999, ERROR_RUNTIME, HINT_NONE, "Unknown"},
        {1052, ERROR_RUNTIME, HINT_NONE, "RuntimeMemory"},
        {1053, ERROR_RUNTIME, HINT_NONE, "RuntimeOther"},
};

static const struct {
	const struct error_row *rows;
	size_t count;
	const char *prefix;
} TABLES[ERROR_TABLE_COUNT] = {
        [ERROR_TABLE_CUDA] = {CUDA_ERRORS, sizeof CUDA_ERRORS / sizeof *CUDA_ERRORS, "CUDA_ERROR_"},
        [ERROR_TABLE_HIP] = {HIP_ERRORS, sizeof HIP_ERRORS / sizeof *HIP_ERRORS, "hipError"},
};

void error_look_up(enum error_table table, int number, struct error_facts *facts)
{
	*facts = (struct error_facts){.kind = ERROR_RUNTIME, .hint = HINT_NONE, .name = ""};
	for (size_t i = 0; i < TABLES[table].count; i++) {
		const struct error_row *row = &TABLES[table].rows[i];
		if (row->number != number)
			continue;
		facts->kind = (enum error_kind)row->kind;
		facts->hint = (enum native_hint)row->hint;
		text_copy(facts->name, sizeof facts->name, TABLES[table].prefix);
		text_append(facts->name, sizeof facts->name, row->name);
	}
}

const char *error_code(enum error_kind kind, enum error_step step)
{
	if (kind == ERROR_STUB)
		return "GPU_BACKEND_ABSENT";
	/* cuInit was seen to answer "out of memory" with plenty of it, HIP "out of resources" for a /dev/kfd that it
	 * may not open: whatever the number, a refused initialisation is an unusable GPU (FIELD-NOTES 8). */
	if (step == STEP_INIT)
		return "GPU_UNAVAILABLE";
	if (kind == ERROR_MEMORY)
		return "OUT_OF_MEMORY";
	if (kind == ERROR_UNAVAILABLE || step == STEP_CONTEXT)
		return "GPU_UNAVAILABLE";
	if (kind == ERROR_INDEX && step == STEP_DEVICE)
		return "DEVICE_INDEX_INVALID";
	return "RUNTIME_ERROR";
}
