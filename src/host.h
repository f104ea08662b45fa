/* --host-check: what nvidia-smi, or the kernel's own files, say of the host's driver. Never decides the verdict. */
#ifndef KD_HOST_H
#define KD_HOST_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

enum { HOST_DEVICES_MAX = 128 };

struct host_facts {
	const char *source;      /* static: "nvidia-smi", "amdgpu" or NULL */
	char driver_version[64]; /* "": not told */
	int memory_count;
	uint64_t memory_total_bytes[HOST_DEVICES_MAX];
	const char *problem; /* static, NULL: none. "not-found", "timeout", "failed", "unreadable-answer" */
};

/* Finds nvidia-smi on PATH (its default where unset), with the argument vector to start it. Returns a descriptor-free
 * path in `path`, or "" when there is none. */
void host_find_nvidia_smi(const char *path_variable, char path[PATH_MAX]);

/* Arguments after the program's name, NULL-terminated, for the query that host_read_nvidia_smi() reads. */
extern char *const HOST_NVIDIA_SMI_ARGUMENTS[];

/* Reads the answer ("535.183.01, 81559" per line: version, MiB). The text is hostile and need not be terminated. */
void host_read_nvidia_smi(struct host_facts *facts, const char *text, size_t length);

/* Reads /sys/module/amdgpu/version and /sys/class/drm/cardN/device/mem_info_vram_total (kernel documentation,
 * gpu/amdgpu/driver-misc). No process, no driver call. */
void host_read_amdgpu(struct host_facts *facts);

#endif
