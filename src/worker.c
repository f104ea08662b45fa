#include "worker.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436 /* Linux 5.9, the same number on every architecture */
#endif

enum { LIMIT_MIN = 64, LIMIT_MAX = 4096 };

/* The child's word on its start. It travels between two copies of one program, so it may hold pointers to literals. */
enum start_event { START_SANDBOXED, START_SANDBOX_FAILED, START_EXEC_FAILED };

struct start_record {
	enum start_event event;
	struct sandbox_state sandbox;
	int number;
	const char *call;
};

int64_t worker_now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t worker_now_ms(void)
{
	return worker_now_us() / 1000;
}

bool worker_slots(struct worker_slots *slots)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < LIMIT_MIN)
		return false;
	int top = limit.rlim_cur < LIMIT_MAX ? (int)limit.rlim_cur - 1 : LIMIT_MAX - 1;
	*slots = (struct worker_slots){top, top - 1, top - 2, top - 3, top - 4};
	return true;
}

void worker_init(struct worker *worker, enum worker_kind kind)
{
	memset(worker, 0, sizeof *worker);
	worker->result_fd = worker->go_fd = worker->output_fd = worker->status_fd = -1;
	result_init(&worker->result, kind);
	worker->outcome.result = &worker->result;
	for (int i = 0; i < STAGE_COUNT; i++)
		worker->stage_us[i] = -1;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static void close_between(unsigned int first, unsigned int last)
{
	if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
		return;
	DIR *dir = opendir("/proc/self/fd");
	if (!dir) {
		for (unsigned int fd = first; fd <= last && fd < LIMIT_MAX * 16U; fd++)
			(void)close((int)fd);
		return;
	}
	for (struct dirent *entry; (entry = readdir(dir));) {
		unsigned long fd = strtoul(entry->d_name, NULL, 10);
		if (entry->d_name[0] != '.' && fd >= first && fd <= last && (int)fd != dirfd(dir))
			(void)close((int)fd);
	}
	(void)closedir(dir);
}

__attribute__((noreturn)) static void give_up(int status_fd, enum start_event event, int number, const char *call)
{
	struct start_record record = {.event = event, .number = number, .call = call};

	(void)!write(status_fd, &record, sizeof record);
	_exit(125);
}

/* dup3 that also works when both are the same number. */
static int place(int fd, int slot, int flags)
{
	if (fd == slot)
		return fcntl(fd, F_SETFD, flags & O_CLOEXEC ? FD_CLOEXEC : 0);
	return dup3(fd, slot, flags) < 0 ? -1 : 0;
}

/* Ends of the pipes as the child holds them. */
struct child_ends {
	int result, go, output, status;
};

/* Everything the worker is to have gets its number, everything else is closed: descriptors that the workload inherits
 * from its starter are none of the worker's business. */
static int arrange_descriptors(const struct worker_spec *spec, const struct worker_slots *slots, struct child_ends ends,
                               int exec_fd)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), pair[2];

	if (null < 0 && pipe2(pair, O_CLOEXEC) == 0) { /* an image without /dev/null: an empty stdin all the same */
		(void)close(pair[1]);
		null = pair[0];
	}
	if (place(ends.status, slots->status, O_CLOEXEC) < 0 || place(ends.result, slots->result, 0) < 0 ||
	    place(ends.go, slots->go, 0) < 0 || place(exec_fd, slots->exec, O_CLOEXEC) < 0 ||
	    (spec->payload_fd >= 0 && place(spec->payload_fd, slots->payload, 0) < 0))
		return -1;
	if (place(null, 0, 0) < 0 || place(ends.output, 1, 0) < 0 || place(ends.output, 2, 0) < 0)
		return -1;
	close_between(3, (unsigned int)slots->status - 1);
	if (spec->payload_fd < 0)
		(void)close(slots->payload);
	close_between((unsigned int)slots->exec + 1, ~0U);
	return 0;
}

/* From fork to execveat. Nothing here returns. */
__attribute__((noreturn)) static void become_worker(const struct worker_spec *spec, const struct worker_slots *slots,
                                                    struct child_ends ends, pid_t parent)
{
	struct start_record record = {.event = START_SANDBOXED};
	struct error error;

	(void)setsid();
	/* The race: a parent that died before prctl sends no signal any more. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(125);
	int exec_fd = spec->path ? open(spec->path, O_PATH | O_CLOEXEC) : spec->exec_fd;
	if (exec_fd < 0)
		give_up(ends.status, START_EXEC_FAILED, errno, "open");
	if (arrange_descriptors(spec, slots, ends, exec_fd) < 0)
		give_up(ends.status, START_EXEC_FAILED, errno, "dup3");
	struct sandbox_request request = {.mode = spec->sandbox,
	                                  .kind = spec->kind,
	                                  .gpu = spec->gpu,
	                                  .exec_fd = slots->exec,
	                                  .scratch = spec->scratch};
	int failed = sandbox_enter(&request, &record.sandbox, &error);
	if (failed < 0)
		give_up(slots->status, START_SANDBOX_FAILED, -failed, record.sandbox.failed);
	(void)!write(slots->status, &record, sizeof record);
	signals_restore_in_child(spec->signals);
	int status = sandbox_exec(slots->exec, &record.sandbox, spec->argv, spec->envp);
	give_up(slots->status, START_EXEC_FAILED, -status, "execveat");
}

enum { RESULT, GO, OUTPUT, STATUS };

static int make_pipes(int pipes[4][2])
{
	for (int i = 0; i < 4; i++)
		pipes[i][0] = pipes[i][1] = -1;
	for (int i = 0; i < 4; i++)
		if (pipe2(pipes[i], O_CLOEXEC) < 0)
			return -errno;
	/* The reading ends; of GO we hold the other one. A read that waits would be a wait without a bound. */
	for (int i = 0; i < 4; i++)
		if (i != GO && fcntl(pipes[i][0], F_SETFL, O_NONBLOCK) < 0)
			return -errno;
	return 0;
}

void worker_could_not_start(struct worker *worker, int number, const char *call)
{
	worker->state = WORKER_DONE;
	worker->outcome.fate = FATE_EXEC_FAILED;
	worker->outcome.error_number = number;
	worker->outcome.call = call;
}

static int start_failed(struct worker *worker, int pipes[4][2], int number, const char *call)
{
	for (int i = 0; i < 4; i++) {
		close_fd(&pipes[i][0]);
		close_fd(&pipes[i][1]);
	}
	worker_could_not_start(worker, number, call);
	return -number;
}

int worker_start(struct worker *worker, const struct worker_spec *spec, const struct worker_slots *slots)
{
	int pipes[4][2];
	int made = make_pipes(pipes);

	if (made < 0)
		return start_failed(worker, pipes, -made, "pipe2");
	pid_t parent = getpid(), pid = fork();
	if (pid < 0)
		return start_failed(worker, pipes, errno, "fork");
	if (pid == 0)
		become_worker(spec, slots,
		              (struct child_ends){pipes[RESULT][1], pipes[GO][0], pipes[OUTPUT][1], pipes[STATUS][1]},
		              parent);
	worker->pid = pid;
	worker->state = WORKER_RUNNING;
	worker->result_fd = pipes[RESULT][0];
	worker->go_fd = pipes[GO][1];
	worker->output_fd = pipes[OUTPUT][0];
	worker->status_fd = pipes[STATUS][0];
	(void)close(pipes[RESULT][1]);
	(void)close(pipes[GO][0]);
	(void)close(pipes[OUTPUT][1]);
	(void)close(pipes[STATUS][1]);
	worker->started_ms = worker_now_ms();
	worker->stage_since_us = worker_now_us();
	worker->deadline_ms = worker->started_ms + spec->limit_ms;
	return 0;
}

/* One bounded read; 0 when there is nothing more for now, -1 on an error. Closes on both an error and the end. */
static ssize_t read_some(int *fd, char *buffer, size_t size)
{
	if (*fd < 0)
		return 0;
	ssize_t got = read(*fd, buffer, size);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got <= 0)
		close_fd(fd);
	return got;
}

static void charge_stage(struct worker *worker, enum stage stage)
{
	int64_t now_us = worker_now_us(), *spent = &worker->stage_us[stage];

	*spent = (*spent < 0 ? 0 : *spent) + now_us - worker->stage_since_us;
	worker->stage_since_us = now_us;
}

static void read_result(struct worker *worker)
{
	char buffer[4096];
	ssize_t got = read_some(&worker->result_fd, buffer, sizeof buffer);
	bool waited = worker->result.waiting;

	worker->result.malformed |= got < 0; /* what it says from here on is lost */
	for (ssize_t i = 0; i < got; i++) {
		enum stage before = worker->result.stage;
		result_feed(&worker->result, buffer + i, 1);
		if (worker->result.stage != before || worker->result.ended)
			charge_stage(worker, before);
	}
	if (worker->result.waiting && !waited)
		worker->waiting_since_ms = worker_now_ms();
}

static void read_output(struct worker *worker)
{
	char buffer[4096];
	ssize_t got = read_some(&worker->output_fd, buffer, sizeof buffer);
	size_t room = sizeof worker->output - worker->output_length;
	size_t kept = got < 0 ? 0 : (size_t)got < room ? (size_t)got : room;

	memcpy(worker->output + worker->output_length, buffer, kept);
	worker->output_length += kept;
	worker->output_cut |= got > 0 && kept < (size_t)got;
}

static void read_status(struct worker *worker)
{
	struct start_record record;

	while (worker->status_fd >= 0 &&
	       read_some(&worker->status_fd, (char *)&record, sizeof record) == sizeof record) {
		if (record.event == START_SANDBOXED) {
			worker->sandbox = record.sandbox;
			worker->have_sandbox = true;
			continue;
		}
		worker->outcome.fate = record.event == START_SANDBOX_FAILED ? FATE_SANDBOX_FAILED : FATE_EXEC_FAILED;
		worker->outcome.error_number = record.number;
		worker->outcome.call = record.call;
	}
}

void worker_read(struct worker *worker)
{
	read_status(worker);
	read_result(worker);
	read_output(worker);
}

void worker_go(struct worker *worker)
{
	int64_t waited_ms = worker_now_ms() - worker->waiting_since_ms;

	worker->result.waiting = false;
	worker->deadline_ms += waited_ms;
	worker->started_ms += waited_ms;
	worker->stage_since_us += waited_ms * 1000;
	(void)!write(worker->go_fd, "g", 1);
	close_fd(&worker->go_fd);
}

void worker_kill(struct worker *worker, enum fate fate)
{
	if (worker->state != WORKER_RUNNING)
		return;
	(void)kill(-worker->pid, SIGKILL);
	(void)kill(worker->pid, SIGKILL);
	worker->state = WORKER_KILLED;
	worker->killed_ms = worker_now_ms();
	worker->outcome.fate = fate;
	worker->outcome.elapsed_ms = worker->killed_ms - worker->started_ms;
}

static void finish(struct worker *worker)
{
	worker->state = WORKER_DONE;
	charge_stage(worker, worker->result.stage);
	close_fd(&worker->result_fd);
	close_fd(&worker->go_fd);
	close_fd(&worker->output_fd);
	close_fd(&worker->status_fd);
}

/* The pipes hold at most 64 KiB each (pipe(7)); a process outside the group that still writes is not waited for. */
static void drain(struct worker *worker)
{
	for (int i = 0; i < 64 && (worker->result_fd >= 0 || worker->output_fd >= 0); i++)
		worker_read(worker);
}

static void fill_outcome(struct worker *worker, const siginfo_t *info)
{
	struct outcome *outcome = &worker->outcome;

	if (outcome->fate != FATE_NOT_STARTED) /* killed by us, or never became the worker */
		return;
	outcome->elapsed_ms = worker_now_ms() - worker->started_ms;
	outcome->fate = info->si_code == CLD_EXITED ? FATE_EXITED : FATE_SIGNALED;
	outcome->exit_status = info->si_code == CLD_EXITED ? info->si_status : 0;
	outcome->signal = info->si_code == CLD_EXITED ? 0 : info->si_status;
}

void worker_reap(struct worker *worker, int64_t patience_ms)
{
	siginfo_t info = {0};

	if (worker->state != WORKER_RUNNING && worker->state != WORKER_KILLED)
		return;
	/* Its number is ours until it is reaped, so the rest of its group can be killed without hitting a stranger. */
	if (waitid(P_PID, (id_t)worker->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == worker->pid) {
		(void)kill(-worker->pid, SIGKILL);
		drain(worker);
		siginfo_t again; /* a null pointer is Linux's own liberty (waitid(2)) */
		if (waitid(P_PID, (id_t)worker->pid, &again, WEXITED | WNOHANG) < 0 && errno != ECHILD)
			return; /* not reaped: again at the next look */
		fill_outcome(worker, &info);
		finish(worker);
	} else if (worker->state == WORKER_KILLED && worker_now_ms() - worker->killed_ms >= patience_ms) {
		worker->outcome.unkillable = true;
		drain(worker);
		finish(worker);
	}
}
