/* hang [ARG]...: never ends; only SIGKILL and SIGSTOP reach it. */
#include <signal.h>
#include <unistd.h>

int main(void)
{
	sigset_t all;

	sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	for (;;)
		(void)pause();
}
