#!/usr/bin/env bats
# Everything that a driver can do wrong at any call, alone and in random combinations, over the driver doubles: see
# tests/fault-matrix, which prints the tables. They are kept in build/faults/.

load helper

# faults NAME ARG...: the tables go into the TAP (and so to whoever reads it) whether or not the test passes.
faults() {
	local name=$1 log=$TOP/build/faults/$1.txt
	shift
	mkdir -p "$TOP/build/faults"
	status=0
	"$PYTHON" "$TOP/tests/fault-matrix" "$name" "$@" >"$log" 2>&1 || status=$?
	sed 's/^/# /' "$log" >&3
	is 0 "$status" "$name" || { grep -A5 -m 12 '^FAILED' "$log"; tail -n 12 "$log"; return 1; }
}

@test "fault matrix: every driver call x every error class, hang, signal, silent exit; every wrong number" {
	faults matrix
	# The size that was meant: a matrix that shrinks by accident must not pass.
	[[ $(sed -n 's/^\([0-9]*\) runs, 0 failed.*/\1/p' "$TOP/build/faults/matrix.txt") -ge 1400 ]]
}

@test "2400 random combinations: the workload starts exactly when every required rung passed, with a report that says so" {
	faults random
	[[ $(sed -n 's/^\([0-9]*\) runs, 0 failed.*/\1/p' "$TOP/build/faults/random.txt") -ge 2000 ]]
}

@test "the control: a fault that the oracle does not know of is found" {
	# The same program with a double that hangs on to nothing: a wrong expectation must fail the run, not pass it.
	local copy=$T/fault-matrix
	mkdir -p "$T/tests" "$T/build" "$T/src"
	sed 's/GPU_UNAVAILABLE@device/RUNTIME_ERROR@device/' "$TOP/tests/fault-matrix" >"$T/tests/fault-matrix"
	cp "$TOP/tests/validate-report" "$T/tests/" && cp "$TOP/src/report.schema.json" "$T/src/"
	ln -s "$TOP/build/kd-preflight" "$T/build/kd-preflight" && ln -s "$TOP/build/doubles" "$T/build/doubles"
	status=0
	"$PYTHON" "$T/tests/fault-matrix" matrix --only cuInit#1=noop >"$copy.log" 2>&1 || status=$?
	is 1 "$status"
	grep -q '^FAILED cuInit#1=noop: wanted RUNTIME_ERROR@device' "$copy.log"
}
