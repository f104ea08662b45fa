#!/bin/sh
# prolog.sh: Slurm's Prolog (slurm.conf: Prolog=, with PrologFlags=Alloc). slurmd runs it as root, without PATH, on each
# node of an allocation. It checks the cards of the job natively, no Python of any user involved.
#
# Exit 0: the check passed, or the job has no card. Exit 1: it did not. The node is drained with our verdict as the reason,
# and Slurm requeues the job, held unless SchedulerParameters has nohold_on_prolog_fail.
#
# Settings, here or in the environment of slurmd's wrapper:
set -eu
KD=${KD:-/usr/local/bin/kd-preflight}
KD_REPORTS=${KD_REPORTS:-/var/log/kd-preflight/} # a report each run; empty: none
KD_SECONDS=${KD_SECONDS:-20}
PATH=${KD_PATH:-/usr/sbin:/usr/bin:/sbin:/bin}
export PATH

[ -n "${SLURM_JOB_GPUS:-}" ] || exit 0

# Only the job's cards, as the driver numbers them: SLURM_JOB_GPUS counts in PCI order. A mask that is set already wins.
export CUDA_DEVICE_ORDER=PCI_BUS_ID
export CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-$SLURM_JOB_GPUS}"
export ROCR_VISIBLE_DEVICES="${ROCR_VISIBLE_DEVICES:-$SLURM_JOB_GPUS}"

# Fewer cards than were allocated is a fault of the node. A range ("0-3") is left to the driver.
case $SLURM_JOB_GPUS in
*[!0-9,]*) expect='' ;;
*) expect=--expect-devices=$(echo "$SLURM_JOB_GPUS" | tr , '\n' | grep -c .) ;;
esac

set -- --framework none --device-index all --lang en --termination-log none --timeout "$KD_SECONDS"
[ -z "$expect" ] || set -- "$@" "$expect"
[ -z "$KD_REPORTS" ] || set -- "$@" --output "$KD_REPORTS"

status=0
lines=$("$KD" "$@" 2>&1 >/dev/null) || status=$?
[ "$status" -ne 0 ] || exit 0

# "GPU_UNAVAILABLE (exit 6), stage device" of the verdict line.
verdict=$(printf '%s\n' "$lines" | sed -n 's/^kd-preflight: \([A-Z_]* (exit [0-9]*)\(, stage [a-z]*\)*\).*/\1/p' | head -n 1)
printf '%s\n' "$lines" >&2

# A command of Slurm's in a Prolog loads the controller, which is why it is called only on failure. Should it fail, Slurm
# drains the node itself ("Prolog error"), since this script exits 1.
scontrol update NodeName="${SLURMD_NODENAME:-$(hostname -s)}" State=DRAIN \
	Reason="kd-preflight: ${verdict:-exit $status}" >&2 || true
exit 1
