/* The fixed computation of CONTRACT.md 1: C = A*B, loss = sum of C squared, gradient = dloss/dA = 2*C*transpose(B), for
 * 2x2 float32 matrices held row by row. One source, check.c, serves the host, PTX and AMDGCN.
 *
 * On a device the two kernels have these names and parameters, and are launched with one block of CHECK_THREADS
 * threads:
 *
 *   kd_product(const float *in, float *out)     writes C
 *   kd_gradient(const float *in, float *out)    reads C from out, writes loss and gradient
 *
 * They are two, so that a failure can be told as one of the product or of the gradient. */
#ifndef KD_CHECK_H
#define KD_CHECK_H

enum {
	CHECK_THREADS = 4,

	/* in: floats */
	CHECK_IN_A = 0,
	CHECK_IN_B = 4,
	CHECK_IN_COUNT = 8,

	/* out: floats */
	CHECK_OUT_PRODUCT = 0,
	CHECK_OUT_LOSS = 4,
	CHECK_OUT_GRADIENT = 5,
	CHECK_OUT_COUNT = 9
};

/* The same two kernels on the host, one thread after the other; `in` has CHECK_IN_COUNT floats and `out`
 * CHECK_OUT_COUNT. No state, no allocation, cannot fail. */
void kd_product_host(const float *in, float *out);
void kd_gradient_host(const float *in, float *out);

#endif
