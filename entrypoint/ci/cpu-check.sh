#!/bin/sh
# cpu-check.sh [FOLDER]: a CI step that proves that this machine's Python imports its PyTorch and that the arithmetic is
# right, without a GPU. Its pass says nothing about CUDA or ROCm. The report goes to a new file in FOLDER (default:
# kd-preflight-reports), for the CI system to keep. PYTHON names the interpreter (default: python3 of PATH).
#
# Exit status: kd-preflight's. 0 CPU_CHECK_PASSED; 3 and 4 PyTorch missing or its import failing; 8 wrong numbers; 13 no
# interpreter; the rest in kd-preflight --list-codes.
set -eu

set -- --device cpu --output "${1:-kd-preflight-reports}/"
[ -z "${PYTHON:-}" ] || set -- "$@" --python "$PYTHON"
exec kd-preflight "$@"
