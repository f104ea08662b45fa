#include "supervise.h"

#include "cgroup.h"
#include "embed.h"
#include "host.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	HOST_LIMIT_MS = 3000,
	KILL_PATIENCE_MS = 500, /* a killed process that is not gone by then sleeps where no signal reaches it */
	PAUSE_MIN_MS = 1000,    /* a wake-up so late is no busy machine's: a job-control stop, a frozen container */
	NATIVE_PARALLEL_MAX = 16,
	ARGUMENT_BYTES = 6 * PATH_MAX,
};

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#define MFD_EXEC        0x0010U
#endif

/* An argument vector under construction, in caller-owned memory. */
struct arguments {
	int count;
	size_t used;
	char *argv[WORKER_ARGUMENTS_MAX + 1];
	char bytes[ARGUMENT_BYTES];
};

__attribute__((format(printf, 2, 3))) static void add(struct arguments *arguments, const char *format, ...)
{
	va_list args;
	char *start = arguments->bytes + arguments->used;
	size_t room = sizeof arguments->bytes - arguments->used;

	va_start(args, format);
	int length = vsnprintf(start, room, format, args);
	va_end(args);
	if (length < 0 || (size_t)length >= room || arguments->count == WORKER_ARGUMENTS_MAX)
		return;
	arguments->argv[arguments->count++] = start;
	arguments->argv[arguments->count] = NULL;
	arguments->used += (size_t)length + 1;
}

static void add_static(struct arguments *arguments, char *text)
{
	if (arguments->count == WORKER_ARGUMENTS_MAX)
		return;
	arguments->argv[arguments->count++] = text;
	arguments->argv[arguments->count] = NULL;
}

/* True when `assignment` (NAME=VALUE, or NAME alone to unset it) is about the variable `entry` (NAME=VALUE). */
static bool is_about(const char *assignment, const char *entry)
{
	size_t length = strcspn(assignment, "=");

	return strncmp(entry, assignment, length) == 0 && entry[length] == '=';
}

/* A copy of the environment with `changes` made to it. The array is the caller's to free; the strings stay shared.
 * NULL without memory. */
static char **environment_with(char *const envp[], char *const changes[], size_t change_count)
{
	size_t count = 0, used = 0;

	while (envp[count])
		count++;
	char **copy = calloc(count + change_count + 1, sizeof *copy);
	for (size_t i = 0; copy && i < count + change_count; i++) {
		char *entry = i < count ? envp[i] : changes[i - count];
		bool replaced = !strchr(entry, '=');
		for (size_t k = i < count ? 0 : i - count + 1; k < change_count; k++)
			replaced |= is_about(changes[k], entry);
		if (!replaced)
			copy[used++] = entry;
	}
	return copy;
}

/* The native program as a sealed file in memory. The loader maps it whatever vm.memfd_noexec says; flags that an older
 * kernel does not know are left out. Returns the descriptor or a negative errno. */
static int make_payload(void)
{
	static const unsigned int FLAGS[] = {MFD_EXEC, MFD_NOEXEC_SEAL, 0};
	size_t size = embed_kd_probe_size, done = 0;
	int fd = -1;

	for (size_t i = 0; i < sizeof FLAGS / sizeof *FLAGS && fd < 0; i++)
		fd = memfd_create("kd-probe", MFD_CLOEXEC | MFD_ALLOW_SEALING | FLAGS[i]);
	while (fd >= 0 && done < size) {
		ssize_t wrote = write(fd, embed_kd_probe + done, size - done);
		if (wrote <= 0) {
			int number = wrote < 0 ? errno : EIO;
			(void)close(fd);
			return -number;
		}
		done += (size_t)wrote;
	}
	if (fd < 0)
		return -errno;
	(void)fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	return fd;
}

static struct worker_spec spec_for(const struct supervision *s, enum worker_kind kind, char *const *argv,
                                   char *const *envp)
{
	return (struct worker_spec){
	        .kind = kind,
	        .gpu = s->options->device == DEVICE_GPU,
	        .sandbox = s->options->sandbox,
	        .exec_fd = -1,
	        .payload_fd = -1,
	        .argv = argv,
	        .envp = envp,
	        .limit_ms = s->options->timeout_s * INT64_C(1000),
	        .signals = s->signals,
	};
}

static void add_request(struct arguments *arguments, const struct supervision *s, int result_fd)
{
	add(arguments, "result=%d", result_fd);
	add(arguments, "device=%s", options_device_word(s->options->device));
	if (s->options->expect_devices != OPTIONS_EXPECT_OFF)
		add(arguments, "expect=%d", s->options->expect_devices);
}

/* The environment that the workload's interpreter would have, after what an `env` in front of it sets and unsets, with
 * scratch files in private. `tmpdir` keeps the text of TMPDIR=. The array is the caller's to free. */
static char **worker_environment(const struct supervision *s, const struct scratch *scratch,
                                 char tmpdir[SUPERVISE_TMPDIR_MAX], char *const more[])
{
	char *changes[INTERPRETER_SETTINGS_MAX + 8];
	size_t count = 0;

	for (int i = 0; i < s->interpreter->setting_count; i++)
		changes[count++] = s->interpreter->settings[i];
	for (; more && *more; more++)
		changes[count++] = *more;
	(void)snprintf(tmpdir, SUPERVISE_TMPDIR_MAX, "TMPDIR=%s", scratch->path);
	if (scratch->path[0])
		changes[count++] = tmpdir;
	return environment_with(s->envp, changes, count);
}

static void start_python(struct supervision *s)
{
	static struct arguments arguments; /* 24 KB that need not be on the stack */
	const struct interpreter *interpreter = s->interpreter;

	arguments.count = 0;
	arguments.used = 0;
	add_static(&arguments, (char *)interpreter->argv0);
	for (int i = 0; i < interpreter->flag_count; i++)
		add_static(&arguments, interpreter->flags[i]);
	add_static(&arguments, "-B"); /* do not even try __pycache__ */
	add_static(&arguments, "-c");
	add_static(&arguments, (char *)embed_probe_py);
	add_request(&arguments, s, s->slots.result);
	add(&arguments, "go=%d", s->slots.go);
	if (s->options->device_index == OPTIONS_INDEX_ALL)
		add(&arguments, "index=all");
	else
		add(&arguments, "index=%d", s->options->device_index);
	if (interpreter->path0_kind != PATH0_NONE)
		add(&arguments, "%s=%s", interpreter->path0_kind == PATH0_ALWAYS ? "path0_always" : "path0",
		    interpreter->path0);
	scratch_create(&s->python_scratch, s->envp);
	char tmpdir[PATH_MAX + 8];
	char **envp = worker_environment(s, &s->python_scratch, tmpdir, NULL);
	struct worker_spec spec = spec_for(s, WORKER_PYTHON, arguments.argv, envp ? envp : s->envp);
	spec.path = interpreter->path;
	spec.scratch = s->python_scratch.path[0] ? s->python_scratch.path : NULL;
	(void)worker_start(&s->python, &spec, &s->slots);
	free(envp);
}

/* One more native worker, for the device `index` (ignored on the CPU). */
static void start_native(struct supervision *s, int index)
{
	static struct arguments arguments;
	const struct options *options = s->options;
	struct worker *worker = calloc(1, sizeof *worker);

	if (!worker)
		return;
	worker_init(worker, WORKER_NATIVE);
	s->native[s->native_count++] = worker;
	if (s->payload_fd < 0) {
		worker_could_not_start(worker, -s->payload_fd, "memfd_create");
		return;
	}
	arguments.count = 0;
	arguments.used = 0;
	if (s->loader[0])
		add_static(&arguments, (char *)s->loader);
	add(&arguments, "/proc/self/fd/%d", s->slots.payload);
	add_request(&arguments, s, s->slots.result);
	add(&arguments, "execfd=%d", s->slots.exec);
	add(&arguments, "sandbox=%s", options_sandbox_word(options->sandbox));
	/* A file that every process may write by its mode, that the policy does not allow, and that an open leaves as
	 * it is. */
	add(&arguments, "confine=/proc/self/comm");
	if (options->device == DEVICE_GPU) {
		add(&arguments, "backend=%s", s->native_backend);
		add(&arguments, "hipdirs=%s", s->hip_dirs);
		add(&arguments, "index=%d", index);
		add(&arguments, "list=%d", s->native_count == 1);
		add(&arguments, "uuid=%d", options->device_uuid);
	}
	struct worker_spec spec =
	        spec_for(s, WORKER_NATIVE, arguments.argv, s->native_envp ? (char *const *)s->native_envp : s->envp);
	spec.path = s->loader[0] ? s->loader : NULL;
	spec.exec_fd = s->payload_fd;
	spec.payload_fd = s->loader[0] ? s->payload_fd : -1;
	spec.scratch = s->native_scratch.path[0] ? s->native_scratch.path : NULL;
	(void)worker_start(worker, &spec, &s->slots);
}

static void start_first_native(struct supervision *s)
{
	start_native(s, s->options->device_index == OPTIONS_INDEX_ALL ? 0 : s->options->device_index);
}

static void prepare_native(struct supervision *s)
{
	/* What the drivers are to do differently in the check (DESIGN.md 3, 4): no cache on disk. */
	static char *const CHANGES[] = {"CUDA_CACHE_DISABLE=1", "AMD_COMGR_CACHE=0", NULL};
	bool is_gpu = s->options->device == DEVICE_GPU;

	if (is_gpu)
		scratch_create(&s->native_scratch, s->envp);
	s->native_envp = worker_environment(s, &s->native_scratch, s->native_tmpdir, is_gpu ? CHANGES : NULL);
	/* Without a loader the CPU check still runs, started by the kernel; a GPU driver cannot be loaded then. */
	if (!s->loader[0] && s->options->device == DEVICE_GPU)
		return;
	s->payload_fd = make_payload();
	s->native_backend = "auto";
	start_first_native(s);
}

static bool is_done(const struct worker *worker)
{
	return worker->state == WORKER_DONE || worker->state == WORKER_IDLE;
}

static int count_native(const struct supervision *s, bool done)
{
	int count = 0;

	for (int i = 0; i < s->native_count; i++)
		count += is_done(s->native[i]) == done;
	return count;
}

/* Calls `act` for every worker. */
static void each(struct supervision *s, void (*act)(struct worker *, void *), void *context)
{
	act(&s->python, context);
	act(&s->host, context);
	for (int i = 0; i < s->native_count; i++)
		act(s->native[i], context);
}

struct watch {
	struct pollfd fds[3 * (RESULT_DEVICES_MAX + 2)];
	nfds_t count;
	int64_t now_ms, next_ms;
	int64_t paused_ms; /* time in which we were stopped, and the workers, as a rule, with us */
};

static void watch_fd(struct watch *watch, int fd)
{
	if (fd >= 0)
		watch->fds[watch->count++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

static void prepare_watch(struct worker *worker, void *context)
{
	struct watch *watch = context;
	int64_t next_ms = worker->state == WORKER_KILLED ? worker->killed_ms + KILL_PATIENCE_MS : worker->deadline_ms;

	if (is_done(worker))
		return;
	watch_fd(watch, worker->result_fd);
	watch_fd(watch, worker->output_fd);
	watch_fd(watch, worker->status_fd);
	/* Only a wait for the GPU's turn stands the clock still, and only as long as a native worker has the turn. */
	if (!(worker->state == WORKER_RUNNING && worker->result.waiting) && next_ms < watch->next_ms)
		watch->next_ms = next_ms;
}

static void attend(struct worker *worker, void *context)
{
	const struct watch *watch = context;

	if (is_done(worker))
		return;
	worker->deadline_ms += watch->paused_ms;
	worker->started_ms += watch->paused_ms;
	/* What it has said and that it has ended come before the clock. */
	worker_read(worker);
	worker_reap(worker, KILL_PATIENCE_MS);
	if (worker->state == WORKER_RUNNING && !worker->result.waiting && watch->now_ms >= worker->deadline_ms)
		worker_kill(worker, FATE_TIMEOUT);
	if (worker->result.malformed) /* nothing that it says from here on counts */
		worker_kill(worker, FATE_EXITED);
}

static void kill_one(struct worker *worker, void *context)
{
	worker_kill(worker, *(enum fate *)context);
}

static bool has_unkillable(const struct supervision *s)
{
	for (int i = 0; i < s->native_count; i++)
		if (s->native[i]->outcome.unkillable)
			return true;
	return false;
}

/* nvidia-smi, where there is one. It runs beside the others: it makes no context, and its limit is its own. */
static void start_host(struct supervision *s)
{
	char path[PATH_MAX], *argv[8] = {path};

	host_find_nvidia_smi(s->path_variable, path);
	if (!path[0])
		return;
	for (int i = 0; HOST_NVIDIA_SMI_ARGUMENTS[i]; i++)
		argv[i + 1] = HOST_NVIDIA_SMI_ARGUMENTS[i];
	struct worker_spec spec = spec_for(s, WORKER_HOST, argv, s->envp);
	spec.path = path;
	spec.limit_ms = HOST_LIMIT_MS;
	(void)worker_start(&s->host, &spec, &s->slots);
}

/* The package's own backend is the one to ask natively too; on a machine with both, the first search may have ended at
 * the other. */
static bool is_other_backend(const struct worker *native, const char *wanted)
{
	return (strcmp(wanted, "cuda") == 0 || strcmp(wanted, "hip") == 0) &&
	       strcmp(native->result.backend, wanted) != 0;
}

static void free_native(struct supervision *s)
{
	for (int i = 0; i < s->native_count; i++)
		free(s->native[i]);
	s->native_count = 0;
}

/* What the ends of some workers make possible for others. */
static void advance(struct supervision *s)
{
	const char *wanted = s->python.result.torch_backend;
	int visible = s->native_count ? s->native[0]->result.device_count : 0;
	bool more = s->options->device == DEVICE_GPU && s->options->device_index == OPTIONS_INDEX_ALL &&
	            s->native_count && is_done(s->native[0]) && s->native[0]->result.ended;

	while (more && s->native_count < visible && s->native_count < RESULT_DEVICES_MAX &&
	       count_native(s, false) < NATIVE_PARALLEL_MAX) {
		int before = s->native_count;
		start_native(s, s->native_count);
		if (s->native_count == before)
			break;
	}
	if (s->python.state != WORKER_RUNNING || !s->python.result.waiting || count_native(s, false) > 0)
		return;
	if (has_unkillable(s)) { /* it may still hold the card */
		worker_kill(&s->python, FATE_NO_TURN);
	} else if (s->native_count && strcmp(s->native_backend, "auto") == 0 &&
	           is_other_backend(s->native[0], wanted)) {
		s->native_backend = strcmp(wanted, "hip") == 0 ? "hip" : "cuda";
		free_native(s);
		start_first_native(s);
	} else {
		worker_go(&s->python);
	}
}

/* As PID 1 we are the parent of every orphan; our own workers are left to worker_reap(). */
static void reap_orphans(const struct supervision *s)
{
	siginfo_t info;

	while (getpid() == 1) {
		memset(&info, 0, sizeof info);
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
			return;
		bool ours = info.si_pid == s->python.pid || info.si_pid == s->host.pid;
		for (int i = 0; i < s->native_count; i++)
			ours |= info.si_pid == s->native[i]->pid;
		if (ours)
			return;
		(void)waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG);
	}
}

static void loop(struct supervision *s)
{
	static struct watch watch;

	while (!is_done(&s->python) || !is_done(&s->host) || count_native(s, false) > 0) {
		watch.count = 0;
		watch.now_ms = worker_now_ms();
		watch.next_ms = watch.now_ms + 1000;
		each(s, prepare_watch, &watch);
		int64_t wait_ms = watch.next_ms - watch.now_ms;
		(void)signals_poll(watch.fds, watch.count, wait_ms < 0 ? 0 : (int)wait_ms);
		s->interrupted_by = signals_stopped_by();
		if (s->interrupted_by) {
			enum fate fate = FATE_TIMEOUT;
			each(s, kill_one, &fate);
			return;
		}
		watch.paused_ms = worker_now_ms() - watch.now_ms - wait_ms;
		if (watch.paused_ms < PAUSE_MIN_MS)
			watch.paused_ms = 0;
		watch.now_ms = worker_now_ms();
		each(s, attend, &watch);
		reap_orphans(s);
		advance(s);
	}
}

int supervise_run(struct supervision *s, struct error *error)
{
	worker_init(&s->python, WORKER_PYTHON);
	worker_init(&s->host, WORKER_HOST);
	s->payload_fd = -1;
	if (!worker_slots(&s->slots))
		return error_set(error, EMFILE,
		                 "unable to start a worker: the limit of open files is below 64: raise ulimit -n");
	if (s->options->sandbox != SANDBOX_REQUIRE)
		strays_watch(&s->strays);
	long oom_kills = cgroup_oom_kills();
	if (s->torch_rule != TORCH_NOT_ASKED && s->interpreter->found)
		start_python(s);
	prepare_native(s);
	if (s->options->host_check)
		start_host(s);
	loop(s);
	s->killed_for_memory = oom_kills >= 0 && cgroup_oom_kills() > oom_kills;
	for (int i = 0; i < s->native_count; i++)
		s->native_outcomes[i] = s->native[i]->outcome;
	return 0;
}

struct verdict_input supervise_input(const struct supervision *s)
{
	return (struct verdict_input){
	        .device = s->options->device,
	        .torch_rule = s->torch_rule,
	        .device_index = s->options->device_index,
	        .expect_devices = s->options->expect_devices,
	        .has_loader = s->loader[0] != '\0',
	        .interrupted_by = s->interrupted_by,
	        .python = &s->python.outcome,
	        .native = s->native_outcomes,
	        .native_count = s->native_count,
	};
}

static void reap_one(struct worker *worker, void *context)
{
	(void)context;
	worker_reap(worker, KILL_PATIENCE_MS);
}

/* What a worker cannot be woken from may hold us as well, in its directory: then another process removes that, and is
 * not waited for without a bound. */
static void remove_scratch(struct supervision *s)
{
	bool is_safe = !s->python.outcome.unkillable && !has_unkillable(s);
	pid_t pid = is_safe ? -1 : fork();

	if (is_safe || pid == 0) {
		scratch_remove(&s->python_scratch);
		scratch_remove(&s->native_scratch);
	}
	if (pid == 0)
		_exit(0);
	int64_t until_ms = worker_now_ms() + KILL_PATIENCE_MS;
	while (pid > 0 && waitpid(pid, NULL, WNOHANG) == 0 && worker_now_ms() < until_ms)
		(void)signals_poll(NULL, 0, 5);
}

void supervise_finish(struct supervision *s)
{
	int64_t until_ms = worker_now_ms() + KILL_PATIENCE_MS;

	while ((!is_done(&s->python) || !is_done(&s->host) || count_native(s, false) > 0) &&
	       worker_now_ms() < until_ms) {
		each(s, reap_one, NULL);
		if (!is_done(&s->python) || !is_done(&s->host) || count_native(s, false) > 0)
			(void)signals_poll(NULL, 0, 5);
	}
	reap_orphans(s);
	strays_remove(&s->strays, worker_now_ms() + KILL_PATIENCE_MS);
	remove_scratch(s);
	free_native(s);
	free(s->native_envp);
	s->native_envp = NULL;
	if (s->payload_fd >= 0)
		(void)close(s->payload_fd);
}
