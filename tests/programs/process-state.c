/* A workload that prints what it got from its starter, one fact a line, and leaves a marker. Two runs are the same
 * when the lines are. argv[1] is the marker file ("-": none); the rest is only printed. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static void print_status(void)
{
	static const char *const LINES[] = {"Umask",  "Seccomp", "Seccomp_filters", "NoNewPrivs", "SigBlk",
	                                    "SigIgn", "SigCgt",  "SigPnd",          "ShdPnd",     "CapInh",
	                                    "CapPrm", "CapEff",  "CapBnd",          "CapAmb",     "Uid",
	                                    "Gid",    "Groups",  "Threads",         "TracerPid",  "CoreDumping"};
	char line[512];
	FILE *file = fopen("/proc/self/status", "r");

	while (file && fgets(line, sizeof line, file))
		for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++)
			if (strncmp(line, LINES[i], strlen(LINES[i])) == 0 && line[strlen(LINES[i])] == ':')
				printf("status %s", line);
	if (file)
		(void)fclose(file);
}

static void print_file(const char *path)
{
	char text[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

	text[got > 0 ? got : 0] = '\0';
	printf("file %s: %s\n", path, text);
	if (fd >= 0)
		(void)close(fd);
}

static void print_descriptors(void)
{
	for (int fd = 0; fd < 1024; fd++) {
		char path[64], target[4096];
		int flags = fcntl(fd, F_GETFD);
		if (flags < 0)
			continue;
		(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		ssize_t length = readlink(path, target, sizeof target - 1);
		target[length > 0 ? length : 0] = '\0';
		printf("descriptor %d flags %d status %#x offset %lld %s\n", fd, flags, (unsigned)fcntl(fd, F_GETFL),
		       (long long)lseek(fd, 0, SEEK_CUR), target);
	}
}

static void print_limits(void)
{
	for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
		struct rlimit limit;
		if (getrlimit(resource, &limit) == 0)
			printf("limit %d %llu %llu\n", resource, (unsigned long long)limit.rlim_cur,
			       (unsigned long long)limit.rlim_max);
	}
}

static void print_timers(void)
{
	static const int TIMERS[] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};

	for (size_t i = 0; i < sizeof TIMERS / sizeof *TIMERS; i++) {
		struct itimerval timer;
		(void)getitimer(TIMERS[i], &timer);
		/* Time passes; that one runs, and its interval, must be the same. */
		printf("timer %d %s interval %lld.%06lld\n", TIMERS[i],
		       timer.it_value.tv_sec || timer.it_value.tv_usec ? "runs" : "off",
		       (long long)timer.it_interval.tv_sec, (long long)timer.it_interval.tv_usec);
	}
}

static void print_prctls(void)
{
	int value = -1;

	(void)prctl(PR_GET_CHILD_SUBREAPER, &value);
	printf("subreaper %d\n", value);
	(void)prctl(PR_GET_PDEATHSIG, &value);
	printf("pdeathsig %d\n", value);
	printf("dumpable %d keepcaps %d timerslack %d securebits %d\n", prctl(PR_GET_DUMPABLE), prctl(PR_GET_KEEPCAPS),
	       prctl(PR_GET_TIMERSLACK), prctl(PR_GET_SECUREBITS));
}

int main(int argc, char *argv[])
{
	char cwd[4096];

	printf("pid %d ppid %d pgid %d sid %d\n", getpid(), getppid(), getpgrp(), getsid(0));
	for (int i = 0; i < argc; i++)
		printf("argv %d %s\n", i, argv[i]);
	for (char **entry = environ; *entry; entry++)
		printf("environment %s\n", *entry);
	printf("cwd %s\nnice %d\n", getcwd(cwd, sizeof cwd), getpriority(PRIO_PROCESS, 0));
	print_status();
	print_limits();
	print_timers();
	print_prctls();
	print_file("/proc/self/oom_score_adj");
	print_file("/proc/self/cgroup");
	print_file("/proc/thread-self/children");
	print_descriptors();
	if (argc > 1 && strcmp(argv[1], "-") != 0)
		return close(open(argv[1], O_WRONLY | O_CREAT, 0644)) < 0;
	return 0;
}
