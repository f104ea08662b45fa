/* A hostile library: whoever loads it has it try to get out. For tests/54-escapes.bats, which says what each act must
 * come to.
 *
 * Every act really would do what it says, on the files that the test laid out below the folder KD_ESCAPE; only what
 * would harm the machine (mounts, modules, clocks) has a bad pointer or descriptor. Where a process can be forked, as
 * without the sandbox, each act runs in a child and its files are laid out anew; where it cannot, in the very worker.
 * One line an act goes to stderr: "kd-escape NAME ERRNO", OK for a success. Without KD_ESCAPE it does nothing. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAST_DESCRIPTOR = 4096, ODD = 250, KILLED = 251 };

#define BAD_POINTER ((void *)1)
#define HIGH_BIT    (UINT64_C(1) << 32) /* what the kernel drops from an int */
#define TARGET      "/bin/true"

static pid_t supervisor;
static char at_[8][4096]; /* what at() hands out */

/* The path of a file of the test's. */
static const char *at(const char *name)
{
	static unsigned next;
	char *path = at_[next++ % 8];

	(void)snprintf(path, sizeof at_[0], "%s/%s", getenv("KD_ESCAPE"), name);
	return path;
}

static const char *of_supervisor(const char *name)
{
	static char path[64];

	(void)snprintf(path, sizeof path, "/proc/%d/%s", supervisor, name);
	return path;
}

/* 0, or the errno. */
static int got(long rc)
{
	return rc < 0 ? errno : 0;
}
#define RAW(...) got(syscall(__VA_ARGS__))

static int opened(const char *path, int flags)
{
	int fd = open(path, flags, 0600);
	int rc = got(fd);

	if (fd >= 0)
		(void)close(fd);
	return rc;
}

static int reap(long pid)
{
	if (pid == 0)
		_exit(0);
	int rc = got(pid);
	if (pid > 0)
		(void)waitpid((pid_t)pid, NULL, 0);
	return rc;
}

/* ---- sockets ---- */

static int unix_socket(int type, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type, 0);

	if (fd < 0)
		return errno;
	(void)snprintf(address.sun_path, sizeof address.sun_path, "%s", at(name));
	return got(connect(fd, (struct sockaddr *)&address, sizeof address));
}

/* All types of a family but AF_UNIX SOCK_SEQPACKET: EPERM if each gives that, else what the others gave. */
static int family(int number)
{
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM, SOCK_SEQPACKET, 6, SOCK_PACKET};
	int rc = EPERM;

	for (size_t i = 0; i < 2 * sizeof types / sizeof types[0]; i++) {
		if (number == AF_UNIX && types[i / 2] == SOCK_SEQPACKET)
			continue;
		int fd = socket(number, types[i / 2] | (i % 2 ? SOCK_CLOEXEC | SOCK_NONBLOCK : 0), 0);
		if (fd >= 0) {
			(void)close(fd);
			return 0;
		}
		if (errno != EPERM)
			rc = errno;
	}
	return rc;
}

static int act_socket_high(void)
{
	return RAW(SYS_socket, AF_UNIX | HIGH_BIT, SOCK_STREAM | HIGH_BIT, 0);
}
static int act_engine(void)
{
	return unix_socket(SOCK_STREAM, "engine");
}
static int act_engine_dgram(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int p[2];

	(void)snprintf(address.sun_path, sizeof address.sun_path, "%s", at("engine.dgram"));
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, p))
		return errno;
	return got(sendto(p[0], "x", 1, 0, (struct sockaddr *)&address, sizeof address));
}

/* ---- a second program ---- */

static char *const arguments[] = {(char *)TARGET, NULL};
static char *const environment[] = {NULL};

static int act_execve(void)
{
	return RAW(SYS_execve, TARGET, arguments, environment);
}
static int act_execveat(void)
{
	return RAW(SYS_execveat, AT_FDCWD, TARGET, arguments, environment, 0);
}
static int act_fexecve(void)
{
	int fd = open(TARGET, O_RDONLY | O_CLOEXEC);
	return RAW(SYS_execveat, fd, "", arguments, environment, AT_EMPTY_PATH);
}
static int act_memfd_exec(void)
{
	static char text[1 << 20];
	int from = open(TARGET, O_RDONLY | O_CLOEXEC), to = memfd_create("kd", MFD_CLOEXEC);
	ssize_t size = read(from, text, sizeof text);

	if (size <= 0 || write(to, text, (size_t)size) != size)
		return ODD;
	return RAW(SYS_execveat, to, "", arguments, environment, AT_EMPTY_PATH);
}

/* Every number that is free becomes another program and is executed, until no number is left to be had. */
static int dup_road(const char *path, int (*copy)(int, int))
{
	int target = open(TARGET, O_RDONLY | O_CLOEXEC), rc = 0;

	for (int n = 3; n < LAST_DESCRIPTOR; n++) {
		if (fcntl(n, F_GETFD) >= 0)
			continue;
		if (copy(target, n) < 0)
			return errno;
		rc = RAW(SYS_execveat, n, path, arguments, environment, AT_EMPTY_PATH);
		(void)close(n);
		if (rc != EPERM)
			return rc;
	}
	return rc;
}
static int copy_dup2(int from, int to)
{
	return dup2(from, to);
}
static int copy_dup3(int from, int to)
{
	return dup3(from, to, O_CLOEXEC);
}
static int copy_fcntl(int from, int to)
{
	int fd = fcntl(from, F_DUPFD, to);
	if (fd < 0 && errno == EINVAL)
		errno = EBADF; /* how fcntl says that the number is beyond the limit */
	return fd;
}
static int act_road_dup2(void)
{
	return dup_road("", copy_dup2);
}
static int act_road_dup3(void)
{
	return dup_road("", copy_dup3);
}
static int act_road_fcntl(void)
{
	return dup_road("", copy_fcntl);
}
/* A descriptor that comes by SCM_RIGHTS has a number that the kernel chooses: let it choose higher and higher ones. */
static int act_road_scm(void)
{
	int target = open(TARGET, O_RDONLY | O_CLOEXEC), p[2], kept[LAST_DESCRIPTOR], count = 0, rc = EPERM;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, p))
		return ODD;
	while (count < LAST_DESCRIPTOR && rc == EPERM) {
		union {
			char bytes[CMSG_SPACE(sizeof(int))];
			struct cmsghdr head;
		} control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
		char byte = 0;
		struct iovec text = {&byte, 1};
		struct msghdr message = {
		        .msg_iov = &text, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};

		memcpy(CMSG_DATA(&control.head), &target, sizeof target);
		if (sendmsg(p[0], &message, 0) != 1 || recvmsg(p[1], &message, 0) != 1)
			rc = ODD;
		else if (message.msg_controllen < CMSG_LEN(sizeof(int)))
			rc = EBADF; /* no number is left */
		else {
			memcpy(&kept[count], CMSG_DATA(&control.head), sizeof(int));
			rc = RAW(SYS_execveat, kept[count++], "", arguments, environment, AT_EMPTY_PATH);
		}
	}
	while (count > 0)
		(void)close(kept[--count]);
	(void)close(p[0]);
	(void)close(p[1]);
	return rc;
}
/* With the one path that the filter lets through: what is at the last byte of the address space. */
static int act_road_seal(void)
{
	return dup_road((const char *)0x7fffffffefff, copy_dup2);
}
/* An absolute path makes the kernel ignore the descriptor. */
static int act_road_path(void)
{
	int rc = 0;
	for (int n = 0; n < LAST_DESCRIPTOR && (n == 0 || rc == EPERM); n++)
		rc = RAW(SYS_execveat, n, TARGET, arguments, environment, AT_EMPTY_PATH);
	return rc;
}

static int act_posix_spawn(void)
{
	pid_t pid;
	int rc = posix_spawn(&pid, TARGET, NULL, NULL, arguments, environment);
	return rc ? rc : reap(pid);
}
static int act_system(void)
{
	return system("exit 0") ? ECHILD : 0;
}
static int act_popen(void)
{
	FILE *stream = popen("exit 0", "r");
	return stream ? got(pclose(stream)) : errno;
}
static int act_fork(void)
{
	return reap(syscall(SYS_fork));
}
static int act_vfork(void)
{
	pid_t pid = vfork();
	if (pid == 0)
		_exit(0);
	return reap(pid);
}
static int act_clone(void)
{
	return reap(syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L));
}
static int act_clone_high(void)
{
	return reap(syscall(SYS_clone, (long)(SIGCHLD | ((uint64_t)CLONE_THREAD << 32)), 0L, 0L, 0L, 0L));
}
static int act_clone_newuser(void)
{
	return reap(syscall(SYS_clone, (long)(SIGCHLD | CLONE_NEWUSER), 0L, 0L, 0L, 0L));
}
static int act_clone3(void)
{
	struct clone_args args = {.exit_signal = SIGCHLD};
	return reap(syscall(SYS_clone3, &args, sizeof args));
}

/* ---- the supervisor ---- */

static int act_kill(void)
{
	return got(kill(supervisor, 0));
}
static int act_kill_high(void)
{
	return RAW(SYS_kill, (uint64_t)supervisor | HIGH_BIT, 0);
}
static int act_kill_all(void)
{
	return got(kill(-1, 0));
}
static int act_kill_group(void)
{
	return got(kill(0, 0));
}
static int act_tgkill(void)
{
	return RAW(SYS_tgkill, supervisor, supervisor, 0);
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
	return pipe(p) ? ODD : got(fcntl(p[0], F_SETOWN, supervisor));
}
static int act_ptrace_seize(void)
{
	return RAW(SYS_ptrace, PTRACE_SEIZE, supervisor, 0, 0);
}
static int act_ptrace_traceme(void)
{
	return RAW(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0);
}
static int vm(long call)
{
	char byte = 0;
	struct iovec own = {&byte, 1}, other = {BAD_POINTER, 1};
	return RAW(call, supervisor, &own, 1, &other, 1, 0);
}
static int act_vm_readv(void)
{
	return vm(SYS_process_vm_readv);
}
static int act_vm_writev(void)
{
	return vm(SYS_process_vm_writev);
}
static int act_kcmp(void)
{
	return RAW(SYS_kcmp, supervisor, getpid(), 1, 0, 0);
}
static int act_proc_mem(void)
{
	return opened(of_supervisor("mem"), O_RDWR);
}
static int act_proc_mem_read(void)
{
	return opened(of_supervisor("mem"), O_RDONLY);
}
static int act_proc_environ(void)
{
	char byte;
	int fd = open(of_supervisor("environ"), O_RDONLY | O_CLOEXEC);
	return fd < 0 ? errno : got(read(fd, &byte, 1));
}
static int act_proc_fd(void)
{
	char target[16];
	return got(readlink(of_supervisor("fd/2"), target, sizeof target));
}
static int act_proc_comm(void)
{
	return opened(of_supervisor("comm"), O_WRONLY);
}
static int act_proc_oom(void)
{
	return opened(of_supervisor("oom_score_adj"), O_WRONLY);
}
static int act_prlimit(void)
{
	struct rlimit limit = {1024, 1024};
	if (prlimit(supervisor, RLIMIT_NOFILE, NULL, &limit) == 0)
		return got(prlimit(supervisor, RLIMIT_NOFILE, &limit, NULL));
	return errno;
}
static int act_affinity(void)
{
	cpu_set_t set;
	return sched_getaffinity(0, sizeof set, &set) ? ODD : got(sched_setaffinity(supervisor, sizeof set, &set));
}
static int act_setpriority(void)
{
	return got(setpriority(PRIO_PROCESS, (id_t)supervisor, 0));
}
static int act_scheduler(void)
{
	struct sched_param none = {0};
	return got(sched_setscheduler(supervisor, SCHED_OTHER, &none));
}

/* ---- itself ---- */

static int act_setrlimit(void)
{
	struct rlimit limit;
	return getrlimit(RLIMIT_NOFILE, &limit) ? ODD : RAW(SYS_setrlimit, RLIMIT_NOFILE, &limit);
}
static int act_prlimit_own(void)
{
	struct rlimit limit;
	return getrlimit(RLIMIT_NOFILE, &limit) ? ODD : RAW(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, NULL);
}
static int act_dumpable(void)
{
	return got(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
}
static int act_pdeathsig(void)
{
	return got(prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0));
}
static int act_subreaper(void)
{
	return got(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
}
static int act_prctl_filter(void)
{
	return got(prctl(PR_SET_SECCOMP, 2, BAD_POINTER, 0, 0));
}
static int act_seccomp(void)
{
	return RAW(SYS_seccomp, 1, 0, BAD_POINTER);
}
static int act_personality(void)
{
	return RAW(SYS_personality, ADDR_NO_RANDOMIZE);
}
static int act_setuid(void)
{
	return RAW(SYS_setuid, getuid());
}
static int act_setgid(void)
{
	return RAW(SYS_setgid, getgid());
}
static int act_setresuid(void)
{
	return RAW(SYS_setresuid, -1, -1, -1);
}
static int act_setgroups(void)
{
	return RAW(SYS_setgroups, 0, NULL);
}
static int act_capset(void)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];
	return syscall(SYS_capget, &head, data) ? ODD : RAW(SYS_capset, &head, data);
}
static int act_setsid(void)
{
	return got(setsid());
}
static int act_setpgid(void)
{
	return got(setpgid(0, 0));
}
static int act_unshare_user(void)
{
	return got(unshare(CLONE_NEWUSER));
}
static int act_unshare_mount(void)
{
	return got(unshare(CLONE_NEWNS));
}
static int act_unshare_net(void)
{
	return got(unshare(CLONE_NEWNET));
}
static int act_setns(void)
{
	int fd = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? ODD : got(setns(fd, 0));
}
static int act_chroot(void)
{
	return got(chroot("/"));
}

/* ---- the machine ---- */

static int act_mount(void)
{
	return RAW(SYS_mount, BAD_POINTER, BAD_POINTER, BAD_POINTER, 0, BAD_POINTER);
}
static int act_umount(void)
{
	return RAW(SYS_umount2, BAD_POINTER, 0);
}
static int act_pivot_root(void)
{
	return RAW(SYS_pivot_root, BAD_POINTER, BAD_POINTER);
}
static int act_fsopen(void)
{
	return RAW(SYS_fsopen, "tmpfs", 0);
}
static int act_open_tree(void)
{
	return RAW(SYS_open_tree, AT_FDCWD, "/", 1);
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
	return RAW(SYS_fanotify_init, 0, 0);
}
static int act_io_uring(void)
{
	struct io_uring_params params = {0};
	return RAW(SYS_io_uring_setup, 1, &params);
}
static int act_io_uring_enter(void)
{
	return RAW(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0);
}
static int act_bpf(void)
{
	union bpf_attr map = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
	return RAW(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map);
}
static int act_perf(void)
{
	struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE,
	                                .size = sizeof event,
	                                .config = PERF_COUNT_SW_TASK_CLOCK,
	                                .exclude_kernel = 1};
	return RAW(SYS_perf_event_open, &event, 0, -1, -1, 0);
}
static int act_userfaultfd(void)
{
	return RAW(SYS_userfaultfd, O_CLOEXEC);
}
static int act_add_key(void)
{
	return RAW(SYS_add_key, "user", "kd-escape", "x", 1, KEY_SPEC_PROCESS_KEYRING);
}
static int act_request_key(void)
{
	return RAW(SYS_request_key, BAD_POINTER, BAD_POINTER, NULL, 0);
}
static int act_keyctl(void)
{
	return RAW(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 1);
}
static int act_shm(void)
{
	int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
	return id < 0 ? errno : got(shmctl(id, IPC_RMID, NULL));
}
static int act_msg(void)
{
	int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
	return id < 0 ? errno : got(msgctl(id, IPC_RMID, NULL));
}
static int act_sem(void)
{
	int id = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
	return id < 0 ? errno : got(semctl(id, 0, IPC_RMID));
}
static int act_mq(void)
{
	if (RAW(SYS_mq_open, "kd-escape", O_RDWR | O_CREAT, 0600, NULL))
		return errno;
	return RAW(SYS_mq_unlink, "kd-escape");
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
static int act_ptmx(void)
{
	return opened("/dev/ptmx", O_RDWR | O_NOCTTY);
}
#ifdef __x86_64__
static int act_x32(void)
{
	return RAW(0x40000000L + SYS_getpid);
}
static int act_x32_socket(void)
{
	return RAW(0x40000000L + SYS_socket, AF_INET, SOCK_STREAM, 0);
}
static int int80(long call)
{
	__asm__ volatile("int $0x80" : "+a"(call) : "b"(0), "c"(0), "d"(0) : "memory", "r8", "r9", "r10", "r11");
	return call < 0 ? (int)-call : 0;
}
static int act_int80(void)
{
	return int80(20); /* getpid */
}
static int act_int80_execve(void)
{
	return int80(11); /* of a null path */
}
static int act_int80_fork(void)
{
	long pid = 2;
	__asm__ volatile("int $0x80" : "+a"(pid) : : "memory", "r8", "r9", "r10", "r11");
	if (pid < 0)
		errno = (int)-pid, pid = -1;
	return reap(pid);
}
#endif

/* ---- files ---- */

static int act_create(void)
{
	return opened(at("victim/new"), O_WRONLY | O_CREAT | O_EXCL);
}
static int act_creat(void)
{
	return RAW(SYS_creat, at("victim/new"), 0600);
}
static int act_tmpfile(void)
{
	return opened(at("victim"), O_TMPFILE | O_RDWR);
}
static int act_overwrite(void)
{
	return opened(at("victim/file"), O_WRONLY);
}
static int act_append(void)
{
	return opened(at("victim/file"), O_RDWR | O_APPEND);
}
static int act_open_truncate(void)
{
	return opened(at("victim/file"), O_WRONLY | O_TRUNC);
}
static int act_read_truncate(void)
{
	return opened(at("victim/file"), O_RDONLY | O_TRUNC);
}
static int act_odd_truncate(void)
{
	return opened(at("victim/file"), 3 | O_TRUNC);
}
static int act_through_fd(void)
{
	char path[64];
	int fd = open(at("victim/file"), O_RDONLY | O_CLOEXEC);
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int rc = opened(path, O_WRONLY);
	(void)close(fd);
	return rc;
}
static int act_truncate(void)
{
	return got(truncate(at("victim/file"), 0));
}
static int act_rename(void)
{
	return got(rename(at("victim/file"), at("victim/moved")));
}
static int act_rename_over(void)
{
	return got(rename(at("victim/other"), at("victim/file")));
}
static int act_rename_out(void)
{
	char path[4096];
	(void)snprintf(path, sizeof path, "%s/kd-escape", getenv("TMPDIR"));
	return got(rename(at("victim/file"), path));
}
static int act_link(void)
{
	return got(link(at("victim/file"), at("victim/new")));
}
static int act_link_fd(void)
{
	int fd = open(at("victim/file"), O_RDONLY | O_CLOEXEC);
	char path[64];
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int rc = got(linkat(AT_FDCWD, path, AT_FDCWD, at("victim/new"), AT_SYMLINK_FOLLOW));
	(void)close(fd);
	return rc;
}
static int act_symlink(void)
{
	return got(symlink("file", at("victim/new")));
}
static int act_mkdir(void)
{
	return got(mkdir(at("victim/new"), 0700));
}
static int act_rmdir(void)
{
	return got(rmdir(at("victim/dir")));
}
static int act_unlink(void)
{
	return got(unlink(at("victim/file")));
}
static int act_mkfifo(void)
{
	return got(mknod(at("victim/new"), S_IFIFO | 0600, 0));
}
static int act_mknod(void)
{
	return got(mknod(at("victim/new"), S_IFCHR | 0600, makedev(1, 3)));
}
static int act_chmod(void)
{
	return got(chmod(at("victim/file"), 0777));
}
static int act_fchmod(void)
{
	int fd = open(at("victim/file"), O_RDONLY | O_CLOEXEC);
	int rc = got(fchmod(fd, 0777));
	(void)close(fd);
	return rc;
}
static int act_chown(void)
{
	return got(chown(at("victim/file"), getuid(), getgid()));
}
static int act_utimes(void)
{
	return RAW(SYS_utimensat, AT_FDCWD, at("victim/file"), NULL, 0);
}
static int act_setxattr(void)
{
	return RAW(SYS_setxattr, at("victim/file"), BAD_POINTER, NULL, 0, 0);
}
static int act_openat2(void)
{
	uint64_t how[3] = {O_WRONLY, 0, 0};
	return RAW(SYS_openat2, AT_FDCWD, at("victim/file"), how, sizeof how);
}
static int act_dev_shm(void)
{
	int rc = opened("/dev/shm/kd-escape", O_RDWR | O_CREAT);
	if (rc == 0)
		(void)unlink("/dev/shm/kd-escape");
	return rc;
}
static int act_tmp(void)
{
	int rc = opened("/tmp/kd-escape", O_RDWR | O_CREAT);
	if (rc == 0)
		(void)unlink("/tmp/kd-escape");
	return rc;
}
static int act_report(void)
{
	int rc = opened(at("report.json"), O_WRONLY | O_CREAT | O_EXCL);
	if (rc == 0)
		(void)unlink(at("report.json"));
	return rc;
}
static int act_report_link(void)
{
	int rc = got(symlink("victim/file", at("report.json")));
	if (rc == 0)
		(void)unlink(at("report.json"));
	return rc;
}
static int act_termination(void)
{
	return opened(at("termination"), O_WRONLY | O_APPEND);
}
static int act_termination_truncate(void)
{
	return got(truncate(at("termination"), 0));
}
static int act_workload(void)
{
	return opened(at("workload"), O_RDWR);
}
static int act_workload_chmod(void)
{
	return got(chmod(at("workload"), 0755));
}
static int act_workload_move(void)
{
	int rc = got(rename(at("workload"), at("workload.moved")));
	if (rc == 0)
		(void)rename(at("workload.moved"), at("workload"));
	return rc;
}
/* Is any descriptor the one that the starter left open? */
static int act_inherited(void)
{
	struct stat wanted, found;

	if (stat(at("secret"), &wanted))
		return ODD;
	for (int fd = 0; fd < LAST_DESCRIPTOR; fd++) {
		if (fstat(fd, &found) == 0 && found.st_dev == wanted.st_dev && found.st_ino == wanted.st_ino)
			return 0;
	}
	return EBADF;
}

/* ---- what the design leaves (SECURITY.md, "What is left"), and what a worker needs ---- */

static void *nothing(void *argument)
{
	return argument;
}

static int act_may_packet(void)
{
	return unix_socket(SOCK_SEQPACKET, "packet");
}
static int act_may_read(void)
{
	char byte;
	int fd = open(at("secret"), O_RDONLY | O_CLOEXEC);
	int rc = fd < 0 ? errno : got(read(fd, &byte, 1));
	(void)close(fd);
	return rc;
}
static int act_may_flock(void)
{
	int fd = open(at("secret"), O_RDONLY | O_CLOEXEC);
	int rc = got(flock(fd, LOCK_EX | LOCK_NB));
	(void)close(fd);
	return rc;
}
static int act_may_ioctl(void)
{
	int p[2], count;
	return pipe(p) ? ODD : got(ioctl(p[0], FIONREAD, &count));
}
static int act_may_gpu_ioctl(void)
{
	return RAW(SYS_ioctl, -1, 0xc00846d6, BAD_POINTER);
}
static int act_may_pair(void)
{
	int p[2];
	return got(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p));
}
static int act_may_thread(void)
{
	pthread_t thread;
	return pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL) ? EAGAIN : 0;
}
static int act_may_signal_self(void)
{
	return got(kill(getpid(), 0));
}
static int act_may_device(void)
{
	return opened("/dev/null", O_RDWR);
}
static int act_may_name(void)
{
	char path[64];
	(void)snprintf(path, sizeof path, "/proc/self/task/%d/comm", gettid());
	return opened(path, O_WRONLY);
}
static int act_may_jit(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return page == MAP_FAILED ? errno : got(mprotect(page, 4096, PROT_READ | PROT_EXEC));
}
static int act_may_scratch(void)
{
	char path[4096];
	(void)snprintf(path, sizeof path, "%s/kd-escape", getenv("TMPDIR"));
	int rc = opened(path, O_RDWR | O_CREAT);
	return rc ? rc : got(unlink(path));
}

static const struct act {
	const char *name;
	int (*run)(void);
} acts[] = {
#define A(name)                                                                                                        \
	{                                                                                                              \
#name, act_##name                                                                                      \
	}
        A(socket_high),
        A(engine),
        A(engine_dgram),
        A(execve),
        A(execveat),
        A(fexecve),
        A(memfd_exec),
        A(road_dup2),
        A(road_dup3),
        A(road_fcntl),
        A(road_scm),
        A(road_seal),
        A(road_path),
        A(posix_spawn),
        A(system),
        A(popen),
        A(fork),
        A(vfork),
        A(clone),
        A(clone_high),
        A(clone_newuser),
        A(clone3),
        A(kill),
        A(kill_high),
        A(kill_all),
        A(kill_group),
        A(tgkill),
        A(tkill),
        A(sigqueue),
        A(pidfd_open),
        A(pidfd_signal),
        A(pidfd_getfd),
        A(setown),
        A(ptrace_seize),
        A(ptrace_traceme),
        A(vm_readv),
        A(vm_writev),
        A(kcmp),
        A(proc_mem),
        A(proc_mem_read),
        A(proc_environ),
        A(proc_fd),
        A(proc_comm),
        A(proc_oom),
        A(prlimit),
        A(affinity),
        A(setpriority),
        A(scheduler),
        A(setrlimit),
        A(prlimit_own),
        A(dumpable),
        A(pdeathsig),
        A(subreaper),
        A(prctl_filter),
        A(seccomp),
        A(personality),
        A(setuid),
        A(setgid),
        A(setresuid),
        A(setgroups),
        A(capset),
        A(setsid),
        A(setpgid),
        A(unshare_user),
        A(unshare_mount),
        A(unshare_net),
        A(setns),
        A(chroot),
        A(mount),
        A(umount),
        A(pivot_root),
        A(fsopen),
        A(open_tree),
        A(move_mount),
        A(by_handle),
        A(finit_module),
        A(hostname),
        A(settime),
        A(syslog),
        A(fanotify),
        A(io_uring),
        A(io_uring_enter),
        A(bpf),
        A(perf),
        A(userfaultfd),
        A(add_key),
        A(request_key),
        A(keyctl),
        A(shm),
        A(msg),
        A(sem),
        A(mq),
        A(tiocsti),
        A(tiocsti_high),
        A(tioclinux),
        A(tiocsctty),
        A(ptmx),
#ifdef __x86_64__
        A(x32),
        A(x32_socket),
        A(int80),
        A(int80_execve),
        A(int80_fork),
#endif
        A(create),
        A(creat),
        A(tmpfile),
        A(overwrite),
        A(append),
        A(open_truncate),
        A(read_truncate),
        A(odd_truncate),
        A(through_fd),
        A(truncate),
        A(rename),
        A(rename_over),
        A(rename_out),
        A(link),
        A(link_fd),
        A(symlink),
        A(mkdir),
        A(rmdir),
        A(unlink),
        A(mkfifo),
        A(mknod),
        A(chmod),
        A(fchmod),
        A(chown),
        A(utimes),
        A(setxattr),
        A(openat2),
        A(dev_shm),
        A(tmp),
        A(report),
        A(report_link),
        A(termination),
        A(termination_truncate),
        A(workload),
        A(workload_chmod),
        A(workload_move),
        A(inherited),
        A(may_packet),
        A(may_read),
        A(may_flock),
        A(may_ioctl),
        A(may_gpu_ioctl),
        A(may_pair),
        A(may_thread),
        A(may_signal_self),
        A(may_device),
        A(may_name),
        A(may_jit),
        A(may_scratch),
#undef A
};

static void lay_out(void)
{
	(void)unlink(at("victim/new"));
	(void)rmdir(at("victim/new"));
	(void)unlink(at("victim/moved"));
	(void)mkdir(at("victim/dir"), 0755);
	for (int i = 0; i < 2; i++) {
		int fd = open(at(i ? "victim/other" : "victim/file"), O_WRONLY | O_CREAT | O_TRUNC, 0644);
		if (write(fd, "data\n", 5) != 5)
			perror("kd-escape lay_out");
		(void)close(fd);
	}
}

static int run(int (*act)(void), int number)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return act ? act() : family(number);
	if (pid == 0) {
		lay_out();
		(void)alarm(5);
		_exit(act ? act() : family(number));
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : KILLED;
}

static void say(const char *name, int error)
{
	char line[96];
	int length = snprintf(line, sizeof line, "kd-escape %s %s\n", name,
	                      error == 0        ? "OK"
	                      : error == ODD    ? "odd"
	                      : error == KILLED ? "killed"
	                                        : strerrorname_np(error));
	if (write(STDERR_FILENO, line, (size_t)length) < 0)
		return;
}

__attribute__((constructor)) static void escape(void)
{
	char name[16];

	if (!getenv("KD_ESCAPE") || !getenv("TMPDIR"))
		return;
	supervisor = getppid();
	for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++)
		say(acts[i].name, run(acts[i].run, 0));
	for (int i = 0; i <= 45; i++) {
		(void)snprintf(name, sizeof name, "family_%d", i);
		say(name, run(NULL, i));
	}
	say("end", 0);
}
