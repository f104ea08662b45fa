/* The sandbox attacks itself. Each act runs in a child of its own, once bare (the control: it must succeed, or fail
 * with an errno that only the kernel's own code behind the call gives) and once under every worker kind, with and
 * without Landlock, as root and as an ordinary user. Needs root; never touches the network or anything but its own
 * folder. */
#include "sandbox.h"
#include "tap.h"

#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXEC_FD = 200, USER = 12345, ODD = 250 /* an exit status that is no errno */ };

static char folder[64]; /* the working directory of every act: out/file, out/dir, scratch/ */
static pid_t supervisor;

/* ---- acts: 0, or the errno ---- */

static int outcome(long rc)
{
	return rc < 0 ? errno : 0;
}

#define RAW(number, ...) outcome(syscall((number), __VA_ARGS__))
#define BAD_POINTER      ((void *)1)
#define HIGH_BIT         (UINT64_C(1) << 32) /* what the kernel drops from an int */

static int reap(long pid)
{
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		(void)waitpid((pid_t)pid, NULL, 0);
	return outcome(pid);
}

static int named_socket(int type, const char *name, size_t length, bool server)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type, 0);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);

	if (fd < 0)
		return -1;
	memcpy(address.sun_path, name, length);
	if (server && (bind(fd, (struct sockaddr *)&address, size) || listen(fd, 1000)))
		return -1;
	if (!server && connect(fd, (struct sockaddr *)&address, size))
		return -1;
	return fd;
}

static int act_inet(void)
{
	return outcome(socket(AF_INET, SOCK_STREAM, 0));
}
static int act_inet_udp(void)
{
	return outcome(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}
static int act_inet6(void)
{
	return outcome(socket(AF_INET6, SOCK_STREAM, 0));
}
static int act_netlink(void)
{
	return outcome(socket(AF_NETLINK, SOCK_RAW, 0));
}
static int act_unix_stream(void)
{
	return outcome(socket(AF_UNIX, SOCK_STREAM, 0));
}
static int act_unix_stream_high(void)
{
	return RAW(SYS_socket, AF_UNIX | HIGH_BIT, SOCK_STREAM | HIGH_BIT, 0);
}
static int act_unix_dgram(void)
{
	return outcome(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0));
}
static int act_unix_seqpacket(void)
{
	return outcome(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}
static int act_pair_dgram(void)
{
	int p[2];
	return outcome(socketpair(AF_UNIX, SOCK_DGRAM, 0, p));
}
static int act_pair_stream(void)
{
	int p[2];
	return outcome(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p));
}
static int act_engine(void)
{
	return outcome(named_socket(SOCK_STREAM, "srv/engine", 11, false));
}
static int act_engine_abstract(void)
{
	return outcome(named_socket(SOCK_STREAM, "\0kd-engine", 10, false));
}
static int act_packet_path(void)
{
	return outcome(named_socket(SOCK_SEQPACKET, "srv/packet", 11, false));
}
static int act_packet_abstract(void)
{
	return outcome(named_socket(SOCK_SEQPACKET, "\0kd-packet", 10, false));
}
static int act_uvm_socket(void)
{
	int server = named_socket(SOCK_SEQPACKET, "\0cuda-uvmfd-kd", 14, true);
	return server < 0 ? errno : outcome(named_socket(SOCK_SEQPACKET, "\0cuda-uvmfd-kd", 14, false));
}

#ifdef SYS_fork
static int act_fork(void)
{
	return reap(syscall(SYS_fork));
}
static int act_vfork(void)
{
	pid_t pid = vfork(); // NOLINT(clang-analyzer-security.insecureAPI.vfork)
	if (pid == 0)
		_exit(0);
	return pid < 0 ? errno : reap(pid);
}
#endif
static int act_clone(void)
{
	return reap(syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L));
}
static int act_clone_high(void)
{
	return reap(syscall(SYS_clone, (long)(SIGCHLD | ((uint64_t)CLONE_THREAD << 32)), 0L, 0L, 0L, 0L));
}
static int act_clone_namespace(void)
{
	return RAW(SYS_clone, CLONE_THREAD | CLONE_NEWUSER, 0, 0, 0, 0);
}
static int act_clone3(void)
{
	struct clone_args args = {.exit_signal = SIGCHLD};
	return reap(syscall(SYS_clone3, &args, sizeof args));
}
static void *nothing(void *argument)
{
	return argument;
}
static int act_thread(void)
{
	pthread_t thread;
	return pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL) ? EAGAIN : 0;
}
static int act_execve(void)
{
	return RAW(SYS_execve, "/nonexistent", NULL, NULL);
}
static int act_execveat(void)
{
	return RAW(SYS_execveat, AT_FDCWD, "/nonexistent", NULL, NULL, 0);
}
static int act_execveat_path(void)
{
	return RAW(SYS_execveat, EXEC_FD, "/nonexistent", NULL, NULL, AT_EMPTY_PATH);
}
static int act_dup2(void)
{
	return outcome(dup2(0, EXEC_FD));
}
static int act_dupfd(void)
{
	return outcome(fcntl(0, F_DUPFD, EXEC_FD)) == EINVAL ? EBADF : 0;
}

static int act_kill(void)
{
	return outcome(kill(supervisor, 0));
}
static int act_kill_high(void)
{
	return RAW(SYS_kill, (uint64_t)supervisor | HIGH_BIT, 0);
}
static int act_kill_all(void)
{
	return outcome(kill(-1, 0));
}
static int act_kill_group(void)
{
	return outcome(kill(0, 0));
}
static int act_kill_self(void)
{
	return outcome(kill(getpid(), 0));
}
static int act_tgkill(void)
{
	return RAW(SYS_tgkill, supervisor, supervisor, 0);
}
static int act_tgkill_self(void)
{
	return RAW(SYS_tgkill, getpid(), gettid(), 0);
}
static int act_tkill(void)
{
	return RAW(SYS_tkill, supervisor, 0);
}
static int act_sigqueue(void)
{
	return RAW(SYS_rt_sigqueueinfo, supervisor, 0, BAD_POINTER);
}
static int act_pidfd_open(void)
{
	return RAW(SYS_pidfd_open, supervisor, 0);
}
static int act_pidfd_signal(void)
{
	return RAW(SYS_pidfd_send_signal, -1, 0, NULL, 0);
}
static int act_pidfd_getfd(void)
{
	return RAW(SYS_pidfd_getfd, -1, 0, 0);
}
static int act_setown(void)
{
	int p[2];
	return pipe(p) ? ODD : outcome(fcntl(p[0], F_SETOWN, supervisor));
}
static int act_setsig(void)
{
	int p[2];
	return pipe(p) ? ODD : outcome(fcntl(p[0], F_SETSIG, SIGTERM));
}
static int act_fiosetown(void)
{
	return RAW(SYS_ioctl, -1, 0x8901, BAD_POINTER);
}
static int affinity(uint64_t pid)
{
	cpu_set_t set;
	return sched_getaffinity(0, sizeof set, &set) ? ODD : RAW(SYS_sched_setaffinity, pid, sizeof set, &set);
}
static int act_affinity(void)
{
	return affinity((uint64_t)supervisor);
}
static int act_affinity_high(void)
{
	return affinity((uint64_t)supervisor | HIGH_BIT);
}
static int act_affinity_own(void)
{
	return affinity((uint64_t)getpid());
}
static int act_priority(void)
{
	return outcome(setpriority(PRIO_PROCESS, (id_t)supervisor, getpriority(PRIO_PROCESS, (id_t)supervisor)));
}
static int act_scheduler(void)
{
	return RAW(SYS_sched_setscheduler, supervisor, SCHED_OTHER, BAD_POINTER);
}
static int act_ioprio(void)
{
	return RAW(SYS_ioprio_set, 9, 0, 0);
}
static int act_prlimit_other(void)
{
	struct rlimit limit;
	return prlimit(supervisor, RLIMIT_CPU, NULL, &limit) ? ODD
	                                                     : RAW(SYS_prlimit64, supervisor, RLIMIT_CPU, &limit, NULL);
}
static int act_prlimit_own(void)
{
	return RAW(SYS_prlimit64, 0, RLIMIT_NOFILE, BAD_POINTER, NULL);
}
static int act_prlimit_read(void)
{
	struct rlimit limit;
	return outcome(prlimit(0, RLIMIT_NOFILE, NULL, &limit));
}
#ifdef SYS_setrlimit
static int act_setrlimit(void)
{
	return RAW(SYS_setrlimit, RLIMIT_NOFILE, BAD_POINTER);
}
#endif
static int act_ptrace(void)
{
	return RAW(SYS_ptrace, 16, -1, 0, 0);
}
static int act_vm_read(void)
{
	return RAW(SYS_process_vm_readv, supervisor, NULL, 0, NULL, 0, 0);
}
static int act_vm_write(void)
{
	return RAW(SYS_process_vm_writev, supervisor, NULL, 0, NULL, 0, 0);
}
static int act_setpgid(void)
{
	return outcome(setpgid(0, 0));
}
static int act_setsid(void)
{
	return RAW(SYS_setsid, 0) == 0 ? 0 : errno;
}

static int act_setuid(void)
{
	return RAW(SYS_setuid, getuid());
}
static int act_setresuid(void)
{
	return RAW(SYS_setresuid, -1, -1, -1);
}
static int act_setfsuid(void)
{
	errno = 0;
	(void)syscall(SYS_setfsuid, -1);
	return errno;
}
static int act_capset(void)
{
	return RAW(SYS_capset, BAD_POINTER, BAD_POINTER);
}
static int act_unshare(void)
{
	return RAW(SYS_unshare, 0);
}
static int act_setns(void)
{
	return RAW(SYS_setns, -1, 0);
}
static int act_chroot(void)
{
	return RAW(SYS_chroot, BAD_POINTER);
}
static int act_dumpable(void)
{
	return outcome(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
}
static int act_pdeathsig(void)
{
	return outcome(prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0));
}
static int act_subreaper(void)
{
	return outcome(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0));
}
static int act_prctl_filter(void)
{
	return outcome(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, BAD_POINTER, 0, 0));
}
static int act_seccomp(void)
{
	return RAW(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, BAD_POINTER);
}
static int act_name(void)
{
	return outcome(prctl(PR_SET_NAME, "kd", 0, 0, 0));
}
static int act_personality(void)
{
	return RAW(SYS_personality, 0x0040000);
}

static int act_mount(void)
{
	return RAW(SYS_mount, BAD_POINTER, BAD_POINTER, BAD_POINTER, 0, BAD_POINTER);
}
static int act_umount(void)
{
	return RAW(SYS_umount2, BAD_POINTER, 0);
}
static int act_fsopen(void)
{
	return RAW(SYS_fsopen, BAD_POINTER, 0);
}
static int act_open_tree(void)
{
	return RAW(SYS_open_tree, -1, "x", 0);
}
static int act_move_mount(void)
{
	return RAW(SYS_move_mount, -1, "x", -1, "x", 0);
}
static int act_by_handle(void)
{
	return RAW(SYS_open_by_handle_at, -1, BAD_POINTER, 0);
}
static int act_finit_module(void)
{
	return RAW(SYS_finit_module, -1, "", 0);
}
static int act_delete_module(void)
{
	return RAW(SYS_delete_module, BAD_POINTER, 0);
}
static int act_kexec(void)
{
	return RAW(SYS_kexec_load, 0, 17, BAD_POINTER, 0);
}
static int act_reboot(void)
{
	return RAW(SYS_reboot, 0, 0, 0, NULL);
}
static int act_swapon(void)
{
	return RAW(SYS_swapon, BAD_POINTER, 0);
}
static int act_acct(void)
{
	return RAW(SYS_acct, BAD_POINTER);
}
static int act_hostname(void)
{
	return RAW(SYS_sethostname, BAD_POINTER, 1);
}
static int act_settime(void)
{
	return RAW(SYS_clock_settime, CLOCK_REALTIME, BAD_POINTER);
}
static int act_syslog(void)
{
	return RAW(SYS_syslog, 10, NULL, 0);
}
static int act_fanotify(void)
{
	return RAW(SYS_fanotify_init, 0xffffffff, 0);
}
static int act_bpf(void)
{
	return RAW(SYS_bpf, 0xffff, BAD_POINTER, 8);
}
static int act_perf(void)
{
	return RAW(SYS_perf_event_open, BAD_POINTER, 0, -1, -1, 0);
}
static int act_userfaultfd(void)
{
	return RAW(SYS_userfaultfd, 0xffff);
}
static int act_uring(void)
{
	return RAW(SYS_io_uring_setup, 1, BAD_POINTER);
}
static int act_uring_enter(void)
{
	return RAW(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0);
}
static int act_add_key(void)
{
	return RAW(SYS_add_key, BAD_POINTER, BAD_POINTER, NULL, 0, 0);
}
static int act_keyctl(void)
{
	return RAW(SYS_keyctl, 0xffff, 0, 0, 0, 0);
}
static int act_shmget(void)
{
	return RAW(SYS_shmget, 0x6b647066, 1, 0);
}
static int act_msgget(void)
{
	return RAW(SYS_msgget, 0x6b647066, 0);
}
static int act_semget(void)
{
	return RAW(SYS_semget, 0x6b647066, 1, 0);
}
static int act_mq_open(void)
{
	return RAW(SYS_mq_open, "kd-none", O_RDONLY, 0, NULL);
}
static int act_mbind(void)
{
	return RAW(SYS_mbind, 1, 0, 0xffff, NULL, 0, 0);
}
static int act_openat2(void)
{
	return RAW(SYS_openat2, AT_FDCWD, BAD_POINTER, BAD_POINTER, 24);
}

static int act_tiocsti(void)
{
	return RAW(SYS_ioctl, -1, TIOCSTI, "x");
}
static int act_tiocsti_high(void)
{
	return RAW(SYS_ioctl, -1, TIOCSTI | HIGH_BIT, "x");
}
static int act_tioclinux(void)
{
	return RAW(SYS_ioctl, -1, TIOCLINUX, "x");
}
static int act_tiocsctty(void)
{
	return RAW(SYS_ioctl, -1, TIOCSCTTY, 0);
}
static int act_setflags(void)
{
	return RAW(SYS_ioctl, -1, 0x40086602, BAD_POINTER);
}
static int act_blk(void)
{
	return RAW(SYS_ioctl, -1, 0x125f, 0);
}
static int act_isatty(void)
{
	return RAW(SYS_ioctl, -1, TCGETS, BAD_POINTER);
}
static int act_nvidia_ioctl(void)
{
	return RAW(SYS_ioctl, -1, 0xc00846d6, BAD_POINTER);
}
static int act_uvm_ioctl(void)
{
	return RAW(SYS_ioctl, -1, 0x30000001, BAD_POINTER);
}
static int act_kfd_ioctl(void)
{
	return RAW(SYS_ioctl, -1, 0x80084b01, BAD_POINTER);
}
static int act_drm_ioctl(void)
{
	return RAW(SYS_ioctl, -1, 0xc0406400, BAD_POINTER);
}

static int open_close(const char *path, int flags)
{
	return outcome(open(path, flags, 0600));
}
static int act_create(void)
{
	return open_close("out/new", O_WRONLY | O_CREAT | O_EXCL);
}
static int act_tmpfile(void)
{
	return open_close("out", O_TMPFILE | O_RDWR);
}
static int act_overwrite(void)
{
	return open_close("out/file", O_WRONLY);
}
static int act_append(void)
{
	return open_close("out/file", O_RDWR | O_APPEND);
}
static int act_open_truncate(void)
{
	return open_close("out/file", O_WRONLY | O_TRUNC);
}
static int act_read_truncate(void)
{
	return open_close("out/file", O_RDONLY | O_TRUNC);
}
static int act_odd_truncate(void)
{
	return open_close("out/file", 3 | O_TRUNC);
}
static int act_read(void)
{
	return open_close("out/file", O_RDONLY);
}
static int act_truncate(void)
{
	return outcome(truncate("out/file", 0));
}
static int act_mkdir(void)
{
	return outcome(mkdir("out/new", 0700));
}
static int act_rmdir(void)
{
	return outcome(rmdir("out/dir"));
}
static int act_unlink(void)
{
	return outcome(unlink("out/file"));
}
static int act_rename(void)
{
	return outcome(rename("out/file", "out/moved"));
}
static int act_rename_in(void)
{
	return outcome(rename("out/file", "scratch/moved"));
}
static int act_exchange(void)
{
	if (open_close("scratch/made", O_WRONLY | O_CREAT))
		return EPERM; /* native CPU, and host without Landlock, get no further */
	return RAW(SYS_renameat2, AT_FDCWD, "out/file", AT_FDCWD, "scratch/made", 2);
}
static int act_link_in(void)
{
	return outcome(link("out/file", "scratch/linked"));
}
static int act_symlink(void)
{
	return outcome(symlink("x", "out/new"));
}
static int act_mknod(void)
{
	return outcome(mknod("out/new", S_IFIFO | 0600, 0));
}
static int act_mknod_device(void)
{
	return outcome(mknod("scratch/null", S_IFCHR | 0600, makedev(1, 3)));
}
static int act_chmod(void)
{
	return outcome(chmod("out/file", 0666));
}
static int act_fchmod(void)
{
	return outcome(fchmod(-1, 0));
}
static int act_chown(void)
{
	return outcome(chown("out/file", (uid_t)-1, (gid_t)-1));
}
static int act_utimes(void)
{
	return RAW(SYS_utimensat, AT_FDCWD, "out/file", NULL, 0);
}
static int act_setxattr(void)
{
	return RAW(SYS_setxattr, "out/file", BAD_POINTER, NULL, 0, 0);
}
static int act_proc_comm(void)
{
	return open_close("/proc/self/comm", O_WRONLY);
}
static int act_parent_comm(void)
{
	char path[64];
	(void)snprintf(path, sizeof path, "/proc/%d/task/%d/comm", supervisor, supervisor);
	return open_close(path, O_WRONLY);
}
static int act_parent_mem(void)
{
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/%d/mem", supervisor);
	return open_close(path, O_RDWR);
}

/* Root needs CAP_PERFMON for it where ptrace is denied (Linux 5.8), which is dropped. */
static int act_parent_environ(void)
{
	char path[64], byte;

	(void)snprintf(path, sizeof path, "/proc/%d/environ", supervisor);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? errno : outcome(read(fd, &byte, 1));
}

static int act_task_comm(void)
{
	char path[64];
	(void)snprintf(path, sizeof path, "/proc/self/task/%d/comm", gettid());
	int fd = open(path, O_WRONLY | O_TRUNC);
	return fd < 0 ? errno : outcome(write(fd, "kd", 2));
}
static int act_dev_null(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	return fd < 0 ? errno : outcome(write(fd, "x", 1));
}
static int act_dev_shm(void)
{
	int rc = open_close("/dev/shm/kd-preflight-test", O_RDWR | O_CREAT);
	if (rc == 0)
		(void)unlink("/dev/shm/kd-preflight-test");
	return rc;
}
/* What comgr and tempfile do. */
static int act_scratch(void)
{
	int fd = open("scratch/a", O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || write(fd, "abc", 3) != 3 || ftruncate(fd, 1) || mkdir("scratch/d", 0700) ||
	    rename("scratch/a", "scratch/d/b") || unlink("scratch/d/b") || rmdir("scratch/d"))
		return errno;
	return 0;
}
static int act_memfd(void)
{
	int fd = memfd_create("kd", MFD_ALLOW_SEALING);
	return fd < 0 || ftruncate(fd, 1 << 20) || fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) ? errno : 0;
}
static int act_jit(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return page == MAP_FAILED ? errno : outcome(mprotect(page, 4096, PROT_READ | PROT_EXEC));
}
static int act_unknown(void)
{
	return RAW(511, 0);
}

#ifdef __x86_64__
static int act_x32(void)
{
	return RAW(0x40000000 + SYS_getpid, 0);
}
static int act_int80(void)
{
	long rc = 20; /* getpid of i386 */
	__asm__ volatile("int $0x80" : "+a"(rc) : : "memory", "r8", "r9", "r10", "r11");
	return rc < 0 ? (int)-rc : 0;
}
#endif

/* ---- what is expected ---- */

enum expectation {
	SAME,     /* allowed: as without the sandbox */
	REFUSED,  /* EPERM */
	ENOSYS_,  /* ENOSYS */
	LIMIT,    /* EBADF, from the descriptor limit */
	GPU,      /* SAME for GPU kinds, else REFUSED */
	PAIR,     /* SAME but for native CPU */
	SCOPED,   /* for GPU kinds EPERM by Landlock (ABI 6) and SAME without; else REFUSED */
	CREATES,  /* a write outside: EACCES, EPERM or EXDEV; without Landlock SAME for those that may make files */
	WRITES,   /* likewise, and without Landlock SAME for the host check too: all but native CPU */
	SCRATCH,  /* SAME for those that may make files, and with Landlock but for native CPU */
	DEVICE,   /* SAME but for native CPU without Landlock */
	OWN_TASK, /* SAME for GPU kinds with Landlock; EACCES for the others; without Landlock for those that may make
	             files */
	TRACES, /* denied with Landlock; without, a user may what ptrace(2) lets it, and root has lost the privilege */
};

enum { ANY = -1, ROOT = 1 }; /* control: any answer but EPERM and ENOSYS; the act means something as root only */

struct act {
	const char *name;
	int (*run)(void);
	int control;
	enum expectation expect;
	int root_only;
};

#define ACT(function, control, expect)                                                                                 \
	{                                                                                                              \
#function, act_##function, control, expect, 0                                                          \
	}
#define ROOT_ACT(function, control, expect)                                                                            \
	{                                                                                                              \
#function, act_##function, control, expect, ROOT                                                       \
	}

static const struct act acts[] = {
        ACT(inet, 0, REFUSED),
        ACT(inet_udp, 0, REFUSED),
        ACT(inet6, ANY, REFUSED),
        ACT(netlink, 0, REFUSED),
        ACT(unix_stream, 0, REFUSED),
        ACT(unix_stream_high, 0, REFUSED),
        ACT(unix_dgram, 0, REFUSED),
        ACT(unix_seqpacket, 0, GPU),
        ACT(pair_dgram, 0, REFUSED),
        ACT(pair_stream, 0, PAIR),
        ACT(engine, 0, REFUSED),
        ACT(engine_abstract, 0, REFUSED),
        ACT(packet_path, 0, GPU),
        ACT(packet_abstract, 0, SCOPED),
        ACT(uvm_socket, 0, GPU),
#ifdef SYS_fork
        ACT(fork, 0, REFUSED),
        ACT(vfork, 0, REFUSED),
#endif
        ACT(clone, 0, REFUSED),
        ACT(clone_high, 0, REFUSED),
        ACT(clone_namespace, EINVAL, REFUSED),
        ACT(clone3, 0, ENOSYS_),
        ACT(thread, 0, SAME),
        ACT(execve, ENOENT, REFUSED),
        ACT(execveat, ENOENT, REFUSED),
        ACT(execveat_path, ENOENT, REFUSED),
        ACT(dup2, 0, LIMIT),
        ACT(dupfd, 0, LIMIT),
        ACT(kill, 0, REFUSED),
        ACT(kill_high, 0, REFUSED),
        ACT(kill_all, 0, REFUSED),
        ACT(kill_group, 0, REFUSED),
        ACT(kill_self, 0, SAME),
        ACT(tgkill, 0, REFUSED),
        ACT(tgkill_self, 0, SAME),
        ACT(tkill, 0, REFUSED),
        ACT(sigqueue, EFAULT, REFUSED),
        ACT(pidfd_open, 0, REFUSED),
        ACT(pidfd_signal, EBADF, REFUSED),
        ACT(pidfd_getfd, EBADF, REFUSED),
        ACT(setown, 0, REFUSED),
        ACT(setsig, 0, REFUSED),
        ACT(fiosetown, EBADF, REFUSED),
        ACT(affinity, 0, REFUSED),
        ACT(affinity_high, 0, REFUSED),
        ACT(affinity_own, 0, PAIR),
        ACT(priority, 0, REFUSED),
        ACT(scheduler, EFAULT, REFUSED),
        ACT(ioprio, EINVAL, REFUSED),
        ACT(prlimit_other, 0, REFUSED),
        ACT(prlimit_own, EFAULT, REFUSED),
        ACT(prlimit_read, 0, SAME),
#ifdef SYS_setrlimit
        ACT(setrlimit, EFAULT, REFUSED),
#endif
        ACT(ptrace, ESRCH, REFUSED),
        ACT(vm_read, 0, REFUSED),
        ACT(vm_write, 0, REFUSED),
        ACT(setpgid, 0, REFUSED),
        ACT(setsid, 0, REFUSED),
        ACT(setuid, 0, REFUSED),
        ACT(setresuid, 0, REFUSED),
        ACT(setfsuid, 0, REFUSED),
        ACT(capset, EFAULT, REFUSED),
        ACT(unshare, 0, REFUSED),
        ACT(setns, EBADF, REFUSED),
        ACT(chroot, EFAULT, REFUSED),
        ACT(dumpable, 0, REFUSED),
        ACT(pdeathsig, 0, REFUSED),
        ACT(subreaper, 0, REFUSED),
        ACT(prctl_filter, EFAULT, REFUSED),
        ACT(seccomp, EFAULT, REFUSED),
        ACT(name, 0, SAME),
        ACT(personality, 0, REFUSED),
        ROOT_ACT(mount, EFAULT, REFUSED),
        ROOT_ACT(umount, EFAULT, REFUSED),
        ROOT_ACT(fsopen, EFAULT, REFUSED),
        ACT(open_tree, EBADF, REFUSED),
        ROOT_ACT(move_mount, EBADF, REFUSED),
        ROOT_ACT(by_handle, ANY, REFUSED),
        ROOT_ACT(finit_module, ANY, REFUSED),
        ROOT_ACT(delete_module, ANY, REFUSED),
        ROOT_ACT(kexec, ANY, REFUSED),
        ROOT_ACT(reboot, EINVAL, REFUSED),
        ROOT_ACT(swapon, ANY, REFUSED),
        ROOT_ACT(acct, ANY, REFUSED),
        ROOT_ACT(hostname, EFAULT, REFUSED),
        ROOT_ACT(settime, EFAULT, REFUSED),
        ROOT_ACT(syslog, 0, REFUSED),
        ROOT_ACT(fanotify, ANY, REFUSED),
        ROOT_ACT(bpf, ANY, REFUSED),
        ACT(perf, EFAULT, REFUSED),
        ROOT_ACT(userfaultfd, EINVAL, REFUSED),
        ACT(uring, EFAULT, REFUSED),
        ACT(uring_enter, EBADF, REFUSED),
        ACT(add_key, EFAULT, REFUSED),
        ACT(keyctl, EOPNOTSUPP, REFUSED),
        ACT(shmget, ENOENT, REFUSED),
        ACT(msgget, ENOENT, REFUSED),
        ACT(semget, ENOENT, REFUSED),
        ACT(mq_open, ENOENT, REFUSED),
        ACT(mbind, EINVAL, REFUSED),
        ACT(openat2, EFAULT, ENOSYS_),
        ACT(tiocsti, EBADF, REFUSED),
        ACT(tiocsti_high, EBADF, REFUSED),
        ACT(tioclinux, EBADF, REFUSED),
        ACT(tiocsctty, EBADF, REFUSED),
        ACT(setflags, EBADF, REFUSED),
        ACT(blk, EBADF, REFUSED),
        ACT(isatty, EBADF, SAME),
        ACT(nvidia_ioctl, EBADF, GPU),
        ACT(uvm_ioctl, EBADF, GPU),
        ACT(kfd_ioctl, EBADF, GPU),
        ACT(drm_ioctl, EBADF, GPU),
        ACT(create, 0, CREATES),
        ACT(tmpfile, 0, WRITES),
        ACT(overwrite, 0, WRITES),
        ACT(append, 0, WRITES),
        ACT(open_truncate, 0, CREATES),
        ACT(read_truncate, 0, REFUSED),
        ACT(odd_truncate, 0, REFUSED),
        ACT(read, 0, SAME),
        ACT(truncate, 0, REFUSED),
        ACT(mkdir, 0, CREATES),
        ACT(rmdir, 0, CREATES),
        ACT(unlink, 0, CREATES),
        ACT(rename, 0, CREATES),
        ACT(rename_in, 0, CREATES),
        ACT(exchange, 0, CREATES),
        ACT(link_in, 0, REFUSED),
        ACT(symlink, 0, REFUSED),
        ACT(mknod, 0, REFUSED),
        ROOT_ACT(mknod_device, 0, REFUSED),
        ACT(chmod, 0, REFUSED),
        ACT(fchmod, EBADF, REFUSED),
        ACT(chown, 0, REFUSED),
        ACT(utimes, 0, REFUSED),
        ACT(setxattr, EFAULT, REFUSED),
        ACT(proc_comm, 0, WRITES),
        ACT(parent_comm, 0, WRITES),
        ACT(parent_mem, ANY, TRACES),
        ACT(parent_environ, 0, TRACES),
        ACT(task_comm, 0, OWN_TASK),
        ACT(dev_null, 0, DEVICE),
        ACT(dev_shm, 0, CREATES),
        ACT(scratch, 0, SCRATCH),
        ACT(memfd, 0, SAME),
        ACT(jit, 0, SAME),
        ACT(unknown, ENOSYS, SAME),
#ifdef __x86_64__
        ACT(x32, ANY, REFUSED),
        ACT(int80, ANY, REFUSED),
#endif
};

struct config {
	const char *name;
	enum worker_kind kind;
	bool gpu;
	bool makes_files; /* needs temporary files, and so is not confined without Landlock (told in SECURITY.md) */
};

static const struct config configs[] = {
        {"native cpu", WORKER_NATIVE, false, false}, {"native gpu", WORKER_NATIVE, true, true},
        {"python cpu", WORKER_PYTHON, false, true},  {"python gpu", WORKER_PYTHON, true, true},
        {"host", WORKER_HOST, true, false},
};

static int landlock_abi; /* of this kernel; where it has none, one half of each act cannot be tried */

static bool as_expected(enum expectation expect, const struct config *config, bool landlock, int control, int got)
{
	bool native_cpu = config->kind == WORKER_NATIVE && !config->gpu;
	bool outside = got == EACCES || got == EPERM || got == EXDEV;

	switch (expect) {
	case SAME:
		return got == control;
	case REFUSED:
		return got == EPERM;
	case ENOSYS_:
		return got == ENOSYS;
	case LIMIT:
		return got == EBADF;
	case GPU:
		return got == (config->gpu ? control : EPERM);
	case PAIR:
		return got == (native_cpu ? EPERM : control);
	case SCOPED:
		return got == (config->gpu && (!landlock || landlock_abi < 6) ? control : EPERM);
	case CREATES:
		return !landlock && config->makes_files ? got == control : outside;
	case WRITES:
		return !landlock && !native_cpu ? got == control : outside;
	case SCRATCH:
		return got == (config->makes_files || (landlock && !native_cpu) ? control : EPERM);
	case OWN_TASK:
		if (landlock)
			return got == (config->gpu ? control : EACCES);
		return got == (config->makes_files ? control : EPERM);
	case TRACES:
		return outside || (!landlock && got == control);
	case DEVICE:
		return got == (landlock || !native_cpu ? control : EPERM);
	}
	return false;
}

/* ---- running them ---- */

static int forget(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)status, (void)type;
	return walk->level ? remove(path) : 0;
}

static void lay_out(void)
{
	(void)nftw("out", forget, 8, FTW_DEPTH | FTW_PHYS);
	(void)nftw("scratch", forget, 8, FTW_DEPTH | FTW_PHYS);
	(void)mkdir("out/dir", 0777);
	int fd = open("out/file", O_CREAT | O_WRONLY, 0666);
	if (fd < 0 || write(fd, "data", 4) != 4 || fchown(fd, USER, USER) || chown("out/dir", USER, USER))
		perror("# lay_out");
	(void)close(fd);
}

static void restrict_calls(uint32_t first, uint32_t last, uint32_t answer)
{
	struct sock_filter code[] = {
	        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),           BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, first, 0, 2),
	        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, last, 1, 0), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | answer),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof code / sizeof code[0], .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		_exit(ODD);
}

static int enter(const struct config *config, bool landlock, struct sandbox_state *state)
{
	struct sandbox_request request = {.mode = SANDBOX_REQUIRE,
	                                  .kind = config->kind,
	                                  .gpu = config->gpu,
	                                  .exec_fd = EXEC_FD,
	                                  .scratch = "scratch"};
	struct error error;

	if (!landlock)
		restrict_calls(444, 444, ENOSYS);
	int rc = sandbox_enter(&request, state, &error);
	if (rc)
		fprintf(stderr, "# %s\n", error.text);
	return rc;
}

/* The errno that `run` gives in a child, or ODD. */
static int in_child(int (*run)(void), const struct config *config, bool landlock)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct sandbox_state state;
		(void)alarm(20);
		if ((config && enter(config, landlock, &state)) || (config && landlock != (state.landlock_abi > 0)))
			_exit(ODD);
		_exit(run());
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : ODD;
}

static bool control_holds(const struct act *act, int got)
{
	return act->control == ANY ? got != EPERM && got != ENOSYS && got != ODD : got == act->control;
}

static int skipped;

static void test_act(const struct act *act, uid_t uid)
{
	bool all = true;

	if (uid && act->root_only)
		return;
	lay_out();
	int control = in_child(act->run, NULL, false);
	if (act->control == ANY && !control_holds(act, control)) {
		skipped++;
		ok(true, "%s as uid %u # SKIP this kernel answers %s without a sandbox too", act->name, uid,
		   strerror(control));
		return;
	}
	ok(control_holds(act, control), "control: %s as uid %u gives %s bare", act->name, uid, strerror(control));
	for (size_t i = 0; i < 2 * sizeof configs / sizeof configs[0]; i++) {
		const struct config *config = &configs[i / 2];
		if (i % 2 && landlock_abi <= 0)
			continue;
		lay_out();
		int got = in_child(act->run, config, i % 2);
		if (as_expected(act->expect, config, i % 2, control, got))
			continue;
		all = false;
		printf("# %s, %s Landlock: %d %s\n", config->name, i % 2 ? "with" : "without", got, strerror(got));
	}
	ok(all, "%s as uid %u: as the policy says, in all kinds%s", act->name, uid,
	   landlock_abi > 0 ? "" : " (without Landlock, which this kernel has not)");
}

static int serve(int type, const char *name, size_t length)
{
	int fd = named_socket(type, name, length, true);
	if (fd < 0)
		perror("# serve");
	return fd;
}

static void test_acts(uid_t uid)
{
	supervisor = getpid();
	for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++)
		test_act(&acts[i], uid);
	printf("# %d acts that this kernel refuses without a sandbox too\n", skipped);
}

/* A supervisor of that user, since the controls against it need one; it counts for us. */
static void test_acts_as_user(void)
{
	int *counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = fork();

	if (pid == 0) {
		if (setgroups(0, NULL) || setresgid(USER, USER, USER) || setresuid(USER, USER, USER) ||
		    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))
			_exit(ODD);
		test_acts(USER);
		counts[0] = tap_count;
		counts[1] = tap_failed;
		exit(0);
	}
	int status;
	bool ended = waitpid(pid, &status, 0) == pid && status == 0;
	tap_count = counts[0];
	tap_failed = counts[1];
	ok(ended, "all acts were tried as an ordinary user");
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (geteuid() != 0)
		return puts("1..0 # SKIP needs root, for controls that only root reaches"), 0;
	strcpy(folder, "/tmp/kd-sandbox.XXXXXX");
	if (!mkdtemp(folder) || chmod(folder, 0755) || chdir(folder) || mkdir("out", 0755) || mkdir("scratch", 0755) ||
	    mkdir("srv", 0755) || chown("out", USER, USER) || chown("scratch", USER, USER))
		return perror("# unable to make the test folder"), 1;
	bool serving = serve(SOCK_STREAM, "srv/engine", 11) >= 0 && serve(SOCK_STREAM, "\0kd-engine", 10) >= 0 &&
	               serve(SOCK_SEQPACKET, "srv/packet", 11) >= 0 && serve(SOCK_SEQPACKET, "\0kd-packet", 10) >= 0;
	(void)chmod("srv/engine", 0666);
	(void)chmod("srv/packet", 0666);
	landlock_abi = (int)syscall(444, NULL, (size_t)0, 1U);
	ok(serving, "servers of all kinds are up");
	test_acts(0);
	test_acts_as_user();
	(void)chdir("/");
	(void)nftw(folder, forget, 8, FTW_DEPTH | FTW_PHYS);
	(void)rmdir(folder);
	return done();
}
