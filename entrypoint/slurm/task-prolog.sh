#!/bin/sh
# task-prolog.sh: Slurm's TaskProlog (slurm.conf: TaskProlog=, or srun --task-prolog). It runs as the job's user in the
# task's own environment and cgroup: what it checks is what the task gets. Once a node and step, by the task of local ID 0;
# the other tasks wait for nothing.
#
# What it prints on stdout, Slurm reads: "print ..." goes to the job's output, anything else of ours would be ignored. A
# status other than 0 does not stop a task on every version of Slurm, so that the task is killed as well: the job ends by
# SIGKILL, and its output says why.
#
# Exit 0: passed. Else the exit status of kd-preflight.
set -eu
KD=${KD:-/usr/local/bin/kd-preflight}
KD_SECONDS=${KD_SECONDS:-30}

[ "${SLURM_LOCALID:-0}" -eq 0 ] || exit 0

status=0
lines=$("$KD" --device-index all --lang en --timeout "$KD_SECONDS" 2>&1 >/dev/null) || status=$?
printf '%s\n' "$lines" | sed 's/^/print /'
[ "$status" -ne 0 ] || exit 0
#KILL [ -z "${SLURM_TASK_PID:-}" ] || kill -KILL "$SLURM_TASK_PID"
exit "$status"
