/* What one act in a child cannot show: the roads to a second exec (tried by a program that was really exec'ed in the
 * sandbox), the modes, kernels without or with an older Landlock, containers' outer filters, limits, abort(), and the
 * shape of the policy table. Forced conditions are named as forced. */
#include "sandbox.h"
#include "sandbox_policy.h"
#include "sandbox_seccomp.h"
#include "tap.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXEC_FD = 200, ODD = 250, TIMED_RUNS = 20 };

static char folder[64], file[80], scratch[80];

/* The exit status of `run` in a child; 300 + n when signal n ended it. */
static int in_child(int (*run)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		(void)alarm(20);
		_exit(run());
	}
	(void)waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 300 + WTERMSIG(status);
}

static struct sandbox_request request_for(enum sandbox_mode mode, enum worker_kind kind, bool gpu)
{
	return (struct sandbox_request){.mode = mode, .kind = kind, .gpu = gpu, .exec_fd = EXEC_FD, .scratch = scratch};
}

static bool status_says(const char *line)
{
	char text[4096] = "";
	int fd = open("/proc/self/status", O_RDONLY);
	ssize_t length = read(fd, text, sizeof text - 1);

	(void)close(fd);
	return length > 0 && strstr(text, line);
}

/* ---- the one exec ---- */

/* In the program that was exec'ed: 0 when every road is closed, else the number of the open one. */
static int try_roads(const char *last)
{
	char *const none[] = {NULL};
	char *page = (char *)((uintptr_t)last & ~(uintptr_t)4095);
	int fd = open("/bin/true", O_RDONLY);

	if (dup2(fd, EXEC_FD) != -1 || errno != EBADF)
		return 1;
	if (syscall(SYS_dup3, fd, EXEC_FD, O_CLOEXEC) != -1 || errno != EBADF)
		return 2;
	if (syscall(SYS_execveat, EXEC_FD, "/bin/true", none, none, AT_EMPTY_PATH) != -1 || errno != EPERM)
		return 3;
	if (syscall(SYS_execveat, EXEC_FD, last, none, none, AT_EMPTY_PATH) != -1 ||
	    (errno != EFAULT && errno != EBADF))
		return 4;
	void *got = mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (got != page)
		return 5;
	page[4095] = '/'; /* a path has no room to go on */
	if (syscall(SYS_execveat, EXEC_FD, last, none, none, AT_EMPTY_PATH) != -1 || errno != EFAULT)
		return 6;
	page[4095] = '\0'; /* and an empty one names the descriptor, which is gone */
	if (syscall(SYS_execveat, EXEC_FD, last, none, none, AT_EMPTY_PATH) != -1 || errno != EBADF)
		return 7;
	if (syscall(SYS_execveat, fd, last, none, none, AT_EMPTY_PATH) != -1 || errno != EPERM)
		return 8;
	if (syscall(SYS_execveat, EXEC_FD, last, none, none, 0) != -1 || errno != EPERM)
		return 9;
	if (execve("/bin/true", none, none) != -1 || errno != EPERM)
		return 10;
	struct rlimit more = {EXEC_FD + 1, EXEC_FD + 1};
	if (setrlimit(RLIMIT_NOFILE, &more) != -1 || errno != EPERM)
		return 11;
	if (mmap((void *)(uintptr_t)(last + 1), 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
	    MAP_FAILED)
		return 12;
	return 0;
}

static int second_program(const char *road, const char *address)
{
	char *const argv[] = {(char *)(uintptr_t) "true", NULL};

	if (strcmp(road, "closed") == 0)
		return try_roads((const char *)(uintptr_t)strtoull(address, NULL, 16));
	if (strcmp(road, "path") == 0) /* 0 comes from /bin/true alone */
		(void)syscall(SYS_execveat, EXEC_FD, "/bin/true", argv, environ, AT_EMPTY_PATH);
	if (strcmp(road, "dup2") == 0 && dup2(open("/bin/true", O_RDONLY), EXEC_FD) == EXEC_FD)
		(void)syscall(SYS_execveat, EXEC_FD, "", argv, environ, AT_EMPTY_PATH);
	return 77;
}

/* AddressSanitizer's start and end make calls that the sandbox refuses, unless told not to. */
static int open_self(void)
{
	(void)setenv("ASAN_OPTIONS", "disable_coredump=0:detect_leaks=0", 1);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -1 : dup3(fd, EXEC_FD, O_CLOEXEC);
}

static int exec_sealed(void)
{
	struct sandbox_request request = request_for(SANDBOX_REQUIRE, WORKER_NATIVE, true);
	struct sandbox_state state;
	char address[32];
	char *const argv[] = {(char *)(uintptr_t) "self", (char *)(uintptr_t) "closed", address, NULL};

	if (open_self() < 0 || sandbox_enter(&request, &state, NULL) || !state.exec_sealed)
		return ODD;
	(void)snprintf(address, sizeof address, "%lx", (unsigned long)(uintptr_t)state.exec_path);
	return -sandbox_exec(EXEC_FD, &state, argv, environ);
}

/* The filter without the path's address and without the descriptor limit: what the two are for. */
static int exec_unsealed(const char *road)
{
	struct sandbox_seccomp values = {
	        .kind = POLICY_NATIVE_GPU, .own_pid = getpid(), .parent_pid = getppid(), .exec_fd = EXEC_FD};
	struct sandbox_state state = {.exec_path = ""};
	char *const argv[] = {(char *)(uintptr_t) "self", (char *)(uintptr_t)road, (char *)(uintptr_t) "0", NULL};
	const char *step;

	if (open_self() < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || sandbox_seccomp_load(&values, &step))
		return ODD;
	return -sandbox_exec(EXEC_FD, &state, argv, environ);
}

static int exec_by_path(void)
{
	return exec_unsealed("path");
}

static int exec_by_dup2(void)
{
	return exec_unsealed("dup2");
}

static void test_one_exec(void)
{
	is_int(in_child(exec_by_path), 0,
	       "control: without the path's address an absolute path starts a second program");
	is_int(in_child(exec_by_dup2), 0, "control: without the descriptor limit dup2 starts a second program");
	is_int(in_child(exec_sealed), 0, "an exec'ed program finds every road to a second exec closed");
}

/* ---- kernels and containers, forced ---- */

static struct {
	uint32_t number, answer;
	int argument; /* -1: any */
	uint32_t value;
} forced[4];

static void force(void)
{
	for (size_t i = 0; i < 4 && forced[i].number; i++) {
		unsigned skip = forced[i].argument < 0 ? 0 : 2;
		struct sock_filter code[] = {
		        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, forced[i].number, 0, (unsigned char)(skip + 1)),
		        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(16 + 8 * (skip ? forced[i].argument : 0))),
		        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, forced[i].value, 0, 1),
		        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | forced[i].answer),
		        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		};
		if (!skip) {
			code[2] = code[4];
			code[3] = code[5];
		}
		struct sock_fprog filter = {.len = skip ? 6 : 4, .filter = code};
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
			_exit(ODD);
	}
}

static enum sandbox_mode mode;
static struct sandbox_state *seen; /* shared with the children */
static struct error *told;

static int enter_forced(void)
{
	struct sandbox_request request = request_for(mode, WORKER_PYTHON, false);

	force();
	memset(seen, 0xff, sizeof *seen);
	int rc = sandbox_enter(&request, seen, told);
	bool filtered = syscall(SYS_setns, -1, 0) == -1 && errno == EPERM;
	return rc ? -rc : filtered ? 0 : ODD - 1;
}

static void clear_forced(void)
{
	memset(forced, 0, sizeof forced);
	mode = SANDBOX_REQUIRE;
}

static void test_landlock_missing(int newest)
{
	const uint32_t ways[] = {ENOSYS, EOPNOTSUPP, EPERM};

	for (size_t i = 0; i < 3; i++) {
		clear_forced();
		forced[0].number = 444, forced[0].answer = ways[i], forced[0].argument = -1;
		bool entered = in_child(enter_forced) == 0;
		ok(entered && seen->seccomp && seen->no_new_privs && seen->landlock_abi == 0 && !seen->failed,
		   "forced: no Landlock (%s) is no failure, and is told", strerror((int)ways[i]));
	}
	clear_forced();
	if (newest <= 0) {
		ok(true, "forced: landlock_restrict_self refused # SKIP this kernel has none");
		return;
	}
	forced[0].number = 446, forced[0].answer = E2BIG, forced[0].argument = -1;
	bool entered = in_child(enter_forced) == 0;
	ok(entered && seen->seccomp && seen->landlock_abi == 0 && seen->failed && seen->failed_errno == E2BIG,
	   "forced: landlock_restrict_self refused is told, and not fatal");
}

static void test_outer_filters(void)
{
	clear_forced();
	forced[0].number = SYS_seccomp, forced[0].answer = ENOSYS, forced[0].argument = -1;
	ok(in_child(enter_forced) == 0 && seen->seccomp, "forced: no seccomp(2), the filter goes in by prctl");
	forced[0].answer = EPERM;
	ok(in_child(enter_forced) == 0 && seen->seccomp, "forced: seccomp(2) refused by a container, likewise");
	for (uint32_t i = 0; i < 3; i++) /* all operations but SECCOMP_SET_MODE_FILTER (1) */
		forced[i].number = SYS_seccomp, forced[i].answer = EINVAL, forced[i].argument = 0,
		forced[i].value = i ? i + 1 : 0;
	ok(in_child(enter_forced) == 0 && seen->seccomp, "forced: as gVisor, only SECCOMP_SET_MODE_FILTER is known");
}

static void test_modes(void)
{
	clear_forced();
	forced[0].number = SYS_seccomp, forced[0].answer = EPERM, forced[0].argument = -1;
	forced[1].number = SYS_prctl, forced[1].answer = EINVAL, forced[1].argument = 0,
	forced[1].value = PR_SET_SECCOMP;
	memset(told, 0, sizeof *told);
	is_int(in_child(enter_forced), EINVAL, "forced: no seccomp at all fails what is required");
	ok(!seen->seccomp && !seen->exec_sealed && strstr(told->text, "seccomp"), "and is told: %s", told->text);
	mode = SANDBOX_BEST_EFFORT;
	is_int(in_child(enter_forced), ODD - 1, "but not the best effort, which goes on without a filter");
	ok(!seen->seccomp && seen->no_new_privs && seen->failed, "and says so");
	clear_forced();
	mode = SANDBOX_OFF;
	is_int(in_child(enter_forced), ODD - 1, "off puts up nothing");
	ok(!seen->seccomp && !seen->no_new_privs && !seen->landlock_abi && !seen->failed && *seen->exec_path == '\0',
	   "and says so");
}

/* A process that answers the question for Landlock's ABI in the kernel's place. */
static void answer_abi(int listener, int abi)
{
	struct seccomp_notif asked = {0};

	if (syscall(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) == 0) {
		struct seccomp_notif_resp answer = {.id = asked.id, .val = abi};
		(void)syscall(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
	_exit(0);
}

static int clamped_abi;

static void clamp(void)
{
	struct sock_filter code[] = {
	        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 444, 0, 3),
	        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 16 + 8 * 2),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof code / sizeof code[0], .filter = code};

	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	int listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
	if (listener < 0)
		_exit(ODD);
	if (fork() == 0)
		answer_abi(listener, clamped_abi);
	(void)close(listener);
}

static bool denied(int rc)
{
	return rc == -1 && (errno == EACCES || errno == EPERM || errno == EXDEV);
}

static int enter_clamped(void)
{
	struct sandbox_request request = request_for(SANDBOX_REQUIRE, WORKER_PYTHON, true);
	char inside[96], moved[96];

	clamp();
	if (sandbox_enter(&request, seen, told) || seen->landlock_abi != clamped_abi)
		return 1;
	(void)snprintf(inside, sizeof inside, "%s/a", scratch);
	(void)snprintf(moved, sizeof moved, "%s/b", scratch);
	if (!denied(open(file, O_WRONLY)) || !denied(open(file, O_RDONLY | O_TRUNC)) || !denied(truncate(file, 0)) ||
	    !denied(unlink(file)) || !denied(rename(file, inside)))
		return 2;
	int fd = open(inside, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || ftruncate(fd, 10) || rename(inside, moved) || unlink(moved))
		return 3;
	return open("/dev/null", O_WRONLY) < 0 ? 4 : 0;
}

static void test_older_landlock(int newest)
{
	for (clamped_abi = 1; clamped_abi <= newest; clamped_abi++)
		ok(in_child(enter_clamped) == 0,
		   "forced: Landlock clamped to ABI %d confines writes and leaves the scratch folder", clamped_abi);
}

/* ---- devices, in a /dev of its own: nodes of /dev/null by other names ---- */

static const struct {
	const char *path;
	bool gpu; /* a GPU worker may write to it */
} nodes[] = {
        {"/dev/nvidia0", true},
        {"/dev/nvidia10", true},
        {"/dev/nvidiactl", true},
        {"/dev/nvidia-uvm", true},
        {"/dev/nvidia-uvm-tools", true},
        {"/dev/nvidia-caps/nvidia-cap1", true},
        {"/dev/nvhost-ctrl-gpu", true},
        {"/dev/nvgpu/igpu0/as", true},
        {"/dev/kfd", true},
        {"/dev/dri/renderD128", true},
        {"/dev/dxg", true},
        {"/dev/nvidia", false},
        {"/dev/nvidiaX", false},
        {"/dev/nvidiactl2", false},
        {"/dev/nvgpu/flat", false},
        {"/dev/nvgpu/igpu1/.hidden", false},
        {"/dev/dri/card0", false},
        {"/dev/dri/render", false},
        {"/dev/kfd0", false},
        {"/dev/sda", false},
        {"/dev/tty1", false},
};

static void make_node(const char *path)
{
	char folders[64];

	for (const char *slash = strchr(path + 5, '/'); slash; slash = strchr(slash + 1, '/')) {
		(void)snprintf(folders, sizeof folders, "%.*s", (int)(slash - path), path);
		(void)mkdir(folders, 0700);
	}
	(void)mknod(path, S_IFCHR | 0600, makedev(1, 3));
}

static bool node_gpu;

/* The number of nodes that are not as they should be; ODD when it cannot be tried. */
static int open_nodes(void)
{
	struct sandbox_request request = request_for(SANDBOX_REQUIRE, WORKER_NATIVE, node_gpu);
	int wrong = 0;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/dev", "tmpfs", MS_NOSUID, NULL))
		return ODD;
	for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++)
		make_node(nodes[i].path);
	if (close(open("/dev/kfd", O_WRONLY)) || sandbox_enter(&request, seen, told) || seen->landlock_abi == 0)
		return ODD;
	for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
		bool opened = open(nodes[i].path, O_WRONLY) >= 0;
		if (opened == (nodes[i].gpu && node_gpu))
			continue;
		printf("# %s: %s\n", nodes[i].path, opened ? "opened" : strerror(errno));
		wrong++;
	}
	(void)fflush(stdout);
	return wrong;
}

static void test_devices(void)
{
	node_gpu = false;
	int without = in_child(open_nodes);
	node_gpu = true;
	int with = in_child(open_nodes);

	if (without == ODD) {
		ok(true, "devices # SKIP needs root, mount namespaces and Landlock");
		return;
	}
	is_int(with, 0, "a GPU worker may write to the GPUs' devices, and to no other");
	is_int(without, 0, "another worker to none of them");
}

/* ---- the descriptor of /proc/self/task ---- */

static void drop_caches(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);
	if (fd < 0 || write(fd, "2", 1) != 1)
		puts("# unable to drop caches");
	(void)close(fd);
}

static int to_child[2], to_parent[2];

static int name_thread_after_drop(bool keep)
{
	struct sandbox_request request = request_for(SANDBOX_REQUIRE, WORKER_NATIVE, true);
	struct sandbox_state state;
	char path[64], byte;

	if (sandbox_enter(&request, &state, NULL))
		return ODD;
	if (!keep)
		for (int fd = 3; fd < EXEC_FD; fd++)
			if (fd != to_child[0] && fd != to_parent[1])
				(void)close(fd);
	if (write(to_parent[1], "x", 1) != 1 || read(to_child[0], &byte, 1) != 1)
		return ODD;
	(void)snprintf(path, sizeof path, "/proc/self/task/%d/comm", gettid());
	return open(path, O_WRONLY) < 0 ? errno : 0;
}

static int after_drop(bool keep)
{
	char byte;
	int status;

	if (pipe(to_child) || pipe(to_parent))
		return ODD;
	pid_t pid = fork();
	if (pid == 0)
		_exit(name_thread_after_drop(keep));
	if (read(to_parent[0], &byte, 1) == 1)
		drop_caches();
	(void)!write(to_child[1], "x", 1);
	(void)waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void test_task_descriptor(void)
{
	int worst = 0;

	for (int i = 0; i < 5; i++)
		worst = after_drop(true) ? 1 : worst;
	is_int(worst, 0, "threads can be named after the kernel dropped its caches, five times");
	printf("# control: with the descriptor closed the answer is %d (EACCES is 13; it depends on memory)\n",
	       after_drop(false));
}

/* ---- limits, abort ---- */

static int check_limits(void)
{
	struct sandbox_request request = request_for(SANDBOX_REQUIRE, WORKER_NATIVE, false);
	struct sandbox_state state;
	struct rlimit small = {1 << 20, 1 << 20}, core, size, files;

	(void)setrlimit(RLIMIT_FSIZE, &small);
	if (sandbox_enter(&request, &state, NULL) || getrlimit(RLIMIT_CORE, &core) || getrlimit(RLIMIT_FSIZE, &size) ||
	    getrlimit(RLIMIT_NOFILE, &files))
		return ODD;
	if (core.rlim_cur > 1 || core.rlim_max > 1)
		return 1;
	if (size.rlim_cur != 1 << 20)
		return 2;
	if (files.rlim_cur != EXEC_FD || files.rlim_max != EXEC_FD)
		return 3;
	return status_says("NoNewPrivs:\t1") && status_says("Seccomp:\t2") ? 0 : 4;
}

static int call_abort(void)
{
	struct sandbox_request request = request_for(SANDBOX_REQUIRE, WORKER_PYTHON, true);
	struct sandbox_state state;

	if (sandbox_enter(&request, &state, NULL))
		return ODD;
	abort();
}

static void *abort_thread(void *argument)
{
	(void)argument;
	abort();
}

static int call_abort_in_thread(void)
{
	struct sandbox_request request = request_for(SANDBOX_REQUIRE, WORKER_PYTHON, true);
	struct sandbox_state state;
	pthread_t thread;

	if (sandbox_enter(&request, &state, NULL) || pthread_create(&thread, NULL, abort_thread, NULL))
		return ODD;
	(void)pthread_join(thread, NULL);
	return ODD;
}

/* ---- the table ---- */

static bool unconditional(const struct policy_call *call)
{
	return call->tests[0].mask == 0;
}

static bool meet(const struct policy_group *a, const struct policy_group *b)
{
	return (a->kinds & b->kinds) && (a->landlock & b->landlock);
}

/* An unconditional rule would swallow one with tests, whatever the order. */
static bool clash(const struct policy_group *a, size_t i, const struct policy_group *b, size_t j)
{
	return (a != b || i != j) && strcmp(a->calls[i].name, b->calls[j].name) == 0 && meet(a, b) &&
	       (unconditional(&a->calls[i]) || unconditional(&b->calls[j]) || a->action != b->action);
}

static void test_table(void)
{
	int clashes = 0, reasons = 0;

	for (size_t a = 0; a < sandbox_policy_count; a++) {
		const struct policy_group *group = &sandbox_policy[a];
		reasons += group->reason && *group->reason && group->title && group->count;
		for (size_t i = 0; i < group->count; i++)
			for (size_t b = a; b < sandbox_policy_count; b++)
				for (size_t j = 0; j < sandbox_policy[b].count; j++)
					if (clash(group, i, &sandbox_policy[b], j) && ++clashes)
						printf("# %s: %s and %s\n", group->calls[i].name, group->title,
						       sandbox_policy[b].title);
	}
	is_int(clashes, 0, "no call is both tested and untested, or both allowed and refused, for one kind");
	is_int(reasons, (long long)sandbox_policy_count, "every group has a title, a reason and calls");
}

static double now_us(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static enum worker_kind timed_kind;
static bool timed_gpu;

static int time_entry(void)
{
	struct sandbox_request request = request_for(SANDBOX_REQUIRE, timed_kind, timed_gpu);
	double start = now_us();
	int rc = sandbox_enter(&request, seen, NULL);

	seen->failed_errno = (int)(now_us() - start);
	return rc ? ODD : 0;
}

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void report_times(void)
{
	const char *const names[] = {"python", "native", "host"};

	for (int i = 0; i < 5; i++) {
		int times[TIMED_RUNS];
		timed_kind = (enum worker_kind)(i / 2), timed_gpu = i % 2 || i == 4;
		for (int run = 0; run < TIMED_RUNS; run++)
			times[run] = in_child(time_entry) == 0 ? seen->failed_errno : 1 << 30;
		qsort(times, TIMED_RUNS, sizeof times[0], by_value);
		printf("# sandbox_enter, %s %s: %d us at best, %d in the median (of %d)\n", names[timed_kind],
		       timed_gpu ? "gpu" : "cpu", times[0], times[TIMED_RUNS / 2], TIMED_RUNS);
	}
}

static bool set_up(void)
{
	seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	told = (struct error *)(void *)((char *)seen + 1024);
	strcpy(folder, "/tmp/kd-sandbox.XXXXXX");
	if (!mkdtemp(folder))
		return false;
	(void)snprintf(file, sizeof file, "%s/file", folder);
	(void)snprintf(scratch, sizeof scratch, "%s/scratch", folder);
	int fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	return fd >= 0 && close(fd) == 0 && mkdir(scratch, 0700) == 0;
}

int main(int argc, char *argv[])
{
	int newest = (int)syscall(444, NULL, (size_t)0, 1U);

	if (argc == 3)
		return second_program(argv[1], argv[2]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!set_up())
		return perror("# unable to make the test folder"), 1;
	test_table();
	test_one_exec();
	test_landlock_missing(newest);
	test_outer_filters();
	test_modes();
	if (newest <= 0)
		ok(true, "older Landlock # SKIP this kernel has none");
	test_older_landlock(newest < 7 ? newest : 7);
	if (newest > 0 && geteuid() == 0)
		test_task_descriptor();
	else
		ok(true, "dropped caches # SKIP needs root and Landlock");
	test_devices();
	is_int(in_child(check_limits), 0,
	       "limits are lowered, never raised; the kernel tells of filter and no_new_privs");
	is_int(in_child(call_abort), 300 + SIGABRT, "abort() ends in SIGABRT");
	/* musl's raise is tkill, which only the first thread may use; its abort() then ends in a fault */
	ok(in_child(call_abort_in_thread) > 300, "and a second thread's abort() ends in a signal too");
	report_times();
	(void)unlink(file);
	(void)rmdir(scratch);
	(void)rmdir(folder);
	return done();
}
