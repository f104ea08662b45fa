#include "handover.h"

#include <string.h>
#include <unistd.h>

void handover_exec(const struct workload *workload, char *const argv[], char *const envp[],
                   const struct signals *signals, enum code *code, int *signal_number, struct error *error)
{
	*signal_number = signals_hand_over(signals);
	if (*signal_number) {
		*code = CODE_INTERRUPTED;
		(void)error_set(error, EINTR, "stopped by a signal just before the workload was started");
		return;
	}
	(void)execve(workload->path, argv, envp);
	*code = errno == ENOENT || errno == ENOTDIR ? CODE_WORKLOAD_NOT_FOUND : CODE_WORKLOAD_NOT_EXECUTABLE;
	(void)error_set(error, errno, "unable to execute %s: %s", workload->path, strerror(errno));
}
