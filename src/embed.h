/* The two programs that the supervisor carries, as built. They lie in read-only data, each followed by a zero byte that
 * is not counted in its size. */
#ifndef KD_EMBED_H
#define KD_EMBED_H

#include <stdint.h>

/* src/worker/probe.py, the Python worker. */
extern const char embed_probe_py[];
extern const uint64_t embed_probe_py_size;

/* build/kd-probe, the native worker: a dynamic ELF file for this machine. */
extern const char embed_kd_probe[];
extern const uint64_t embed_kd_probe_size;

#endif
