/* From the policy table to the two seccomp filters, by libseccomp. Runs when kd-preflight is built, and in tests; no
 * part of the supervisor.
 *
 * The first filter is the boundary: libseccomp's, an allow-list, everything else EPERM. The second, loaded after it,
 * only takes away, and gives other answers: numbers that the table does not know say ENOSYS, so that a library newer
 * than the table falls back as on an older kernel; calls that are allowed with any argument but a run-time value are
 * refused with that one; and no further filter is accepted. libseccomp has one default action, and no "unequal" of 32
 * bits. Of two filters that both refuse, the kernel takes the newer one's errno. */
#ifndef KD_SANDBOX_COMPILE_H
#define KD_SANDBOX_COMPILE_H

#include "sandbox_seccomp.h"

/* The number of a call on `arch` (SCMP_ARCH_X86_64 or SCMP_ARCH_AARCH64, whatever this program runs on). Negative:
 * there is no such call; -1: libseccomp knows no such name. */
int sandbox_compile_number(uint32_t arch, const struct policy_call *call);

/* One filter for `arch`. Returns 0 or a negative errno: E2BIG when it is longer than a program may be, EINVAL when the
 * table names a call that libseccomp does not know (here, for policy_call.x86_64: an aarch64 machine cannot compile
 * those for the other), or one beyond what the second filter tells apart. Allocates. Not thread-safe. */
int sandbox_compile(uint32_t arch, enum sandbox_filter which, const struct sandbox_seccomp *values,
                    struct sandbox_program *program);

#endif
