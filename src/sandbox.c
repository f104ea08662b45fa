/* One way in: limits, no_new_privs, Landlock, seccomp; and one way on: the exec of the worker. */
#include "sandbox.h"

#include "sandbox_landlock.h"
#include "sandbox_seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000 /* Linux 4.17; a mere hint before */
#endif
#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0x1000
#endif

enum {
	CPU_FILE_SIZE = 64 << 20,
	/* memory files count too, and a driver's are larger than anything the CPU needs */
	GPU_FILE_SIZE = 1 << 30,
};

/* A limit lowered, soft and hard; never raised. */
static struct rlimit lowered(struct rlimit now, rlim_t limit)
{
	if (now.rlim_max > limit)
		now.rlim_max = limit;
	if (now.rlim_cur > now.rlim_max)
		now.rlim_cur = now.rlim_max;
	return now;
}

/* A core limit of 1, not 0: where core_pattern names a program the kernel hands it the memory of a crash whatever the
 * limit, except at exactly 1 (Linux fs/coredump.c); and no file is written below one page. The soft limit is raised to
 * 1 where only it was 0. The size of files and the descriptors are the sandbox's own. */
static int set_limits(const struct sandbox_request *request, const char **step)
{
	struct rlimit core, size, files;

	*step = "getrlimit";
	if (getrlimit(RLIMIT_CORE, &core) || getrlimit(RLIMIT_FSIZE, &size) || getrlimit(RLIMIT_NOFILE, &files))
		return -errno;
	if (core.rlim_max > 0)
		core.rlim_cur = core.rlim_max = 1;
	size = lowered(size, request->gpu ? GPU_FILE_SIZE : CPU_FILE_SIZE);
	files = lowered(files, (rlim_t)request->exec_fd);
	*step = "setrlimit";
	return setrlimit(RLIMIT_CORE, &core) || setrlimit(RLIMIT_FSIZE, &size) || setrlimit(RLIMIT_NOFILE, &files)
	               ? -errno
	               : 0;
}

/* Whether `address` can be mapped, or is. A page made by this stays. */
static bool mappable(uintptr_t address, size_t page)
{
	void *want = (void *)address; // NOLINT(performance-no-int-to-ptr)
	void *got = mmap(want, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (got == want)
		return true;
	if (got != MAP_FAILED)
		(void)munmap(got, page);
	return got == MAP_FAILED && errno == EEXIST;
}

/* The last byte of the address space, if it is a readable 0; else NULL.
 *
 * A filter sees the path of execveat as an address, and AT_EMPTY_PATH does not keep an absolute path from being
 * followed. But a string that begins at the last byte that can be mapped has no room for anything before its end: the
 * kernel finds "" or faults. So one address, and the filter, leave the descriptor alone to say what is started. The top
 * differs with the processor's page tables, hence the tries, highest first; x86 keeps its last page free
 * (TASK_SIZE_MAX). */
static const char *last_byte(void)
{
	static const unsigned char bits[] = {56, 52, 48, 47, 42, 39, 36};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < sizeof bits; i++) {
		for (unsigned guard = 0; guard < 2; guard++) {
			uintptr_t top = ((uintptr_t)1 << bits[i]) - guard * page;
			const char *last = (const char *)(top - 1); // NOLINT(performance-no-int-to-ptr)
			if (!mappable(top - page, page) || mappable(top, page))
				continue;
			/* an empty path is ENOENT, an unreadable one EFAULT */
			return faccessat(AT_FDCWD, last, F_OK, 0) && errno == ENOENT ? last : NULL;
		}
	}
	return NULL;
}

static unsigned policy_kind(const struct sandbox_request *request)
{
	switch (request->kind) {
	case WORKER_PYTHON:
		return request->gpu ? POLICY_PYTHON_GPU : POLICY_PYTHON_CPU;
	case WORKER_NATIVE:
		return request->gpu ? POLICY_NATIVE_GPU : POLICY_NATIVE_CPU;
	case WORKER_HOST:
		break;
	}
	return POLICY_HOST;
}

static int load_filter(const struct sandbox_request *request, struct sandbox_state *state, const char **step)
{
	const char *last = last_byte();
	struct sandbox_seccomp values = {
	        .kind = policy_kind(request),
	        .writes_confined = state->landlock_abi > 0,
	        .own_pid = getpid(),
	        .parent_pid = getppid(),
	        .exec_fd = request->exec_fd,
	        .exec_path = last,
	        /* Without arguments it does nothing: EINVAL, or ENOSYS before 5.3. */
	        .clone3_refused = syscall(SYS_clone3, NULL, 0) < 0 && errno == EPERM,
	};
	int rc = sandbox_seccomp_load(&values, step);

	state->seccomp = rc == 0;
	state->exec_sealed = rc == 0 && last;
	if (last)
		state->exec_path = last;
	return rc;
}

/* The first failure is the one to tell. */
static void note(struct sandbox_state *state, const char *step, int rc)
{
	if (rc && !state->failed) {
		state->failed = step;
		state->failed_errno = -rc;
	}
}

static int set_no_new_privs(struct sandbox_state *state)
{
	int rc = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;

	state->no_new_privs = rc == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
	return rc;
}

/* Privileges that container runtimes withhold by default and no GPU driver or Python needs, but with which a root
 * worker reads other processes' environment (CAP_PERFMON since Linux 5.8, in spite of Landlock), configures the network
 * or unmounts: given up. What runtimes grant is kept, since the workload will have it when it opens its files. The
 * bounding set counts too, as a root process would get it back at exec; without CAP_SETPCAP no_new_privs sees to that.
 */
static void drop_capabilities(void)
{
	static const unsigned char KEPT[] = {
	        CAP_CHOWN,       CAP_DAC_OVERRIDE, CAP_FOWNER,   CAP_FSETID,           CAP_KILL,
	        CAP_SETGID,      CAP_SETUID,       CAP_SETPCAP,  CAP_NET_BIND_SERVICE, CAP_NET_RAW,
	        CAP_IPC_LOCK,    CAP_SYS_CHROOT,   CAP_SYS_NICE, CAP_SYS_RESOURCE,     CAP_MKNOD,
	        CAP_AUDIT_WRITE, CAP_SETFCAP};
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
	uint64_t kept = 0;

	for (size_t i = 0; i < sizeof KEPT; i++)
		kept |= UINT64_C(1) << KEPT[i];
	for (unsigned capability = 0; capability < 64; capability++)
		if (!(kept >> capability & 1))
			(void)prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
	if (syscall(SYS_capget, &header, sets))
		return;
	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		uint32_t word = (uint32_t)(kept >> (i * 32));
		sets[i].permitted &= word;
		sets[i].effective &= word;
		sets[i].inheritable &= word;
	}
	(void)syscall(SYS_capset, &header, sets);
}

int sandbox_enter(const struct sandbox_request *request, struct sandbox_state *state, struct error *error)
{
	const char *step = NULL;
	int number = 0, limits, privileges, filter;

	*state = (struct sandbox_state){.exec_path = ""};
	if (request->mode == SANDBOX_OFF)
		return 0;
	limits = set_limits(request, &step);
	note(state, step, limits);
	privileges = set_no_new_privs(state);
	note(state, "prctl(PR_SET_NO_NEW_PRIVS)", privileges);
	state->landlock_abi = sandbox_landlock(request->gpu, request->scratch, &step, &number);
	note(state, step, -number);
	if (state->no_new_privs) /* else CAP_SYS_ADMIN is what the filter is loaded with */
		drop_capabilities();
	filter = load_filter(request, state, &step);
	note(state, step, filter);
	/* the limit on descriptors is half of the filter's promise of one exec */
	if (request->mode != SANDBOX_REQUIRE || (!limits && !privileges && !filter))
		return 0;
	return error_set(error, state->failed_errno, "unable to put up the sandbox: %s: %s", state->failed,
	                 strerror(state->failed_errno));
}

int sandbox_exec(int exec_fd, const struct sandbox_state *state, char *const argv[], char *const envp[])
{
	(void)syscall(SYS_execveat, exec_fd, state->exec_path, argv, envp, AT_EMPTY_PATH);
	return -errno;
}
