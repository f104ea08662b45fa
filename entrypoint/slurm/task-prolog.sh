#!/bin/sh
# task-prolog.sh: Slurm's TaskProlog (slurm.conf: TaskProlog=, or srun --task-prolog). It runs as the job's user in the
# task's own environment and cgroup: what it checks is what the task gets. Once a node and step, by the task of local ID 0;
# the other tasks wait for nothing.
#
# What it prints on stdout, Slurm reads: a line "print ..." goes to the job's output. A status other than 0 ends the task with
# that status before its program starts (seen with Slurm 22.05).
#
# Exit 0: passed. Else the exit status of kd-preflight.
set -eu
KD=${KD:-/usr/local/bin/kd-preflight}
KD_SECONDS=${KD_SECONDS:-30}

[ "${SLURM_LOCALID:-0}" -eq 0 ] || exit 0

status=0
lines=$("$KD" --device-index all --lang en --timeout "$KD_SECONDS" 2>&1 >/dev/null) || status=$?
printf '%s\n' "$lines" | sed 's/^/print /'
exit "$status"
