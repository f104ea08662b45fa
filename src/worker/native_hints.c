#include "native_hints.h"

/* Arrays, not pointers: nothing here needs a relocation. */
static const char HINT_IDS[HINT_COUNT][32] = {
        [HINT_NONE] = "",
        [HINT_AMD_ONLY] = "amd-only",
        [HINT_CAPABILITIES_WITHOUT_COMPUTE] = "capabilities-without-compute",
        [HINT_COMPAT_NEEDS_DATACENTER] = "compat-needs-datacenter",
        [HINT_CONTAINER_LOST_GPU] = "container-lost-gpu",
        [HINT_DEVICE_NODE_GROUP] = "device-node-group",
        [HINT_DEVICE_NODE_MISSING] = "device-node-missing",
        [HINT_DEVICE_NODE_PERMISSION] = "device-node-permission",
        [HINT_DRIVER_CALL_REFUSED] = "driver-call-refused",
        [HINT_DRIVER_LIBRARY_MISMATCH] = "driver-library-mismatch",
        [HINT_DRIVER_TOO_OLD] = "driver-too-old",
        [HINT_ECC_ERROR] = "ecc-error",
        [HINT_EXCLUSIVE_MODE] = "exclusive-mode",
        [HINT_FABRIC_MANAGER] = "fabric-manager",
        [HINT_GVISOR] = "gvisor",
        [HINT_INDEX_OUT_OF_RANGE] = "index-out-of-range",
        [HINT_INTEGRATED_GPU] = "integrated-gpu",
        [HINT_JIT_LIBRARY_MISSING] = "jit-library-missing",
        [HINT_LIBRARY_COMPAT] = "library-compat",
        [HINT_LIBRARY_OFF_PATH] = "library-off-path",
        [HINT_LIBRARY_STUB] = "library-stub",
        [HINT_MASK_SET] = "mask-set",
        [HINT_MPS] = "mps",
        [HINT_MUSL_IMAGE] = "musl-image",
        [HINT_NO_KERNEL_IMAGE] = "no-kernel-image",
        [HINT_NO_LOADER] = "no-loader",
        [HINT_PTX_NEWER_THAN_DRIVER] = "ptx-newer-than-driver",
        [HINT_UVM_MISSING] = "uvm-missing",
        [HINT_VGPU_LICENSE] = "vgpu-license",
        [HINT_WSL] = "wsl",
};

const char *native_hint_id(enum native_hint hint)
{
	return HINT_IDS[hint];
}
