#include "strays.h"

#include "signals.h"
#include "worker.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static bool has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

void strays_watch(struct strays *strays)
{
	int subreaper = 0;

	strays->watched = false;
	if (has_children() || prctl(PR_GET_CHILD_SUBREAPER, &subreaper) < 0)
		return;
	strays->subreaper = subreaper;
	strays->watched = prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

/* The fourth field of /proc/PID/stat; the second, in brackets, may hold anything (proc(5)). */
static pid_t parent_of(pid_t pid)
{
	char path[64], text[512];
	(void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

	if (fd >= 0)
		(void)close(fd);
	text[got > 0 ? got : 0] = '\0';
	char *end = strrchr(text, ')');
	return end && strlen(end) > 4 ? (pid_t)strtol(end + 4, NULL, 10) : -1;
}

static void kill_children(void)
{
	DIR *dir = opendir("/proc");
	pid_t self = getpid();

	if (!dir)
		return;
	for (struct dirent *entry; (entry = readdir(dir));) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (pid > 0 && parent_of(pid) == self) /* ours until reaped, so the number is no stranger's */
			(void)kill(pid, SIGKILL);
	}
	(void)closedir(dir);
}

static void reap_children(void)
{
	siginfo_t info;

	do
		info.si_pid = 0;
	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0);
}

void strays_remove(struct strays *strays, int64_t until_ms)
{
	if (!strays->watched)
		return;
	while (has_children() && worker_now_ms() < until_ms) {
		kill_children();
		(void)signals_poll(NULL, 0, 1); /* a SIGCHLD ends it */
		reap_children();
	}
	(void)prctl(PR_SET_CHILD_SUBREAPER, strays->subreaper);
	strays->watched = false;
}
