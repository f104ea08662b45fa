#!/usr/bin/env bats
# Every system call of the supervisor fails once with each of six errors, and dies once by SIGKILL, under strace
# (51-fault-injection.py says what must hold). FAULTS=--full tries every fault of the longer runs too.

load helper

setup_file() {
	command -v strace >/dev/null || skip 'no strace here'
	strace -o /dev/null /bin/true 2>/dev/null || skip 'ptrace is refused here'
}

inject() {
	local faults=()
	read -ra faults <<<"${FAULTS:-}"
	"$PYTHON" "$TOP/tests/51-fault-injection.py" --jobs 3 "${faults[@]}" "$@" >log 2>&1 || { cat log; return 1; }
	sed 's/^/# /' log >&3
}

@test "a native check with a report: every fault" { inject cpu; }
@test "a report in a folder, fresh name" { inject folder; }
@test "a report where a file exists already" { inject existing; }
@test "a report on a mount that refuses links" { inject named; }
@test "a check with PyTorch that becomes its workload" { inject torch; }

@test "control: the driver sees a partial file, a forgotten worker, a workload without a report" {
	# A program in our place that does all three.
	cat >liar <<-'E'
		#!/bin/sh
		for path; do case $path in */report.json) printf '{"code"' >"$path" ;; */workload) "$path" ;; esac; done
		setsid sleep 30 &
		exit 0
	E
	chmod +x liar
	status=0
	KD_FAULT_PROGRAM=$T/liar "$PYTHON" "$TOP/tests/51-fault-injection.py" torch >log 2>&1 || status=$?
	is 1 "$status" 'exit status of the driver'
	grep -q 'partial file' log
	grep -q '1 processes left' log
	grep -q 'the workload was started, the saved report says None' log
}
