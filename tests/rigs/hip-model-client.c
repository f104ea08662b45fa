/* hip-model-client LIBRARY [IMAGE]
 * The rungs of kd-preflight on device 0 in their shortest form, against a real HIP runtime: the shipped code object
 * IMAGE (by default the one of the device's own name), both kernels, the numbers. Prints one line; exits 0 when they
 * are exact. */
#include "../../build/kernels/images.h"
#include "../../kernels/check.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { PROPERTIES_SIZE = 4096, ARCH_NAME = 396 }; /* hipDeviceProp_t of the plain symbol */

static void *hip;

static void *symbol(const char *name)
{
	void *address = dlsym(hip, name);

	if (!address)
		printf("no %s\n", name);
	return address;
}

#define CALL(name, type, ...)                                                                                          \
	do {                                                                                                           \
		type *function_ = (type *)(uintptr_t)symbol(name);                                                     \
		int result_ = function_ ? function_(__VA_ARGS__) : -1;                                                 \
		if (result_) {                                                                                         \
			printf("%s: %d\n", name, result_);                                                             \
			return 1;                                                                                      \
		}                                                                                                      \
	} while (0)

typedef int number_call(unsigned);
typedef int properties_call(void *, int);
typedef int alloc_call(void **, size_t);
typedef int copy_call(void *, void *, size_t);
typedef int load_call(void **, const void *);
typedef int function_call(void **, void *, const char *);
typedef int launch_call(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                        void **);
typedef int plain_call(void);
typedef int handle_call(void *);

/* In anonymous memory of its own: HIP looks the address up in /proc/self/maps and would read a mapped file instead. */
static void *copy_of(const char *architecture)
{
	for (unsigned i = 0; i < kernel_image_count; i++) {
		void *copy;

		if (strcmp(kernel_images[i].architecture, architecture) != 0)
			continue;
		copy = mmap(NULL, kernel_images[i].size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (copy == MAP_FAILED)
			return NULL;
		memcpy(copy, kernel_images[i].bytes, kernel_images[i].size);
		return copy;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static const float right[CHECK_OUT_COUNT] = {4, 4, 10, 8, 196, 16, 24, 40, 52};
	static char properties[PROPERTIES_SIZE];
	float in[CHECK_IN_COUNT] = {1, 2, 3, 4, 2, 0, 1, 2}, out[CHECK_OUT_COUNT] = {0};
	void *device_in, *device_out, *module, *product, *gradient, *image;
	void *arguments[] = {&device_in, &device_out};
	char *architecture = properties + ARCH_NAME;
	int wrong = 0;

	if (argc < 2)
		return 2;
	hip = dlopen(argv[1], RTLD_NOW);
	if (!hip) {
		printf("%s\n", dlerror());
		return 2;
	}
	CALL("hipInit", number_call, 0);
	CALL("hipSetDevice", number_call, 0);
	CALL("hipGetDeviceProperties", properties_call, properties, 0);
	architecture[strcspn(architecture, ":")] = '\0';
	image = copy_of(argc > 2 ? argv[2] : architecture);
	if (!image) {
		printf("%s: no image\n", architecture);
		return 1;
	}
	CALL("hipMalloc", alloc_call, &device_in, sizeof in);
	CALL("hipMalloc", alloc_call, &device_out, sizeof out);
	CALL("hipMemcpyHtoD", copy_call, device_in, in, sizeof in);
	CALL("hipModuleLoadData", load_call, &module, image);
	CALL("hipModuleGetFunction", function_call, &product, module, "kd_product");
	CALL("hipModuleGetFunction", function_call, &gradient, module, "kd_gradient");
	CALL("hipModuleLaunchKernel", launch_call, product, 1, 1, 1, CHECK_THREADS, 1, 1, 0, NULL, arguments, NULL);
	CALL("hipModuleLaunchKernel", launch_call, gradient, 1, 1, 1, CHECK_THREADS, 1, 1, 0, NULL, arguments, NULL);
	CALL("hipDeviceSynchronize", plain_call);
	CALL("hipMemcpyDtoH", copy_call, out, device_out, sizeof out);
	CALL("hipModuleUnload", handle_call, module);
	CALL("hipFree", handle_call, device_in);
	CALL("hipFree", handle_call, device_out);
	for (int i = 0; i < CHECK_OUT_COUNT; i++)
		wrong += out[i] != right[i];
	printf("%s, image %s: %s\n", architecture, argc > 2 ? argv[2] : architecture, wrong ? "WRONG" : "exact");
	return wrong != 0;
}
