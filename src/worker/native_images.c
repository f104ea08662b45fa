#include "native_images.h"

#include "native_system.h"
#include "native_text.h"

#include "images.h"

#include <linux/mman.h>
#include <stdint.h>

/* Which generic target covers which chips: "AMDGPU Usage", Generic Processors, of LLVM. ROCm reads them from 6.3 on;
 * an older one refuses them with an error of its own. */
static const struct {
	char generic[20];
	char covered[12][12];
} GENERICS[] = {
        {"gfx9-generic", {"gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"}},
        {"gfx9-4-generic", {"gfx940", "gfx941", "gfx942", "gfx950"}},
        {"gfx10-1-generic", {"gfx1010", "gfx1011", "gfx1012", "gfx1013"}},
        {"gfx10-3-generic", {"gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"}},
        {"gfx11-generic", {"gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"}},
        {"gfx12-generic", {"gfx1200", "gfx1201"}},
};

const void *image_for_cuda(const char *architecture)
{
	(void)architecture;
	return kernel_ptx;
}

static const struct kernel_image *image_named(const char *architecture)
{
	for (unsigned i = 0; i < kernel_image_count; i++)
		if (text_equal(kernel_images[i].architecture, architecture))
			return &kernel_images[i];
	return NULL;
}

static const char *generic_for(const char *architecture)
{
	for (size_t i = 0; i < sizeof GENERICS / sizeof *GENERICS; i++)
		for (size_t j = 0; j < sizeof GENERICS[i].covered / sizeof *GENERICS[i].covered; j++)
			if (text_equal(GENERICS[i].covered[j], architecture))
				return GENERICS[i].generic;
	return "";
}

const void *image_for_hip(const char *architecture)
{
	const struct kernel_image *image = architecture[0] ? image_named(architecture) : NULL;
	long copy;

	if (!image)
		image = image_named(generic_for(architecture));
	if (!image)
		return NULL;
	/* HIP looks the pointer up in /proc/self/maps and would open the file behind a mapped one, which is a memfd
	 * here. */
	copy = system_call6(__NR_mmap, 0, image->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy < 0 && copy > -4096)
		return NULL;
	return memcpy((void *)(uintptr_t)copy, image->bytes, image->size);
}
