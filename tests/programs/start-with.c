/* start-with SETTING... -- PROGRAM ARG...: takes on unusual properties, then becomes
 * PROGRAM. Settings: ignore=N block=N (signals), umask=OCTAL, nofile=N,
 * timer (a running interval timer), subreaper, pdeathsig=N, fd=N (an extra descriptor), close=N, nice=N, child (a
 * living child of the future workload), env=NAME=VALUE, argv0=NAME. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

static const char *argv0;

static void block(int number)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
}

static void apply(char *setting)
{
	char *value = strchr(setting, '=');
	int number = value ? (int)strtol(value + 1, NULL, 0) : 0;
	struct itimerval timer = {.it_interval = {.tv_sec = 77}, .it_value = {.tv_sec = 3000}};
	struct rlimit limit = {(rlim_t)number, (rlim_t)number};

	if (value)
		*value++ = '\0';
	if (strcmp(setting, "ignore") == 0)
		(void)signal(number, SIG_IGN);
	else if (strcmp(setting, "block") == 0)
		block(number);
	else if (strcmp(setting, "umask") == 0)
		(void)umask((mode_t)strtol(value, NULL, 8));
	else if (strcmp(setting, "nofile") == 0)
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	else if (strcmp(setting, "timer") == 0)
		(void)setitimer(ITIMER_REAL, &timer, NULL);
	else if (strcmp(setting, "subreaper") == 0)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	else if (strcmp(setting, "pdeathsig") == 0)
		(void)prctl(PR_SET_PDEATHSIG, number);
	else if (strcmp(setting, "fd") == 0)
		(void)dup2(open("/etc/passwd", O_RDONLY), number);
	else if (strcmp(setting, "close") == 0)
		(void)close(number);
	else if (strcmp(setting, "nice") == 0)
		(void)setpriority(PRIO_PROCESS, 0, number);
	else if (strcmp(setting, "env") == 0)
		(void)putenv(value);
	else if (strcmp(setting, "argv0") == 0)
		argv0 = value;
	else if (strcmp(setting, "child") == 0) {
		if (fork() == 0) {
			(void)sleep(60);
			_exit(0);
		}
	} else {
		fprintf(stderr, "start-with: unknown setting %s\n", setting);
		exit(2);
	}
}

int main(int argc, char *argv[])
{
	int i = 1;

	for (; i < argc && strcmp(argv[i], "--") != 0; i++)
		apply(argv[i]);
	if (i + 1 >= argc)
		return 2;
	const char *path = argv[i + 1];
	if (argv0)
		argv[i + 1] = (char *)argv0;
	(void)execvp(path, argv + i + 1);
	perror(path);
	return 127;
}
