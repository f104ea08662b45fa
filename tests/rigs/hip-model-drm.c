/* Stands for libdrm_amdgpu, preloaded: for RDNA the runtime asks it about the card (family and revision, from
 * HIP_MODEL_FAMILY and HIP_MODEL_REVISION), and a modelled card has no kernel driver that could answer. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int amdgpu_device_initialize(int fd, uint32_t *major, uint32_t *minor, void **device);
int amdgpu_device_deinitialize(void *device);
int amdgpu_device_get_fd(void *device);
int amdgpu_query_gpu_info(void *device, void *info);
const char *amdgpu_get_marketing_name(void *device);

static uint32_t number(const char *name, uint32_t standard)
{
	const char *text = getenv(name);

	return text ? (uint32_t)strtoul(text, NULL, 10) : standard;
}

int amdgpu_device_initialize(int fd, uint32_t *major, uint32_t *minor, void **device)
{
	static char handle;

	(void)fd;
	*major = 3;
	*minor = 57;
	*device = &handle;
	return 0;
}

int amdgpu_device_deinitialize(void *device)
{
	(void)device;
	return 0;
}

int amdgpu_device_get_fd(void *device)
{
	(void)device;
	return -1;
}

/* struct amdgpu_gpu_info (libdrm's amdgpu.h) begins with asic_id, chip_rev, chip_external_rev, family_id. */
int amdgpu_query_gpu_info(void *device, void *info)
{
	uint32_t head[4] = {0, 0, number("HIP_MODEL_REVISION", 1), number("HIP_MODEL_FAMILY", 145)};

	(void)device;
	memset(info, 0, 64);
	memcpy(info, head, sizeof head);
	return 0;
}

const char *amdgpu_get_marketing_name(void *device)
{
	(void)device;
	return "modelled GPU";
}
