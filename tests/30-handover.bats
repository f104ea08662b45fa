#!/usr/bin/env bats
# The workload gets exactly what it would have got without us. The pass that this needs comes from a stub PyTorch that
# really computes in plain Python, over the shipped program.

load helper

STATE=$TOP/build/programs/process-state
START=$TOP/build/programs/start-with

# state_of OUT COMMAND...: what process-state prints, in a fresh pid namespace so that numbers agree.
state_of() {
	local out=$1
	shift
	unshare --pid --fork --mount-proc "$@" >state 2>/dev/null
	[[ -s state ]] || return 1
	mv state "$out"
}

# same_state SETTING...: process-state, started by start-with once alone and once behind kd-preflight, prints the same.
same_state() {
	need_root
	local settings=("$@") program=("$STATE" m1 'an argument' '')
	export PYTHONPATH=$STUBS
	state_of without "$START" "${settings[@]}" -- "${program[@]}"
	state_of with "$START" "${settings[@]}" -- "$KD" --python "$PYTHON" --termination-log none -- "${program[@]}"
	# Control: the comparison sees the setting at all.
	state_of plain "$START" -- "${program[@]}"
	[[ ${#settings[@]} -eq 0 ]] || ! cmp -s plain without || { echo "process-state does not see ${settings[*]}"; return 1; }
	diff without with
}

@test "a plain start" { same_state; }
@test "ignored signals: INT, HUP, PIPE, CHLD, XFSZ" { same_state ignore=2 ignore=1 ignore=13 ignore=17 ignore=25; }
@test "blocked signals: TERM, CHLD, USR1" { same_state block=15 block=17 block=10; }
@test "umask" { same_state umask=0137; }
@test "a low limit of open files" { same_state nofile=128; }
@test "a running interval timer" { same_state timer; }
@test "child-subreaper" { same_state subreaper; }
@test "parent-death signal" { same_state pdeathsig=12; }
@test "inherited descriptors" { same_state fd=9 fd=100; }
@test "stdin closed" { same_state close=0; }
@test "nice" { same_state nice=5; }
@test "a living child of the starter's" { same_state child; }
@test "odd environment entries" { same_state env=A=1 env=EMPTY= env=KD_X=y env=TMPDIR=/nowhere; }

@test "a timer that runs out during the check kills as it would have killed the workload" {
	export PYTHONPATH=$STUBS KD_STUB=hang-import
	status=0
	"$PYTHON" -c 'import os, signal, sys; signal.setitimer(signal.ITIMER_REAL, 1); os.execv(sys.argv[1], sys.argv[1:])' \
		"$KD" --timeout 9 -- "$PYTHON" x.py 2>err || status=$?
	is 142 "$status"
}

@test "same pid, and PID 1 stays PID 1" {
	export PYTHONPATH=$STUBS
	"$KD" --python "$PYTHON" -- "$STATE" - >out 2>err &
	local pid=$!
	wait "$pid"
	grep -q "^pid $pid " out
	need_root
	unshare --pid --fork --mount-proc "$KD" --python "$PYTHON" -- "$STATE" - >out 2>err
	grep -q '^pid 1 ' out
}

@test "PROGRAM from PATH keeps its argv[0]; a relative path is run where we were started" {
	export PYTHONPATH=$STUBS PATH=$T/bin:$PATH
	mkdir bin && cp "$STATE" bin/my-program
	kd --python "$PYTHON" -- my-program - x
	grep -qx 'argv 0 my-program' out
	kd --python "$PYTHON" -- bin/my-program - x
	grep -qx 'argv 0 bin/my-program' out
	grep -qx "cwd $T" out
}

@test "the workload's exit status is the container's, also by a signal" {
	export PYTHONPATH=$STUBS
	kd -- "$PYTHON" -c 'raise SystemExit(42)'
	is 42 "$status"
	# timeout(1) would die by the signal itself
	status=0
	bash -c '"$@"' - "$KD" -- "$PYTHON" -c 'import os; os.kill(os.getpid(), 9)' 2>err || status=$?
	is 137 "$status"
}

@test "stdout is byte-clean and stdin untouched, whatever PyTorch prints or closes" {
	local word
	export PYTHONPATH=$STUBS:$T/site
	mkdir site && echo 'print("sitecustomize was here", flush=True)' >site/sitecustomize.py
	for word in prints traceback close-fds ''; do
		printf 'from the user' | KD_STUB=$word "$KD" --python "$PYTHON" -- /bin/cat >out 2>err
		is 'from the user' "$(<out)" "stdout with '$word'"
	done
}

@test "execve fails after the pass: 126 or 127, stderr and termination log say so, the report stays the check's" {

	touch log
	cp "$STATE" program
	# The program goes away while it is checked: the lookup has passed by then.
	(sleep 0.3; rm program) &
	export PYTHONPATH=$STUBS:$T/slow
	mkdir slow && printf 'import time\ntime.sleep(1)\n' >slow/sitecustomize.py
	export PYTHONPATH
	kd --python "$PYTHON" --output r.json --termination-log "$T/log" -- ./program -
	is 127 "$status"
	is '"GPU_CHECK_PASSED"' "$(value code r.json)"
	grep -q 'WORKLOAD_NOT_FOUND (exit 127)' err
	grep -q '"code":"WORKLOAD_NOT_FOUND"' log
}
