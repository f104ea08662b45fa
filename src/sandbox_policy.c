/* The system-call policy. Its bound is what container runtimes allow by default (moby's profiles/seccomp/default.json):
 * nothing here goes beyond it but uretprobe and uprobe, told below. Within it: what glibc, musl, Python, PyTorch 1.13
 * to 2.14, libcuda 390 to 555 and HIP 5.2 to 7.2 were seen to call, and its harmless neighbours, so that a library we
 * have not seen falls back as it would on an older kernel.
 *
 * The kernel truncates `int` arguments to 32 bits, so they are compared through a 32-bit mask: a comparison of 64 bits
 * could be walked around by setting a higher one (CVE-2019-10063 was that, for TIOCSTI). */
#include "sandbox_policy.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <sys/socket.h>

/* Names from newer kernels than the oldest headers we build with. */
enum {
	OP_PR_SVE_GET_VL = 51,
	OP_PR_GET_SPECULATION_CTRL = 52,
	OP_PR_GET_TAGGED_ADDR_CTRL = 56,
	OP_PR_SET_VMA = 0x53564d41,
	OP_F_GETPIPE_SZ = 1032,
	OP_F_ADD_SEALS = 1033,
	OP_F_GET_SEALS = 1034,
	OP_AT_EMPTY_PATH = 0x1000,
};

#define INT UINT32_MAX

enum {
	/* every namespace that clone(2) can make in its flags; CLONE_NEWTIME shares its bit with the exit signal and
	 * is for unshare and clone3 only */
	NAMESPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
	             CLONE_NEWNET,
	SOCKET_TYPE = ~(SOCK_CLOEXEC | SOCK_NONBLOCK),
	/* musl's O_ACCMODE includes O_PATH: take the kernel's two bits */
	ACCESS_MODE = 3,
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define CALL(call)                                                                                                     \
	{                                                                                                              \
		.name = #call                                                                                          \
	}
#define IS(arg, bits, value)                                                                                           \
	{                                                                                                              \
		.argument = (arg), .mask = (uint32_t)(bits), .values = {(uint32_t)(value) }                            \
	}
#define IS_OWN(arg, what)                                                                                              \
	{                                                                                                              \
		.argument = (arg), .mask = UINT32_MAX, .source = (what)                                                \
	}
#define CALL_IF(call, ...)                                                                                             \
	{                                                                                                              \
		.name = #call, .tests = { __VA_ARGS__ }                                                                \
	}

static const struct policy_call memory[] = {
        CALL(mmap), CALL(munmap), CALL(mprotect), CALL(mremap),     CALL(madvise),
        CALL(brk),  CALL(mlock),  CALL(munlock),  CALL(membarrier),
};

static const struct policy_call threads[] = {
        CALL(futex),
        CALL(futex_waitv),
        CALL(set_robust_list),
        CALL(get_robust_list),
        CALL(set_tid_address),
        CALL(rseq),
        CALL(arch_prctl),
        CALL(gettid),
        CALL(getcpu),
        CALL(sched_yield),
        CALL(sched_getaffinity),
        CALL(sched_getattr),
        CALL(sched_getparam),
        CALL(sched_getscheduler),
        CALL(sched_get_priority_max),
        CALL(sched_get_priority_min),
        CALL(exit),
        CALL(exit_group),
        CALL(restart_syscall),
        CALL_IF(clone, IS(0, CLONE_THREAD | NAMESPACES, CLONE_THREAD)),
};

/* 32 bits, since the kernel sees no more of the argument. */
static const struct policy_call affinity[] = {
        CALL_IF(sched_setaffinity, {.argument = 0, .mask = UINT32_MAX, .source = POLICY_PARENT_PID, .count = 1}),
};

static const struct policy_call signals[] = {
        CALL(rt_sigaction),
        CALL(rt_sigprocmask),
        CALL(rt_sigreturn),
        CALL(rt_sigpending),
        CALL(rt_sigtimedwait),
        CALL(rt_sigsuspend),
        CALL(sigaltstack),
        CALL(pause),
        CALL_IF(kill, IS_OWN(0, POLICY_OWN_PID)),
        CALL_IF(tgkill, IS_OWN(0, POLICY_OWN_PID)),
        CALL_IF(tkill, IS_OWN(0, POLICY_OWN_PID)),
};

/* On a kernel from 6.11 a user probe (eBPF tools that watch CUDA calls put them there) makes the probed program itself
 * call these; refused, the program dies of SIGILL. They answer only to the kernel's own trampoline. */
static const struct policy_call probes[] = {CALL(uretprobe), {.name = "uprobe", .x86_64 = 336}};

static const struct policy_call reading[] = {
        CALL(read),      CALL(pread64),    CALL(readv),    CALL(lseek),      CALL(close),    CALL(close_range),
        CALL(stat),      CALL(lstat),      CALL(fstat),    CALL(newfstatat), CALL(statx),    CALL(access),
        CALL(faccessat), CALL(faccessat2), CALL(readlink), CALL(readlinkat), CALL(getdents), CALL(getdents64),
        CALL(getcwd),    CALL(chdir),      CALL(fchdir),   CALL(umask),
};

static const struct policy_call descriptors[] = {
        CALL(write),
        CALL(writev),
        CALL(pwrite64),
        CALL(ftruncate),
        CALL(dup),
        CALL(dup2),
        CALL(dup3),
        CALL(pipe),
        CALL(pipe2),
        CALL(memfd_create),
        CALL(poll),
        /* F_DUPFD to F_SETLKW; not F_SETOWN, F_SETSIG, F_SETOWN_EX: they send signals to others by way of the kernel */
        CALL_IF(fcntl, IS(1, INT & ~7U, 0)),
        CALL_IF(fcntl, IS(1, INT & ~1U, 36)), /* F_OFD_GETLK, F_OFD_SETLK */
        CALL_IF(fcntl, IS(1, INT, 38)),       /* F_OFD_SETLKW */
        CALL_IF(fcntl, IS(1, INT, F_DUPFD_CLOEXEC)),
        CALL_IF(fcntl, IS(1, INT, OP_F_GETPIPE_SZ)),
        CALL_IF(fcntl, IS(1, INT, OP_F_ADD_SEALS)),
        CALL_IF(fcntl, IS(1, INT, OP_F_GET_SEALS)),
};

static const struct policy_call seldom[] = {
        CALL(flock),     CALL(fadvise64),       CALL(readahead),  CALL(getxattr),    CALL(lgetxattr),  CALL(fgetxattr),
        CALL(listxattr), CALL(llistxattr),      CALL(flistxattr), CALL(statfs),      CALL(fstatfs),    CALL(preadv),
        CALL(preadv2),   CALL(pwritev),         CALL(pwritev2),   CALL(fallocate),   CALL(fsync),      CALL(fdatasync),
        CALL(sendfile),  CALL(copy_file_range), CALL(ioprio_get), CALL(getpriority), CALL(getsid),     CALL(getpgrp),
        CALL(getpgid),   CALL(times),           CALL(mincore),    CALL(mlockall),    CALL(munlockall), CALL(msync),
        CALL(mlock2),
};

static const struct policy_call events[] = {
        CALL(ppoll),         CALL(select),         CALL(pselect6),          CALL(epoll_create),
        CALL(epoll_create1), CALL(epoll_ctl),      CALL(epoll_wait),        CALL(epoll_pwait),
        CALL(epoll_pwait2),  CALL(eventfd),        CALL(eventfd2),          CALL(signalfd),
        CALL(signalfd4),     CALL(timerfd_create), CALL(timerfd_settime),   CALL(timerfd_gettime),
        CALL(inotify_init),  CALL(inotify_init1),  CALL(inotify_add_watch), CALL(inotify_rm_watch),
        CALL(timer_create),  CALL(timer_settime),  CALL(timer_gettime),     CALL(timer_getoverrun),
        CALL(timer_delete),  CALL(setitimer),      CALL(getitimer),         CALL(alarm),
};

static const struct policy_call clocks[] = {
        CALL(clock_gettime), CALL(clock_getres), CALL(clock_nanosleep), CALL(nanosleep),
        CALL(gettimeofday),  CALL(time),         CALL(getrusage),
};

static const struct policy_call questions[] = {
        CALL(uname),
        CALL(sysinfo),
        CALL(getrandom),
        CALL(getpid),
        CALL(getppid),
        CALL(getuid),
        CALL(geteuid),
        CALL(getgid),
        CALL(getegid),
        CALL(getresuid),
        CALL(getresgid),
        CALL(getgroups),
        CALL(capget),
        CALL(getrlimit),
        CALL(wait4),
        CALL(waitid),
        CALL_IF(prlimit64, {.argument = 2, .mask = UINT64_MAX}),
        CALL_IF(personality, IS(0, INT, INT)),
};

#define PRCTL(option) CALL_IF(prctl, IS(0, INT, option))
static const struct policy_call process_options[] = {
        PRCTL(PR_SET_NAME), PRCTL(PR_GET_NAME), PRCTL(PR_GET_SECCOMP), PRCTL(PR_GET_NO_NEW_PRIVS), PRCTL(OP_PR_SET_VMA),
};

static const struct policy_call more_process_options[] = {
        PRCTL(PR_GET_DUMPABLE),
        PRCTL(PR_GET_KEEPCAPS),
        PRCTL(PR_GET_PDEATHSIG),
        PRCTL(PR_GET_SECUREBITS),
        PRCTL(PR_SET_TIMERSLACK),
        PRCTL(PR_GET_TIMERSLACK),
        PRCTL(PR_SET_THP_DISABLE),
        PRCTL(PR_GET_THP_DISABLE),
        PRCTL(PR_CAPBSET_READ),
        PRCTL(OP_PR_SVE_GET_VL),
        PRCTL(OP_PR_GET_SPECULATION_CTRL),
        PRCTL(OP_PR_GET_TAGGED_ADDR_CTRL),
};

#define IOCTL(request) CALL_IF(ioctl, IS(1, INT, request))
static const struct policy_call descriptor_ioctls[] = {
        IOCTL(0x5401),     /* TCGETS: isatty() */
        IOCTL(0x5413),     /* TIOCGWINSZ */
        IOCTL(0x541b),     /* FIONREAD */
        IOCTL(0x5421),     /* FIONBIO */
        IOCTL(0x5450),     /* FIONCLEX */
        IOCTL(0x5451),     /* FIOCLEX: Python on every file it opens */
        IOCTL(0x802c542a), /* TCGETS2: isatty() from glibc 2.42 */
};

/* By the type byte of the request (asm-generic/ioctl.h). A GPU driver's own is any: F and 0 (NVIDIA, UVM), K and d
 * (AMD), G (WSL), H and N (Tegra). So the types that are known not to be a GPU's are refused: block devices (0x12),
 * terminals (T: TIOCSTI, TIOCLINUX and all that changes one), file attributes and freezing (X, f, v), btrfs snapshots
 * (0x94), sockets (0x89: FIOSETOWN sends signals). Landlock from ABI 5 keeps what remains to the device nodes. */
static const struct policy_call device_ioctls[] = {
        CALL_IF(ioctl, {.argument = 1,
                        .mask = 0xff00,
                        .values = {0x1200, 'T' << 8, 'X' << 8, 'f' << 8, 'v' << 8, 0x8900, 0x9400},
                        .count = 7}),
};

static const struct policy_call driver_sockets[] = {
        CALL_IF(socket, IS(0, INT, AF_UNIX), IS(1, SOCKET_TYPE, SOCK_SEQPACKET)),
        CALL(bind),
        CALL(listen),
        CALL(accept),
        CALL(accept4),
        CALL(connect),
};

/* Not SOCK_DGRAM: a datagram socket made as a pair can still be connected to, or send to, another. */
static const struct policy_call socket_pairs[] = {
        CALL_IF(socketpair, IS(0, INT, AF_UNIX), IS(1, SOCKET_TYPE, SOCK_STREAM)),
        CALL_IF(socketpair, IS(0, INT, AF_UNIX), IS(1, SOCKET_TYPE, SOCK_SEQPACKET)),
        CALL(sendto),
        CALL(sendmsg),
        CALL(recvfrom),
        CALL(recvmsg),
        CALL(shutdown),
        CALL(getsockname),
        CALL(getpeername),
        CALL(getsockopt),
        CALL(setsockopt),
};

/* Landlock before ABI 3 (Linux 6.2) sees no truncation by a read-only open: refused here for all ABIs. */
static const struct policy_call open_for_landlock[] = {
        CALL_IF(open, IS(1, O_TRUNC, 0)),
        CALL_IF(open, IS(1, O_TRUNC | ACCESS_MODE, O_TRUNC | O_WRONLY)),
        CALL_IF(open, IS(1, O_TRUNC | ACCESS_MODE, O_TRUNC | O_RDWR)),
        CALL_IF(openat, IS(2, O_TRUNC, 0)),
        CALL_IF(openat, IS(2, O_TRUNC | ACCESS_MODE, O_TRUNC | O_WRONLY)),
        CALL_IF(openat, IS(2, O_TRUNC | ACCESS_MODE, O_TRUNC | O_RDWR)),
};

static const struct policy_call open_existing[] = {
        CALL_IF(open, IS(1, O_CREAT | O_TRUNC, 0)),
        CALL_IF(openat, IS(2, O_CREAT | O_TRUNC, 0)),
};

static const struct policy_call open_reading[] = {
        CALL_IF(open, IS(1, ACCESS_MODE | O_CREAT | O_TRUNC, 0)),
        CALL_IF(openat, IS(2, ACCESS_MODE | O_CREAT | O_TRUNC, 0)),
};

static const struct policy_call file_changes[] = {
        CALL(creat),    CALL(mkdir),  CALL(mkdirat),  CALL(rmdir),     CALL(unlink),
        CALL(unlinkat), CALL(rename), CALL(renameat), CALL(renameat2),
};

/* Neither is anything without the others. The path is a pointer, and a filter cannot read strings: with an absolute
 * path the kernel ignores the descriptor, AT_EMPTY_PATH or not. So the pointer must be the very last byte of the
 * address space (sandbox.c), where no string but the empty one fits. */
static const struct policy_call one_exec[] = {
        CALL_IF(execveat, IS_OWN(0, POLICY_EXEC_FD), {.argument = 1, .mask = UINT64_MAX, .source = POLICY_EXEC_PATH},
                IS(4, INT, OP_AT_EMPTY_PATH)),
};

static const struct policy_call no_clone3[] = {CALL(clone3), CALL(openat2)};

static const struct policy_call no_process[] = {
        CALL(fork),
        CALL(vfork),
        CALL(execve),
};

static const struct policy_call no_limits[] = {CALL(setrlimit)};

static const struct policy_call no_attributes[] = {
        CALL(truncate), CALL(link),      CALL(linkat),    CALL(symlink),     CALL(symlinkat),    CALL(mknod),
        CALL(mknodat),  CALL(chmod),     CALL(fchmod),    CALL(fchmodat),    CALL(chown),        CALL(fchown),
        CALL(lchown),   CALL(fchownat),  CALL(utime),     CALL(utimes),      CALL(utimensat),    CALL(futimesat),
        CALL(setxattr), CALL(lsetxattr), CALL(fsetxattr), CALL(removexattr), CALL(lremovexattr), CALL(fremovexattr),
};

static const struct policy_call no_others[] = {
        CALL(ptrace),
        CALL(process_vm_readv),
        CALL(process_vm_writev),
        CALL(process_madvise),
        CALL(kcmp),
        CALL(pidfd_open),
        CALL(pidfd_getfd),
        CALL(pidfd_send_signal),
        CALL(rt_sigqueueinfo),
        CALL(rt_tgsigqueueinfo),
        CALL(setpriority),
        CALL(ioprio_set),
        CALL(sched_setscheduler),
        CALL(sched_setparam),
        CALL(sched_setattr),
        CALL(setpgid),
        CALL(setsid),
};

static const struct policy_call no_privileges[] = {
        CALL(setuid),    CALL(setgid),    CALL(setreuid), CALL(setregid),   CALL(setresuid),
        CALL(setresgid), CALL(setgroups), CALL(setfsuid), CALL(setfsgid),   CALL(capset),
        CALL(unshare),   CALL(setns),     CALL(chroot),   CALL(pivot_root), CALL(seccomp),
};

static const struct policy_call no_system[] = {
        CALL(mount),       CALL(umount2),       CALL(fsopen),        CALL(fsconfig),      CALL(fsmount),
        CALL(fspick),      CALL(open_tree),     CALL(move_mount),    CALL(mount_setattr), CALL(open_by_handle_at),
        CALL(init_module), CALL(finit_module),  CALL(delete_module), CALL(kexec_load),    CALL(kexec_file_load),
        CALL(reboot),      CALL(swapon),        CALL(swapoff),       CALL(acct),          CALL(quotactl),
        CALL(sethostname), CALL(setdomainname), CALL(settimeofday),  CALL(clock_settime), CALL(clock_adjtime),
        CALL(adjtimex),    CALL(syslog),        CALL(vhangup),       CALL(iopl),          CALL(ioperm),
        CALL(modify_ldt),  CALL(fanotify_init), CALL(fanotify_mark),
};

static const struct policy_call no_kernel_surface[] = {
        CALL(bpf),
        CALL(perf_event_open),
        CALL(userfaultfd),
        CALL(io_uring_setup),
        CALL(io_uring_enter),
        CALL(io_uring_register),
        CALL(add_key),
        CALL(request_key),
        CALL(keyctl),
};

static const struct policy_call no_shared_objects[] = {
        CALL(shmget),     CALL(shmat),  CALL(shmctl), CALL(shmdt),  CALL(semget), CALL(semop),   CALL(semctl),
        CALL(semtimedop), CALL(msgget), CALL(msgsnd), CALL(msgrcv), CALL(msgctl), CALL(mq_open), CALL(mq_unlink),
};

/* EPERM is what container runtimes answer here, and libnuma takes it well; ENOSYS is not tried out. */
static const struct policy_call no_memory_policy[] = {
        CALL(get_mempolicy), CALL(set_mempolicy), CALL(mbind), CALL(migrate_pages), CALL(move_pages),
};

#define GROUP(title_, action_, kinds_, landlock_, calls_, reason_)                                                     \
	{                                                                                                              \
		.title = (title_), .reason = (reason_), .action = (action_), .kinds = (kinds_),                        \
		.landlock = (landlock_), .calls = (calls_), .count = COUNT(calls_)                                     \
	}

const struct policy_group sandbox_policy[] = {
        GROUP("memory", POLICY_ALLOW, POLICY_ALL, POLICY_ALWAYS, memory,
              "mapping, locking and protecting its own memory; executable pages too, since every GPU driver compiles"),
        GROUP("threads", POLICY_ALLOW, POLICY_ALL, POLICY_ALWAYS, threads, "threads of its own, without a namespace"),
        GROUP("affinity", POLICY_ALLOW, POLICY_FOREIGN, POLICY_ALWAYS, affinity,
              "any thread but the supervisor: OpenMP binds its threads by their ids, and ends the process where it "
              "cannot"),
        GROUP("own signals", POLICY_ALLOW, POLICY_ALL, POLICY_ALWAYS, signals,
              "handlers and masks; signals to itself only, which abort() needs"),
        GROUP("user probes", POLICY_ALLOW, POLICY_ALL, POLICY_ALWAYS, probes,
              "a probed program dies without them; they answer only to the kernel's own trampoline"),
        GROUP("reading files", POLICY_ALLOW, POLICY_ALL, POLICY_ALWAYS, reading,
              "it may read what its user may read: the libraries, Python's modules, /proc and /sys"),
        GROUP("open descriptors", POLICY_ALLOW, POLICY_ALL, POLICY_ALWAYS, descriptors,
              "reads and writes what is already open, pipes and anonymous memory files; no signal ownership"),
        GROUP("seldom used", POLICY_ALLOW, POLICY_FOREIGN, POLICY_ALWAYS, seldom,
              "more of the above, for libraries we do not know; the native worker on the CPU loads none"),
        GROUP("waiting and timers", POLICY_ALLOW, POLICY_FOREIGN, POLICY_ALWAYS, events,
              "event loops and timers of drivers and of Python"),
        GROUP("clocks", POLICY_ALLOW, POLICY_ALL, POLICY_ALWAYS, clocks, "reads clocks and sleeps"),
        GROUP("questions", POLICY_ALLOW, POLICY_ALL, POLICY_ALWAYS, questions,
              "asks who and where it is and what its limits are; changes none of it"),
        GROUP("process options", POLICY_ALLOW, POLICY_ALL, POLICY_ALWAYS, process_options,
              "names threads and mappings, reads settings; not dumpable, tracer, death signal, capabilities or "
              "filters"),
        GROUP("more process options", POLICY_ALLOW, POLICY_FOREIGN, POLICY_ALWAYS, more_process_options,
              "settings read, and those of its own pages and timers"),
        GROUP("descriptor ioctls", POLICY_ALLOW, POLICY_ALL, POLICY_ALWAYS, descriptor_ioctls,
              "flags of a descriptor, and whether it is a terminal"),
        GROUP("device ioctls", POLICY_ALLOW, POLICY_GPU, POLICY_ALWAYS, device_ioctls,
              "how a GPU driver is spoken to; no block device, terminal, file attribute or socket request"),
        GROUP("driver socket", POLICY_ALLOW, POLICY_GPU, POLICY_ALWAYS, driver_sockets,
              "AF_UNIX SOCK_SEQPACKET only: NVIDIA's own between its threads, and its MPS and persistence daemons"),
        GROUP("socket pairs", POLICY_ALLOW, POLICY_FOREIGN, POLICY_ALWAYS, socket_pairs,
              "connected for life and to itself, so nothing is reached by them; Python's event loops use one"),
        GROUP("one exec", POLICY_ALLOW, POLICY_ALL, POLICY_ALWAYS, one_exec,
              "the start of the worker itself; descriptor limit and path pointer make a second one impossible"),
        GROUP("opening files", POLICY_ALLOW, POLICY_ALL, POLICY_WITH_LANDLOCK, open_for_landlock,
              "Landlock decides what may be opened for writing; truncating by a read-only open is refused"),
        GROUP("opening files without Landlock", POLICY_ALLOW, POLICY_MAKES_FILES, POLICY_WITHOUT_LANDLOCK,
              open_for_landlock,
              "HIP and imports of newer PyTorch make temporary files, and seccomp knows no paths: writes are not "
              "confined"),
        GROUP("opening files, host check without Landlock", POLICY_ALLOW, POLICY_HOST, POLICY_WITHOUT_LANDLOCK,
              open_existing, "nvidia-smi opens device nodes for writing; nothing is created or truncated by opening"),
        GROUP("opening files, native CPU without Landlock", POLICY_ALLOW, POLICY_NATIVE_CPU, POLICY_WITHOUT_LANDLOCK,
              open_reading, "it needs to write nothing, not even /dev/null (which it is given open)"),
        GROUP("directory changes", POLICY_ALLOW, POLICY_FOREIGN, POLICY_WITH_LANDLOCK, file_changes,
              "temporary files; Landlock keeps them below the scratch directory"),
        GROUP("directory changes without Landlock", POLICY_ALLOW, POLICY_MAKES_FILES, POLICY_WITHOUT_LANDLOCK,
              file_changes,
              "HIP's code compiler dereferences null when it cannot make, rename and remove its temporary files, and "
              "import torch fails"),
        GROUP("file attributes and links", POLICY_EPERM, POLICY_ALL, POLICY_ALWAYS, no_attributes,
              "Landlock does not cover modes, owners, times and attributes; nothing needs links, device nodes or "
              "truncation by name"),
        GROUP("calls with a fallback", POLICY_ENOSYS, POLICY_ALL, POLICY_ALWAYS, no_clone3,
              "their arguments are behind a pointer, which a filter cannot read; C libraries fall back to clone and "
              "openat"),
        GROUP("new processes", POLICY_EPERM, POLICY_ALL, POLICY_ALWAYS, no_process,
              "the check starts nothing, and no process outlives it"),
        GROUP("limits", POLICY_EPERM, POLICY_ALL, POLICY_ALWAYS, no_limits,
              "the descriptor limit closes the second exec; no limit of another process either"),
        GROUP("other processes", POLICY_EPERM, POLICY_ALL, POLICY_ALWAYS, no_others,
              "no tracing, reading, signalling or slowing of the supervisor or anything else"),
        GROUP("privileges and namespaces", POLICY_EPERM, POLICY_ALL, POLICY_ALWAYS, no_privileges,
              "the worker stays who and where it is, under the filter it has"),
        GROUP("the system", POLICY_EPERM, POLICY_ALL, POLICY_ALWAYS, no_system,
              "mounts, modules, clocks, names, logs: the check changes nothing, even as root"),
        GROUP("kernel attack surface", POLICY_EPERM, POLICY_ALL, POLICY_ALWAYS, no_kernel_surface,
              "nothing here was seen to use them, and io_uring would walk around the rest of the filter"),
        GROUP("objects that outlive a process", POLICY_EPERM, POLICY_ALL, POLICY_ALWAYS, no_shared_objects,
              "System V and POSIX queues stay behind and are not Landlock's"),
        GROUP("memory policy", POLICY_EPERM, POLICY_ALL, POLICY_ALWAYS, no_memory_policy,
              "container runtimes refuse them too, and libnuma takes that well"),
};

const size_t sandbox_policy_count = COUNT(sandbox_policy);
