/* signal-init SIGNAL MS|never [ready=FILE] -- PROGRAM ARG...: starts PROGRAM as PID 1 of a new pid namespace with a
 * /proc of its own, sends it SIGNAL that many milliseconds after its handlers stand (or after FILE appears), and prints
 * on a last line its exit status as a shell would tell it, the milliseconds from the signal to its end, and those from
 * its exec to its handlers. The kernel drops a signal for PID 1 that comes before there is a handler
 * (pid_namespaces(7)): no program can help that, so the clock starts at the handlers. Needs root. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static void wait_us(long long us)
{
	struct timespec rest = {us / 1000000, us % 1000000 * 1000};

	while (us > 0 && nanosleep(&rest, &rest) < 0 && errno == EINTR)
		continue;
}

/* The process handles, or has been told to ignore, the signal; the latter counts for one that was so at its exec. */
static int handles(pid_t pid, int number)
{
	char path[64], line[256];
	unsigned long long caught = 0, ignored = 0;
	(void)snprintf(path, sizeof path, "/proc/%d/status", pid);
	FILE *file = fopen(path, "re");

	while (file && fgets(line, sizeof line, file)) {
		(void)sscanf(line, "SigCgt: %llx", &caught);
		(void)sscanf(line, "SigIgn: %llx", &ignored);
	}
	if (file)
		(void)fclose(file);
	return ((caught | ignored) >> (number - 1) & 1) != 0;
}

static int become_init(char *argv[], int executed)
{
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount("proc", "/proc", "proc", 0, NULL) < 0)
		perror("signal-init: mount");
	(void)executed; /* close-on-exec: its end says that the exec has come */
	(void)execvp(argv[0], argv);
	perror(argv[0]);
	_exit(127);
}

int main(int argc, char *argv[])
{
	int at = 3, executed[2], status;
	const char *ready = NULL;

	if (argc > at && strncmp(argv[at], "ready=", 6) == 0)
		ready = argv[at++] + 6;
	if (argc < at + 2 || strcmp(argv[at], "--") != 0 || pipe2(executed, 02000000 /* O_CLOEXEC */) < 0)
		return 2;
	int number = atoi(argv[1]), never = strcmp(argv[2], "never") == 0;
	long long delay_us = atoll(argv[2]) * 1000;
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, NULL, NULL, NULL, 0);
	if (pid < 0) {
		perror("signal-init: clone");
		return 2;
	}
	if (pid == 0)
		return become_init(argv + at + 1, executed[1]);
	(void)close(executed[1]);
	(void)!read(executed[0], &status, 1);
	long long start_us = now_us(), sent_us;
	while (!handles(pid, number) && now_us() - start_us < 5000000)
		continue;
	long long handled_us = now_us();
	while (ready && access(ready, F_OK) < 0 && now_us() - handled_us < 20000000)
		wait_us(2000);
	wait_us(delay_us);
	sent_us = now_us();
	if (!never)
		(void)kill(pid, number);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	printf("\n%d %lld %lld.%03lld\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
	       (now_us() - sent_us) / 1000, (handled_us - start_us) / 1000, (handled_us - start_us) % 1000);
	return 0;
}
