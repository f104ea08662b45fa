# What every bats file shares: `load helper`.
# shellcheck shell=bash disable=SC2034,SC2154

bats_require_minimum_version 1.5.0

TOP=$(cd "${BATS_TEST_DIRNAME}/.." && pwd)
KD=$TOP/build/kd-preflight
STUBS=$TOP/tests/stubs
PYTHON=/usr/bin/python3 # Debian's, with a real PyTorch

# Nothing of the caller's environment may decide a test.
clean_environment() {
	local name
	for name in $(compgen -e); do
		case $name in KD_* | CUDA_* | HIP_* | ROCR_* | PYTHON* | LC_* | LANG | LANGUAGE | LD_* | NO_COLOR | VIRTUAL_ENV) unset "$name" ;; esac
	done
	export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
}

setup() {
	clean_environment
	T=$BATS_TEST_TMPDIR
	export TMPDIR=$T/tmp
	mkdir "$TMPDIR"
	cd "$T" || return
	MARKER=$T/marker
	printf '#!/bin/sh\necho started >"%s"\n' "$MARKER" >workload
	chmod +x workload
}

# kd ARG...: runs the program with stdout in $T/out, stderr in $T/err; sets status. Never hangs a test.
kd() {
	status=0
	/usr/bin/timeout --kill-after=5 100 "$KD" "$@" >"$T/out" 2>"$T/err" </dev/null || status=$?
}

# report [FILE]: the report that a run left on stdout, or in FILE.
valid() {
	"$TOP/tests/validate-report" "${1:-$T/out}"
}

# value KEY.KEY... [FILE]: one value of a report, as JSON.
value() {
	"$PYTHON" -I - "$1" "${2:-$T/out}" <<-'E'
		import json, sys
		value = json.load(open(sys.argv[2]))
		for key in sys.argv[1].split("."):
		    value = value[int(key)] if isinstance(value, list) else value[key]
		print(json.dumps(value))
	E
}

# is WANTED GOT WHAT
is() {
	[[ $1 == "$2" ]] && return
	printf '%s: wanted %s, got %s\n' "${3:-value}" "$1" "$2"
	[[ ! -f $T/err ]] || sed 's/^/stderr: /' "$T/err"
	return 1
}

# expect STATUS CODE STAGE [FILE]: exit status, and a valid report that says so.
expect() {
	is "$1" "$status" 'exit status' && valid "${4:-$T/out}" && is "\"$2\"" "$(value code "${4:-$T/out}")" code &&
		is "\"$3\"" "$(value stage "${4:-$T/out}")" stage && is "$1" "$(value exit_code "${4:-$T/out}")" exit_code
}

has_hint() {
	[[ $(value hints "${2:-$T/out}") == *"\"$1\""* ]] || { echo "no hint $1"; return 1; }
}

# not_started: the workload left no marker, and nothing of ours is left behind.
not_started() {
	[[ ! -e $MARKER ]] || { echo 'the workload was started'; return 1; }
}

nothing_left() {
	local left
	left=$(ls -A "$TMPDIR")
	[[ -z $left ]] || { echo "left behind: $left"; return 1; }
}

need_root() {
	[[ $EUID -eq 0 ]] || skip 'needs root'
}

# refute COMMAND...: fails where the command succeeds. (A plain `!` fails no test: set -e looks away.)
refute() {
	if "$@"; then
		echo "succeeded, and must not: $*"
		return 1
	fi
}
