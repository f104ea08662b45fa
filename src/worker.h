/* One worker process: started behind the sandbox, watched through its pipes, killed without mercy. */
#ifndef KD_WORKER_H
#define KD_WORKER_H

#include "error.h"
#include "result.h"
#include "sandbox.h"
#include "signals.h"
#include "verdict.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { WORKER_OUTPUT_MAX = 8192, WORKER_ARGUMENTS_MAX = 64 };

/* The numbers that descriptors have inside the worker, from the top of its table down: what foreign code opens, closes
 * or expects at small numbers does not meet them. K, the one that execveat may start, is the descriptor limit itself.
 */
struct worker_slots {
	int exec; /* K */
	int result;
	int go;
	int payload; /* the native program, for the loader */
	int status;  /* close-on-exec: the child's own word to the supervisor, out of reach of the worker */
};

/* What to start. Everything is borrowed until worker_start() returns. */
struct worker_spec {
	enum worker_kind kind;
	bool gpu;
	enum sandbox_mode sandbox;
	const char *path; /* the file to execute, or NULL: exec_fd is it */
	int exec_fd;
	int payload_fd; /* or -1 */
	char *const *argv;
	char *const *envp;
	const char *scratch; /* or NULL */
	int64_t limit_ms;
	const struct signals *signals;
};

enum worker_state { WORKER_IDLE, WORKER_RUNNING, WORKER_KILLED, WORKER_DONE };

struct worker {
	enum worker_state state;
	pid_t pid;
	int result_fd, go_fd, output_fd, status_fd;
	struct result result;
	struct outcome outcome;
	int64_t started_ms, deadline_ms, waiting_since_ms, killed_ms, stage_since_us;
	int64_t stage_us[STAGE_COUNT]; /* time spent in each stage, its own waiting left out; -1: never entered */
	struct sandbox_state sandbox;
	bool have_sandbox;
	size_t output_length; /* what was kept of what it printed */
	bool output_cut;
	char output[WORKER_OUTPUT_MAX];
};

/* The slots for this process's descriptor limit; false when it is too low to run a worker (under 64). */
bool worker_slots(struct worker_slots *slots);

void worker_init(struct worker *worker, enum worker_kind kind);

/* Forks and lets the child become the worker. Returns 0, or a negative errno (no process exists then; the outcome is
 * FATE_EXEC_FAILED). */
int worker_start(struct worker *worker, const struct worker_spec *spec, const struct worker_slots *slots);

/* Ends a worker that never had a process: FATE_EXEC_FAILED with `number` (positive errno) of `call` (static). */
void worker_could_not_start(struct worker *worker, int number, const char *call);

/* Reads what is there on the worker's descriptors, never waits. */
void worker_read(struct worker *worker);

/* Lets a worker that said `wait turn` go on; its clock starts again. */
void worker_go(struct worker *worker);

/* SIGKILL to its whole process group. `fate` is what the outcome becomes. */
void worker_kill(struct worker *worker, enum fate fate);

/* Looks whether the worker has ended; if so kills what is left of its group, reads the rest of its pipes, reaps it and
 * fills the outcome. `patience_ms` after its SIGKILL an unreaped worker is given up as unkillable. Never waits. */
void worker_reap(struct worker *worker, int64_t patience_ms);

/* Milliseconds of CLOCK_MONOTONIC; microseconds likewise. */
int64_t worker_now_ms(void);
int64_t worker_now_us(void);

#endif
