/* The last look before the hand-over: a stopping signal counts whether it is still pending or a handler took it while
 * the last workers were cleared away. Each case in a process of its own. */
#include "signals.h"
#include "tap.h"

#include <sys/wait.h>
#include <unistd.h>

enum when { NEVER, PENDING, TAKEN };

static int hand_over(enum when when, bool ignored)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		struct signals signals;
		if (ignored)
			(void)signal(SIGTERM, SIG_IGN);
		signals_take(&signals);
		if (when != NEVER)
			(void)raise(SIGTERM);
		if (when == TAKEN)
			(void)signals_poll(NULL, 0, 10);
		_exit(signals_hand_over(&signals));
	}
	(void)waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void)
{
	is_int(hand_over(NEVER, false), 0, "no signal: the workload may start");
	is_int(hand_over(PENDING, false), SIGTERM, "one that is pending stops it");
	is_int(hand_over(TAKEN, false), SIGTERM, "one that a handler took stops it");
	is_int(hand_over(TAKEN, true), 0, "an ignored one does not");
	return done();
}
