#!/bin/sh
# start.sh WORKLOAD [ARG...]: start command of a rented machine's template. It starts what makes the machine reachable, then
# the workload behind kd-preflight. When the check fails the workload is not started, and the machine stays reachable, so
# that the report can be fetched and the card be looked at.
#
#   ACCESS         command that makes the machine reachable and stays in the foreground, such as "/usr/sbin/sshd -D -e" or
#                  "jupyter lab --no-browser"; run by sh -c (default: none, start.sh itself then waits)
#   REPORT_DIR     folder of the reports, on a volume that outlives the machine (default: /workspace/kd-preflight)
#   RENTED_DEVICES number of cards that were paid for; a machine that shows another number fails (default: not looked at)
#   LEAVE          1: leave with the workload (default: 0, stay reachable after it, too)
#
# KD_PREFLIGHT_* variables are the check's own. Reports name the cards' UUIDs (KD_PREFLIGHT_DEVICE_UUID=0 leaves them out).
#
# Exit status, once it leaves: after SIGTERM 143; with LEAVE=1 the workload's; 2 without WORKLOAD. A failed check never
# ends it: its status is in the report and in the last line.
set -eu

[ $# -gt 0 ] || { echo 'start.sh: name the workload: start.sh WORKLOAD [ARG...]' >&2; exit 2; }
REPORT_DIR=${REPORT_DIR:-/workspace/kd-preflight}
KD_PREFLIGHT_DEVICE_UUID=${KD_PREFLIGHT_DEVICE_UUID:-1}
export KD_PREFLIGHT_DEVICE_UUID
if [ -n "${RENTED_DEVICES:-}" ]; then
	export KD_PREFLIGHT_EXPECT_DEVICES="$RENTED_DEVICES"
	export KD_PREFLIGHT_DEVICE_INDEX="${KD_PREFLIGHT_DEVICE_INDEX:-all}"
fi

# As PID 1 a shell has no default signal actions; a wait is interrupted by a trap, so every child is started in the
# background.
access='' check=''
leave() {
	trap '' TERM INT HUP
	for pid in $check $access; do
		kill -TERM "$pid" 2>/dev/null || true
	done
	wait
	exit 143
}
trap leave TERM INT HUP

if [ -n "${ACCESS:-}" ]; then
	sh -c "exec $ACCESS" </dev/null &
	access=$!
fi

mkdir -p "$REPORT_DIR" || true # else kd-preflight says 12, and the machine stays reachable all the same
report=$REPORT_DIR/$(date -u +%Y%m%dT%H%M%SZ)-$$.json
kd-preflight --output "$report" -- "$@" &
check=$!
status=0
wait "$check" || status=$?
check=''

# The report tells a check that failed from a workload that did: "starting" is true in it before a workload starts. (Not "code",
# which each single device has, too.)
case $(cat "$report" 2>/dev/null) in
*'"starting":true'* | *'"starting":'[[:space:]]'true'*) started=1 ;;
*) started=0 ;;
esac
if [ "$started" -eq 1 ]; then
	echo "start.sh: the workload ended with $status" >&2
	[ "${LEAVE:-0}" -ne 1 ] || { [ -z "$access" ] || kill -TERM "$access" 2>/dev/null || true; exit "$status"; }
else
	echo "start.sh: kd-preflight refused with $status: the workload was not started, the machine stays reachable" >&2
	[ ! -s "$report" ] || echo "start.sh: report for a claim: $report, sha256 $(sha256sum "$report" | cut -c -64)" >&2
fi

# Reachable until told to go.
if [ -n "$access" ]; then
	wait "$access" || true
fi
while :; do
	sleep 86400 &
	access=$!
	wait "$access" || true
done
