/* The last act: the process becomes the workload. */
#ifndef KD_HANDOVER_H
#define KD_HANDOVER_H

#include "codes.h"
#include "error.h"
#include "signals.h"
#include "workload.h"

/* execve of the workload with the environment as it came. Returns only when the workload was not started: with *code
 * WORKLOAD_NOT_FOUND, WORKLOAD_NOT_EXECUTABLE (execve's errno in *error), or INTERRUPTED with *signal_number. */
void handover_exec(const struct workload *workload, char *const argv[], char *const envp[],
                   const struct signals *signals, enum code *code, int *signal_number, struct error *error);

#endif
