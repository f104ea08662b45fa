#!/bin/sh
# health-check.sh: Slurm's HealthCheckProgram, for idle nodes (slurm.conf: HealthCheckNodeState=IDLE, so that no job's cards
# are touched and none is in use). slurmd runs it as root, without PATH, kills it at 60 s, and does nothing with its exit
# status: draining is this script's own work. A node that is drained already keeps its reason, and is never resumed here.
#
# Exit 0: passed, or drained before. Exit 1: failed, node drained.
set -eu
KD=${KD:-/usr/local/bin/kd-preflight}
KD_EXPECT=${KD_EXPECT:-} # cards that the node must have; empty: any number
KD_SECONDS=${KD_SECONDS:-20}
PATH=${KD_PATH:-/usr/sbin:/usr/bin:/sbin:/bin}
export PATH
node=${SLURMD_NODENAME:-$(hostname -s)}

if scontrol show node "$node" 2>/dev/null | grep -q 'State=[^ ]*DRAIN'; then
	exit 0
fi

set -- --framework none --device-index all --lang en --termination-log none --timeout "$KD_SECONDS"
[ -z "$KD_EXPECT" ] || set -- "$@" --expect-devices "$KD_EXPECT"

# SIGTERM ends the check with 143; together with -k this stays below Slurm's 60 s.
status=0
lines=$(timeout -k 5 50 "$KD" "$@" 2>&1 >/dev/null) || status=$?
[ "$status" -ne 0 ] || exit 0

verdict=$(printf '%s\n' "$lines" | sed -n 's/^kd-preflight: \([A-Z_]* (exit [0-9]*)\(, stage [a-z]*\)*\).*/\1/p' | head -n 1)
printf '%s\n' "$lines" >&2
scontrol update NodeName="$node" State=DRAIN Reason="kd-preflight: ${verdict:-exit $status}" >&2
exit 1
