#!/usr/bin/env bats
# Signals for PID 1 of a pid namespace: 128+n at once, in every stage, from the moment the handlers stand; the worker is
# gone, the workload not started, the report saved. And what is no stopping signal stays none.

# shellcheck disable=SC2030,SC2031 # each test is a subshell of its own: that is meant

load helper

INIT=$TOP/build/programs/signal-init
variables=() # for the program alone: a hostile PYTHONPATH is not for what looks at its report
LIMIT_MS=2000 # the contract says at once; this leaves room for a machine that is busy with other tests

setup_file() {
	[[ $EUID -eq 0 ]] || skip 'needs root'
	"$BATS_TEST_DIRNAME/../build/programs/signal-init" 15 never -- /bin/true >/dev/null 2>&1 ||
		skip 'no pid namespace can be made here'
}

number_of() {
	case $1 in HUP) echo 1 ;; INT) echo 2 ;; QUIT) echo 3 ;; TERM) echo 15 ;; esac
}

# stopped NAME DELAY [ready=FILE] -- ARG...: kd-preflight as PID 1 gets the signal and ends of it; sets took, report.
stopped() {
	local name=$1 delay=$2 ready=() number
	shift 2
	[[ $1 == -- ]] || { ready=("$1"); shift; }
	shift
	number=$(number_of "$name")
	report=r-$RANDOM$RANDOM.json
	timeout 60 env "${variables[@]}" "$INIT" "$number" "$delay" "${ready[@]}" -- "$KD" --termination-log "$T/log" --output "$report" "$@" \
		>ended 2>err || { cat err; return 1; }
	read -r status took _ < <(tail -n 1 ended)
	is $((128 + number)) "$status" "exit status of $name at $delay ms" || return 1
	[[ $took -le $LIMIT_MS ]] || { echo "$name at $delay ms took $took ms"; return 1; }
	valid "$report" && is '"INTERRUPTED"' "$(value code "$report")" code || return 1
	is "$((128 + number))" "$(value exit_code "$report")" exit_code || return 1
	not_started
	nothing_left
}

@test "TERM, INT, HUP and QUIT at 0, 1, 10 and 50 ms: 128+n, at once" {
	export PYTHONPATH=$STUBS KD_STUB=hang-import
	local name delay
	for name in TERM INT HUP QUIT; do
		for delay in 0 1 10 50; do
			stopped "$name" "$delay" -- --python "$PYTHON" -- "$T/workload"
		done
	done
}

@test "likewise in the native check alone" {
	export LD_LIBRARY_PATH=$TOP/build/doubles/cuda KD_DOUBLE_FAULT=cuInit=hang
	local name delay
	for name in TERM INT HUP QUIT; do
		for delay in 0 1 10 50; do
			stopped "$name" "$delay" -- --framework none
		done
	done
}

@test "TERM at 0 ms, thirty times over: never lost, never later than the limit" {
	export PYTHONPATH=$STUBS KD_STUB=hang-import
	local most=0 handlers=()
	while [[ ${#handlers[@]} -lt 30 ]]; do
		stopped TERM 0 -- --python "$PYTHON" -- "$T/workload"
		most=$((took > most ? took : most))
		handlers+=("$(tail -n 1 ended | cut -d' ' -f3)")
	done
	echo "# slowest end: $most ms; from exec to handlers, ms: $(printf '%s\n' "${handlers[@]}" | sort -n | sed -n '1p;15p;30p' | paste -sd' ')" >&3
}

@test "handlers stand before anything else: only the C library's start comes first" {
	command -v strace >/dev/null || skip 'no strace here'
	strace -o trace "$KD" --version >out
	is 'execve arch_prctl set_tid_address rt_sigprocmask rt_sigaction' \
		"$(sed -E 's/\(.*//; 5q' trace | paste -sd' ')" 'first system calls'
	sed -n 4p trace | grep -q 'SIG_BLOCK, \[HUP INT QUIT TERM CHLD\]'
}

# In a stage: the worker hangs there; the signal comes a second later.
in_stage() { # STAGE ARG...
	local stage=$1 name
	shift
	for name in TERM INT HUP; do
		stopped "$name" 1000 -- --termination-log none "$@"
		is "\"$stage\"" "$(value stage "$report")" "stage of $name"
	done
}

@test "in each stage of the PyTorch worker" {
	local stage word
	mkdir site
	printf 'import time\ntime.sleep(60)\n' >site/sitecustomize.py
	variables=(PYTHONPATH="$T/site:$STUBS")
	in_stage interpreter --python "$PYTHON" -- "$T/workload"
	while read -r stage word; do
		variables=(PYTHONPATH="$STUBS" KD_STUB="$word")
		in_stage "$stage" --python "$PYTHON" -- "$T/workload"
	done <<-'E'
		import hang-import
		device hang-device
		product hang-product
		synchronization hang-sync
	E
}

@test "in each stage of the native worker" {
	local stage fault
	export LD_LIBRARY_PATH=$TOP/build/doubles/cuda
	while read -r stage fault; do
		KD_DOUBLE_FAULT=$fault in_stage "$stage" --framework none
	done <<-'E'
		device cuInit=hang
		allocation cuMemAlloc_v2=hang
		product cuLaunchKernel=hang
		gradient cuLaunchKernel#2=hang
		synchronization cuCtxSynchronize=hang
	E
}

@test "while one worker waits for another's turn" {
	export PYTHONPATH=$STUBS LD_LIBRARY_PATH=$TOP/build/doubles/cuda KD_DOUBLE_FAULT=cuInit=hang
	stopped TERM 1500 -- --python "$PYTHON" -- "$T/workload"
}

@test "the termination log says so too" {
	export PYTHONPATH=$STUBS KD_STUB=hang-import
	touch log
	stopped TERM 300 -- --python "$PYTHON" -- "$T/workload"
	grep -q '"code":"INTERRUPTED"' log
}

@test "nohup's ignored HUP stays ignored; TERM still stops" {
	export PYTHONPATH=$STUBS KD_STUB=hang-import
	"$TOP/build/programs/start-with" ignore=1 -- "$INIT" 1 300 -- "$KD" --timeout 5 --output r.json -- "$PYTHON" x.py >ended 2>err
	read -r status took _ < <(tail -n 1 ended)
	is 10 "$status" 'exit status'
	is '"TIMEOUT"' "$(value code r.json)"
	[[ $took -ge 4000 ]]
	"$TOP/build/programs/start-with" ignore=1 -- "$INIT" 15 300 -- "$KD" --timeout 5 --output r2.json -- "$PYTHON" x.py >ended 2>err
	read -r status took _ < <(tail -n 1 ended)
	is 143 "$status" 'exit status'
}

@test "USR1, WINCH, CONT and a stray CHLD stop nothing: PID 1 has no handler for them" {
	export PYTHONPATH=$STUBS
	mkdir slow && printf 'import time\ntime.sleep(1)\n' >slow/sitecustomize.py
	export PYTHONPATH=$T/slow:$STUBS
	local number
	for number in 17 10 28 18; do
		rm -f "$MARKER"
		# The wait for a handler is given up after 5 s where there is none; the check is over then.
		timeout 60 unshare --pid --fork --mount-proc --kill-child "$KD" --output "r$number.json" --python "$PYTHON" -- "$T/workload" \
			>out 2>err 3>&- &
		local outer=$! inner=''
		until [[ -n $inner ]]; do
			inner=$(pgrep -f "^$KD --output r$number.json" | head -n 1 || true)
			kill -0 "$outer"
		done
		sleep 0.3
		kill -"$number" "$inner"
		wait "$outer"
		is '"GPU_CHECK_PASSED"' "$(value code "r$number.json")"
		[[ -e $MARKER ]]
	done
}

# The report goes to a file system that takes its time: strace holds each fsync for a second.
@test "a signal while the report is written: saved as it is, exit 143, the workload is not started" {
	command -v strace >/dev/null || skip 'no strace here'
	export PYTHONPATH=$STUBS
	cat >signaller.py <<-'E'
		import os, signal, subprocess, sys, time
		process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
		while b'fsync' not in (open('trace', 'rb').read() if os.path.exists('trace') else b''): time.sleep(0.01)
		child = int(open('/proc/%d/task/%d/children' % (process.pid, process.pid)).read().split()[0])
		os.kill(child, signal.SIGTERM)
		print(process.wait())
	E
	"$PYTHON" signaller.py strace -o trace -e trace=fsync -e inject=fsync:delay_enter=1000000 \
		"$KD" --termination-log "$T/log" --output r.json --python "$PYTHON" -- ./workload >out 2>err
	is 143 "$(<out)" 'exit status'
	not_started
	valid r.json
	is '"GPU_CHECK_PASSED"' "$(value code r.json)" # the report stays the check's
	grep -q 'INTERRUPTED (exit 143)' err
	# Control: without the signal it starts.
	strace -o trace2 -e trace=fsync "$KD" --output r2.json --python "$PYTHON" -- ./workload 2>err
	[[ -e $MARKER ]]
}

@test "a signal after the hand-over is the workload's" {
	export PYTHONPATH=$STUBS
	cat >program.py <<-E
		import signal, sys, time
		signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
		open('$T/ready', 'w').close()
		time.sleep(30)
	E
	timeout 60 "$INIT" 15 0 "ready=$T/ready" -- "$KD" --output r.json -- "$PYTHON" program.py >ended 2>err
	read -r status took _ < <(tail -n 1 ended)
	is 7 "$status" 'exit status'
	is '"GPU_CHECK_PASSED"' "$(value code r.json)"
}

@test "a signal that the starter had blocked is the workload's too, after the check" {
	export PYTHONPATH=$STUBS
	printf 'import signal\nprint(sorted(map(int, signal.sigpending())))\n' >program.py
	"$TOP/build/programs/start-with" block=12 -- bash -c 'kill -12 $$; exec "$@"' - "$KD" -- "$PYTHON" program.py >out 2>err
	is '[12]' "$(<out)" 'pending'
}
