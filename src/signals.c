#include "signals.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

static const int STOPPING[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
enum { STOPPING_COUNT = sizeof STOPPING / sizeof *STOPPING };

/* A handler has no other way to speak. */
static volatile sig_atomic_t stopped_by;

static void on_stop(int number)
{
	if (!stopped_by)
		stopped_by = number;
}

static void on_child(int number)
{
	(void)number; /* that ppoll returns is enough */
}

static void handle(int number, void (*handler)(int), struct sigaction *old)
{
	struct sigaction action = {.sa_handler = handler};

	sigfillset(&action.sa_mask);
	(void)sigaction(number, &action, old);
}

static void stopping_set(sigset_t *set)
{
	sigemptyset(set);
	for (int i = 0; i < STOPPING_COUNT; i++)
		sigaddset(set, STOPPING[i]);
}

void signals_take(struct signals *signals)
{
	struct sigaction found;
	sigset_t set;

	stopping_set(&set);
	sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, &signals->original_mask);
	for (int i = 0; i < STOPPING_COUNT; i++) {
		(void)sigaction(STOPPING[i], NULL, &found);
		if (found.sa_handler != SIG_IGN)
			handle(STOPPING[i], on_stop, NULL);
	}
	/* An ignored SIGCHLD would reap the workers behind our back (POSIX wait). */
	handle(SIGCHLD, on_child, &signals->child);
	handle(SIGPIPE, SIG_IGN, &signals->pipe);
	handle(SIGXFSZ, SIG_IGN, &signals->file_size);
}

int signals_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	struct timespec timeout = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};
	sigset_t mask;

	sigemptyset(&mask);
	(void)sigprocmask(SIG_BLOCK, NULL, &mask);
	for (int i = 0; i < STOPPING_COUNT; i++)
		sigdelset(&mask, STOPPING[i]);
	sigdelset(&mask, SIGCHLD);
	int ready = ppoll(fds, count, timeout_ms < 0 ? NULL : &timeout, &mask);
	int number = errno;
	/* With a descriptor ready ppoll returns without letting a pending signal in (Linux fs/select.c), and a worker
	 * can keep its pipe full. */
	if (ready > 0)
		(void)ppoll(NULL, 0, &(struct timespec){0}, &mask);
	return ready < 0 ? -number : ready;
}

int signals_stopped_by(void)
{
	return stopped_by;
}

static void restore_dispositions(const struct signals *signals)
{
	struct sigaction found;

	for (int i = 0; i < STOPPING_COUNT; i++) {
		(void)sigaction(STOPPING[i], NULL, &found);
		if (found.sa_handler == on_stop)
			handle(STOPPING[i], SIG_DFL, NULL);
	}
	/* Ignoring it for a moment drops a SIGCHLD that is pending from our own workers (POSIX sigaction). */
	handle(SIGCHLD, SIG_IGN, NULL);
	(void)sigaction(SIGCHLD, &signals->child, NULL);
	(void)sigaction(SIGPIPE, &signals->pipe, NULL);
	(void)sigaction(SIGXFSZ, &signals->file_size, NULL);
}

const char *signals_name(int number, char unknown[16])
{
	static const char *const NAMES[] = {
	        [SIGHUP] = "SIGHUP",   [SIGINT] = "SIGINT",   [SIGQUIT] = "SIGQUIT", [SIGILL] = "SIGILL",
	        [SIGTRAP] = "SIGTRAP", [SIGABRT] = "SIGABRT", [SIGBUS] = "SIGBUS",   [SIGFPE] = "SIGFPE",
	        [SIGKILL] = "SIGKILL", [SIGUSR1] = "SIGUSR1", [SIGSEGV] = "SIGSEGV", [SIGUSR2] = "SIGUSR2",
	        [SIGPIPE] = "SIGPIPE", [SIGALRM] = "SIGALRM", [SIGTERM] = "SIGTERM", [SIGXCPU] = "SIGXCPU",
	        [SIGXFSZ] = "SIGXFSZ", [SIGSYS] = "SIGSYS",
	};

	if (number > 0 && (size_t)number < sizeof NAMES / sizeof *NAMES && NAMES[number])
		return NAMES[number];
	(void)snprintf(unknown, 16, "SIG%d", number);
	return unknown;
}

void signals_restore_in_child(const struct signals *signals)
{
	restore_dispositions(signals);
	(void)sigprocmask(SIG_SETMASK, &signals->original_mask, NULL);
}

int signals_hand_over(const struct signals *signals)
{
	sigset_t pending;

	/* One that a handler took while the last workers were cleared away counts like one that is pending. */
	if (stopped_by)
		return stopped_by;
	restore_dispositions(signals);
	sigemptyset(&pending);
	(void)sigpending(&pending);
	for (int i = 0; i < STOPPING_COUNT; i++)
		if (sigismember(&pending, STOPPING[i]) == 1 && sigismember(&signals->original_mask, STOPPING[i]) == 0)
			return STOPPING[i];
	(void)sigprocmask(SIG_SETMASK, &signals->original_mask, NULL);
	return 0;
}
