#!/bin/sh
# kd-preflight.sh: custom plugin of node-problem-detector. Its consumer knows three answers, and cuts the message at 80
# bytes (max_output_length; pkg/custompluginmonitor of the detector):
#
#   0  no problem   GPU_CHECK_PASSED
#   1  problem      GPU_BACKEND_ABSENT, GPU_UNAVAILABLE, DEVICE_INDEX_INVALID, CHECK_FAILED, RUNTIME_ERROR, TIMEOUT,
#                   WORKER_FAILED: this node's driver or card
#   2  unknown      everything else: our own options or program, an interrupted check; and a card that somebody works on:
#                   OUT_OF_MEMORY, or busy in exclusive mode (hint exclusive-mode)
#
#   KD          the program (default: /usr/local/bin/kd-preflight)
#   KD_EXPECT   cards that the node must have (default: any number)
#   KD_SECONDS  limit of a worker (default: 20); the detector's own limit, `timeout`, must be longer
set -eu
KD=${KD:-/usr/local/bin/kd-preflight}

say() { # STATUS TEXT...
	status=$1
	shift
	printf '%.80s\n' "$*"
	exit "$status"
}

set -- --framework none --device-index all --lang en --termination-log none --timeout "${KD_SECONDS:-20}"
[ -z "${KD_EXPECT:-}" ] || set -- "$@" --expect-devices "$KD_EXPECT"
code=0
lines=$("$KD" "$@" 2>&1 >/dev/null) || code=$?
[ "$code" -ne 0 ] || say 0 'the GPUs compute'

# "GPU_UNAVAILABLE (exit 6), stage device, cuInit, CUDA_ERROR_UNKNOWN (999)": the driver's word, without the advice
verdict=$(printf '%s\n' "$lines" | sed -n 's/; next: .*//; s/^kd-preflight: \([A-Z_]* (exit [0-9]*).*\)/\1/p' | head -n 1)
case $lines in
*'hint exclusive-mode'*) say 2 "in use: $verdict" ;;
esac
case $verdict in
OUT_OF_MEMORY*) say 2 "in use: $verdict" ;;
esac
case $code in
[5-9] | 10 | 11) say 1 "$verdict" ;;
*) say 2 "no check: ${verdict:-exit $code}" ;;
esac
