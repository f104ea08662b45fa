/* The device code that kd-probe carries (build/kernels/images.h, made from kernels/). */
#ifndef KD_NATIVE_IMAGES_H
#define KD_NATIVE_IMAGES_H

/* PTX as terminated text, for every architecture; the driver compiles it. Static storage. */
const void *image_for_cuda(const char *architecture);

/* An anonymous page-aligned copy of the code object for an architecture ("gfx942"): the one of that name, else the
 * generic one that covers it. The copy stays mapped. NULL when there is none, or no memory. */
const void *image_for_hip(const char *architecture);

#endif
