/* System calls without a libc: kd-probe is linked without one, since it must start under any. Only this header and
 * native_start.c know the processor. */
#ifndef KD_NATIVE_SYSTEM_H
#define KD_NATIVE_SYSTEM_H

#include <asm/unistd.h>

enum {
	SYSTEM_AT_FDCWD = -100,
	SYSTEM_EPERM = 1,
	SYSTEM_ENOENT = 2,
	SYSTEM_EINTR = 4,
	SYSTEM_EBADF = 9,
	SYSTEM_EAGAIN = 11,
	SYSTEM_EACCES = 13,
	SYSTEM_EFAULT = 14,
	SYSTEM_EMFILE = 24,
};

/* One system call; returns its result, or a negative errno. Safe before relocation. */
static inline long system_call6(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	long result;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall"
	                 : "=a"(result)
	                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
	                 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
#else
#error "kd-probe knows x86-64 and aarch64"
#endif
}

static inline long system_call(long number, long a, long b, long c)
{
	return system_call6(number, a, b, c, 0, 0, 0);
}

/* Ends the process at once: no exit handler of a driver runs, since these were seen to hang and to crash. */
__attribute__((noreturn)) static inline void system_exit(int status)
{
	for (;;)
		(void)system_call(__NR_exit_group, status, 0, 0);
}

static inline long system_open(const char *path, int flags)
{
	return system_call6(__NR_openat, SYSTEM_AT_FDCWD, (long)path, flags, 0, 0, 0);
}

static inline void system_close(int fd)
{
	(void)system_call(__NR_close, fd, 0, 0);
}

#endif
