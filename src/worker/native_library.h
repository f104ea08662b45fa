/* The container's own dynamic loader, through the three functions that kd-probe imports. */
#ifndef KD_NATIVE_LIBRARY_H
#define KD_NATIVE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* dlopen with RTLD_LAZY, as the CUDA runtime and PyTorch do. Returns NULL and, when `missing` is not NULL, the bare
 * name of the object that the loader could not find or use: `name` itself, or one that it needs. */
void *library_load(const char *name, char *missing, size_t missing_size);

/* NULL where the library has no such symbol. */
void *library_symbol(void *library, const char *name);

/* Where a symbol's library came from: "system", "compat", "stub", "wsl", "python-package" or "other". */
const char *library_origin(void *symbol);

/* The libc of the loader that started us: "glibc 2.36" or "musl". */
void library_libc(char *text, size_t size);
bool library_is_musl(void);

#endif
