/* See check.h. Compiled for the host by any C compiler, for GPUs by clang without CUDA or ROCm: plain C has no kernels,
 * so each target brings its own word for one. Keep fast-math and contraction off: every value here is exact in float32,
 * and must come out the same on all of them. */
#include "check.h"

/* Address space 1 is global memory on NVPTX and on AMDGPU. A pointer that says so becomes a global load instead of a
 * generic ("flat") one, which on AMDGPU would need the aperture set-up of a dispatch. */
#if defined(__NVPTX__)
#define GLOBAL         __attribute__((address_space(1)))
#define KERNEL         __attribute__((nvptx_kernel))
#define THREAD_INDEX() ((unsigned)__nvvm_read_ptx_sreg_tid_x())
#elif defined(__AMDGCN__)
/* Protected: HIP looks the kernel's descriptor up in .dynsym, ROCr in .symtab; default visibility would be preemptible
 * and a hidden symbol would be missing from the first. */
#define GLOBAL         __attribute__((address_space(1)))
#define KERNEL         __attribute__((amdgpu_kernel, visibility("protected")))
#define THREAD_INDEX() ((unsigned)__builtin_amdgcn_workitem_id_x())
#else
#define GLOBAL
#endif

static void product_thread(const GLOBAL float *in, GLOBAL float *out, unsigned thread)
{
	const GLOBAL float(*a)[2] = (const GLOBAL float(*)[2])(in + CHECK_IN_A);
	const GLOBAL float(*b)[2] = (const GLOBAL float(*)[2])(in + CHECK_IN_B);
	unsigned row = thread / 2, column = thread % 2;

	out[CHECK_OUT_PRODUCT + thread] = a[row][0] * b[0][column] + a[row][1] * b[1][column];
}

static void gradient_thread(const GLOBAL float *in, GLOBAL float *out, unsigned thread)
{
	const GLOBAL float(*b)[2] = (const GLOBAL float(*)[2])(in + CHECK_IN_B);
	const GLOBAL float(*c)[2] = (const GLOBAL float(*)[2])(out + CHECK_OUT_PRODUCT);
	unsigned row = thread / 2, column = thread % 2;

	out[CHECK_OUT_GRADIENT + thread] = 2.0F * (c[row][0] * b[column][0] + c[row][1] * b[column][1]);
	if (thread == 0)
		out[CHECK_OUT_LOSS] = c[0][0] * c[0][0] + c[0][1] * c[0][1] + c[1][0] * c[1][0] + c[1][1] * c[1][1];
}

#if defined(KERNEL)

KERNEL void kd_product(const GLOBAL float *in, GLOBAL float *out);
KERNEL void kd_gradient(const GLOBAL float *in, GLOBAL float *out);

KERNEL void kd_product(const GLOBAL float *in, GLOBAL float *out)
{
	product_thread(in, out, THREAD_INDEX());
}

KERNEL void kd_gradient(const GLOBAL float *in, GLOBAL float *out)
{
	gradient_thread(in, out, THREAD_INDEX());
}

#else

void kd_product_host(const float *in, float *out)
{
	for (unsigned thread = 0; thread < CHECK_THREADS; thread++)
		product_thread(in, out, thread);
}

void kd_gradient_host(const float *in, float *out)
{
	for (unsigned thread = 0; thread < CHECK_THREADS; thread++)
		gradient_thread(in, out, thread);
}

#endif
