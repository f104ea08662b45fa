/* What people read: the human lines, next actions and hints, in five languages, from one table (messages.c). Codes,
 * stages, ids and keys are never translated. */
#ifndef KD_MESSAGES_H
#define KD_MESSAGES_H

#include "codes.h"

#include <stdbool.h>
#include <stddef.h>

enum language { LANGUAGE_EN, LANGUAGE_ES, LANGUAGE_PT, LANGUAGE_DE, LANGUAGE_FR, LANGUAGE_COUNT };

/* The hints: stable ids. A worker may say an id; it never says a text. */
#define MESSAGES_HINTS(X)                                                                                              \
	X(HINT_AMD_ONLY, "amd-only")                                                                                   \
	X(HINT_CAPABILITIES_WITHOUT_COMPUTE, "capabilities-without-compute")                                           \
	X(HINT_COMPAT_NEEDS_DATACENTER, "compat-needs-datacenter")                                                     \
	X(HINT_CONTAINER_LOST_GPU, "container-lost-gpu")                                                               \
	X(HINT_CPU_ONLY_PACKAGE, "cpu-only-package")                                                                   \
	X(HINT_DEVICE_NODE_GROUP, "device-node-group")                                                                 \
	X(HINT_DEVICE_NODE_MISSING, "device-node-missing")                                                             \
	X(HINT_DEVICE_NODE_PERMISSION, "device-node-permission")                                                       \
	X(HINT_DRIVER_CALL_REFUSED, "driver-call-refused")                                                             \
	X(HINT_DRIVER_LIBRARY_MISMATCH, "driver-library-mismatch")                                                     \
	X(HINT_DRIVER_TOO_OLD, "driver-too-old")                                                                       \
	X(HINT_ECC_ERROR, "ecc-error")                                                                                 \
	X(HINT_EXCLUSIVE_MODE, "exclusive-mode")                                                                       \
	X(HINT_FABRIC_MANAGER, "fabric-manager")                                                                       \
	X(HINT_FAULT_IN_PACKAGE, "fault-in-package")                                                                   \
	X(HINT_GVISOR, "gvisor")                                                                                       \
	X(HINT_INDEX_OUT_OF_RANGE, "index-out-of-range")                                                               \
	X(HINT_INTEGRATED_GPU, "integrated-gpu")                                                                       \
	X(HINT_JIT_LIBRARY_MISSING, "jit-library-missing")                                                             \
	X(HINT_KILLED_FOR_MEMORY, "killed-for-memory")                                                                 \
	X(HINT_LIBRARY_COMPAT, "library-compat")                                                                       \
	X(HINT_LIBRARY_OFF_PATH, "library-off-path")                                                                   \
	X(HINT_LIBRARY_STUB, "library-stub")                                                                           \
	X(HINT_MASK_SET, "mask-set")                                                                                   \
	X(HINT_MODULE_SHADOWED, "module-shadowed")                                                                     \
	X(HINT_MPS, "mps")                                                                                             \
	X(HINT_MUSL_IMAGE, "musl-image")                                                                               \
	X(HINT_NATIVE_DISAGREES, "native-disagrees")                                                                   \
	X(HINT_NO_KERNEL_IMAGE, "no-kernel-image")                                                                     \
	X(HINT_NO_LOADER, "no-loader")                                                                                 \
	X(HINT_PTX_NEWER_THAN_DRIVER, "ptx-newer-than-driver")                                                         \
	X(HINT_PYTHON_IS_WRAPPER, "python-is-wrapper")                                                                 \
	X(HINT_REPORT_NOT_SAVED, "report-not-saved")                                                                   \
	X(HINT_SANDBOX_OFF, "sandbox-off")                                                                             \
	X(HINT_SANDBOX_WEAK, "sandbox-weak")                                                                           \
	X(HINT_THREADS_REFUSED, "threads-refused")                                                                     \
	X(HINT_TORCH_IS_FOREIGN, "torch-is-foreign")                                                                   \
	X(HINT_TORCH_IS_NAMESPACE, "torch-is-namespace")                                                               \
	X(HINT_UVM_MISSING, "uvm-missing")                                                                             \
	X(HINT_VGPU_LICENSE, "vgpu-license")                                                                           \
	X(HINT_WHEEL_LACKS_ARCHITECTURE, "wheel-lacks-architecture")                                                   \
	X(HINT_WSL, "wsl")

#define MESSAGES_HINT_ENUM(name, id) name,
enum hint { MESSAGES_HINTS(MESSAGES_HINT_ENUM) HINT_COUNT };
#undef MESSAGES_HINT_ENUM

/* The human lines. */
enum message {
	MESSAGE_RUNG_INTERPRETER,
	MESSAGE_RUNG_BACKEND,
	MESSAGE_RUNG_COMPUTATION,
	MESSAGE_OK,
	MESSAGE_FAILED,
	MESSAGE_NOT_CHECKED,
	MESSAGE_NOT_REACHED,
	MESSAGE_PYTORCH,
	MESSAGE_STAGE,
	MESSAGE_NEXT,
	MESSAGE_HINT,
	MESSAGE_STARTING,
	MESSAGE_NOT_STARTED,
	MESSAGE_REPORT_SAVED,
	MESSAGE_SANDBOX_OFF,
	MESSAGE_WORKER_PRINTED,
	MESSAGE_COUNT
};

/* The words that --lang accepts, in the order of enum language, NULL-terminated. */
extern const char *const MESSAGES_LANGUAGES[LANGUAGE_COUNT + 1];

/* The language of LC_ALL, else LC_MESSAGES, else LANG (POSIX locale rules: the first that is not empty), by its first
 * two letters; English for anything else. envp is NULL-terminated and may be NULL. */
enum language messages_language_from_locale(char *const envp[]);

/* Static strings in UTF-8, never NULL. */
const char *messages_text(enum message message, enum language language);
const char *messages_next_action(enum code code, enum language language);
const char *messages_hint_id(enum hint hint);
const char *messages_hint_text(enum hint hint, enum language language);

/* True and *out set when `id` (length bytes) is a hint of the table. */
bool messages_hint_from_id(const char *id, size_t length, enum hint *out);

#endif
