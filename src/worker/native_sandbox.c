#include "native_sandbox.h"

#include "native_system.h"

#include <linux/fcntl.h>
#include <linux/prctl.h>

enum {
	SANDBOX_AF_UNIX = 1,
	SANDBOX_AF_INET = 2,
	SANDBOX_STREAM = 1,
	SANDBOX_MODE_FILTER = 2, /* SECCOMP_MODE_FILTER, as PR_GET_SECCOMP answers */
};

static bool socket_refused(int family)
{
	long fd = system_call(__NR_socket, family, SANDBOX_STREAM | O_CLOEXEC, 0);

	if (fd < 0)
		return true;
	system_close((int)fd);
	return false;
}

/* Any descriptor but K: EFAULT or EBADF would mean that the kernel itself looked at the arguments. */
static bool exec_refused(void)
{
	long result = system_call6(__NR_execveat, -1, 0, 0, 0, AT_EMPTY_PATH, 0);

	return result != -SYSTEM_EFAULT && result != -SYSTEM_EBADF && result != -SYSTEM_ENOENT;
}

/* The road of DESIGN.md 6: execveat is allowed on descriptor K, so nothing may ever be put there again. */
static bool exec_slot_closed(const struct native_options *options)
{
	long fd;

	if (options->exec_fd < 0)
		return true;
	fd = system_call(__NR_dup3, options->result_fd, options->exec_fd, O_CLOEXEC);
	if (fd < 0)
		return true;
	system_close((int)fd);
	return false;
}

/* 1 confined, 0 not, -1 the attempt told nothing. Opened without O_TRUNC: the file is left as it is. */
static int writes_confined(const char *path)
{
	long fd = system_open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd >= 0) {
		system_close((int)fd);
		return 0;
	}
	return fd == -SYSTEM_EACCES || fd == -SYSTEM_EPERM ? 1 : -1;
}

bool sandbox_measure(const struct native_options *options, struct report *report)
{
	bool act = options->sandbox != SANDBOX_EXPECT_OFF;
	bool no_new_privs = system_call6(__NR_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0, 0) == 1;
	bool seccomp = system_call6(__NR_prctl, PR_GET_SECCOMP, 0, 0, 0, 0, 0) == SANDBOX_MODE_FILTER;

	if (act && seccomp)
		seccomp = socket_refused(SANDBOX_AF_INET) && socket_refused(SANDBOX_AF_UNIX) && exec_refused() &&
		          exec_slot_closed(options);
	report_number(report, "no_new_privs", no_new_privs);
	report_number(report, "seccomp", seccomp);
	if (act && options->confine) {
		int confined = writes_confined(options->confine);
		if (confined >= 0)
			report_number(report, "writes_confined", confined);
	}
	return no_new_privs && seccomp;
}
