#!/usr/bin/env bats
# Every code of the contract, reached through the real program: exit status, code, stage, a valid report in the file and
# on stdout alike, the word in the human line, and a workload that never starts without a pass.

load helper

# One row a code: how it is reached | exit status | code | stage. PROGRAM rows end in the workload, which would leave a
# marker; `-` stands for a run without PROGRAM. Variables come first. The passes of the GPU rows are a stub PyTorch's that
# really computes in plain Python.
rows() {
	cat <<-ROWS
		KD_STUB=                      -- $PYTHON program.py      | 0   | GPU_CHECK_PASSED        | complete
		A=b                           --device cpu --framework none | 0 | CPU_CHECK_PASSED       | complete
		A=b                           --timeout 4 -- $T/workload | 2   | USAGE_ERROR             | arguments
		KD_PREFLIGHT_NONSENSE=1       -- $T/workload             | 2   | USAGE_ERROR             | arguments
		PYTHONPATH=$T/none            -- bare-venv/bin/python3 program.py| 3   | TORCH_MISSING           | import
		KD_STUB=raise-import          -- $PYTHON program.py      | 4   | TORCH_IMPORT_FAILED     | import
		KD_STUB=missing-so            -- $PYTHON program.py      | 4   | TORCH_IMPORT_FAILED     | import
		KD_STUB=cpu-build             -- $PYTHON program.py      | 5   | GPU_BACKEND_ABSENT      | backend
		A=b                           -- $T/workload             | 5   | GPU_BACKEND_ABSENT      | backend
		KD_STUB=no-device             -- $PYTHON program.py      | 6   | GPU_UNAVAILABLE         | device
		A=b                           --device-index 1 -- $PYTHON program.py | 7 | DEVICE_INDEX_INVALID | device
		A=b                           --expect-devices 2 -- $PYTHON program.py | 7 | DEVICE_INDEX_INVALID | device
		KD_STUB=zeros                 -- $PYTHON program.py      | 8   | CHECK_FAILED            | product
		KD_STUB=wrong-loss            -- $PYTHON program.py      | 8   | CHECK_FAILED            | gradient
		KD_STUB=wrong-gradient        -- $PYTHON program.py      | 8   | CHECK_FAILED            | gradient
		KD_STUB=oom                   -- $PYTHON program.py      | 9   | OUT_OF_MEMORY           | allocation
		KD_STUB=ecc                   -- $PYTHON program.py      | 9   | RUNTIME_ERROR           | allocation
		KD_STUB=no-kernel             -- $PYTHON program.py      | 9   | RUNTIME_ERROR           | product
		KD_STUB=backward-error        -- $PYTHON program.py      | 9   | RUNTIME_ERROR           | gradient
		KD_STUB=sync-error            -- $PYTHON program.py      | 9   | RUNTIME_ERROR           | synchronization
		KD_STUB=hang-import           --timeout 5 -- $PYTHON program.py | 10 | TIMEOUT            | import
		KD_STUB=hang-device           --timeout 5 -- $PYTHON program.py | 10 | TIMEOUT            | device
		KD_STUB=sigill                -- $PYTHON program.py      | 11  | WORKER_FAILED           | import
		KD_STUB=abort-available       -- $PYTHON program.py      | 11  | WORKER_FAILED           | device
		KD_STUB=crash                 -- $PYTHON program.py      | 11  | WORKER_FAILED           | product
		KD_STUB=exit-sync             -- $PYTHON program.py      | 11  | WORKER_FAILED           | synchronization
		KD_STUB=garbage               -- $PYTHON program.py      | 11  | WORKER_FAILED           | import
		A=b                           --python $T/none -- $T/workload | 13 | INTERPRETER_FAILED   | interpreter
		A=b                           --python $T/dies -- $T/workload | 13 | INTERPRETER_FAILED   | interpreter
		PATH=$T/shims:/usr/bin:/bin   --device cpu               | 13  | INTERPRETER_FAILED      | interpreter
		A=b                           -- $T/no-shebang           | 126 | WORKLOAD_NOT_EXECUTABLE | workload
		A=b                           -- $T/none                 | 127 | WORKLOAD_NOT_FOUND      | workload
	ROWS
}

prepare() {
	echo "open('$MARKER', 'w')" >program.py
	echo 'echo started' >no-shebang && chmod +x no-shebang
	mkdir -p shims && printf '#!/bin/sh\nexec /usr/bin/python3 "$@"\n' >shims/python3 && chmod +x shims/python3
	cp /bin/false dies
	# An interpreter without site-packages: a venv sees no torch.
	"$PYTHON" -m venv --without-pip bare-venv
	export PYTHONPATH=$STUBS
}

run_row() { # VARIABLE ARGUMENTS
	local variable=$1 output=$T/report-$RANDOM.json
	shift
	(
		export "${variable?}"
		kd --output "$output" "$@"
		echo "$status" >"$T/status"
	)
	status=$(<"$T/status")
	saved=$output
}

@test "each code: exit status, code, stage, report, human line, no workload without a pass" {
	prepare
	local row failures=0 count=0
	local -a words
	while IFS='|' read -r row wanted_status code stage; do
		read -ra words <<<"$row"
		read -r wanted_status <<<"$wanted_status"; read -r code <<<"$code"; read -r stage <<<"$stage"
		rm -f "$MARKER"
		run_row "${words[@]}"
		count=$((count + 1))
		if ! expect "$wanted_status" "$code" "$stage" "$saved" || ! grep -q "kd-preflight: $code (exit $wanted_status)" "$T/err"; then
			echo "row: $row"; cat "$T/err"; failures=$((failures + 1)); continue
		fi
		if [[ $code == GPU_CHECK_PASSED ]]; then
			[[ -e $MARKER ]] || { echo "not started: $row"; failures=$((failures + 1)); }
		else
			not_started || { echo "row: $row"; failures=$((failures + 1)); }
		fi
		if [[ $row == *' -- '* ]]; then
			[[ ! -s $T/out ]] || { echo "stdout is the workload's: $row"; failures=$((failures + 1)); }
		else
			is "\"$code\"" "$(value code)" 'code on stdout' || failures=$((failures + 1))
		fi
	done < <(rows)
	echo "$count rows, $failures failures"
	[[ $failures -eq 0 && $count -gt 30 ]]
	nothing_left
}

@test "12: a report that cannot be saved replaces a pass, and the workload is not started" {
	prepare
	touch there.json
	kd --output there.json -- "$PYTHON" program.py
	is 12 "$status"
	not_started
	grep -q 'OUTPUT_WRITE_FAILED (exit 12).*there.json' err
	is 0 "$(stat -c %s there.json)" 'the file that was there'
	kd --device cpu --framework none --output there.json
	expect 12 OUTPUT_WRITE_FAILED output
}

@test "14: without seccomp the sandbox fails; best-effort goes on and says so" {
	prepare
	# A starter whose own filter refuses the installation of any further one, as an old kernel would.
	kd_without_seccomp() {
		status=0
		"$TOP/build/programs/without-syscall" seccomp prctl-seccomp -- "$KD" "$@" >"$T/out" 2>"$T/err" || status=$?
	}
	kd_without_seccomp --device cpu --framework none
	expect 14 SANDBOX_FAILED sandbox
	kd_without_seccomp --device cpu --framework none --sandbox best-effort
	expect 0 CPU_CHECK_PASSED complete
	is false "$(value sandbox.seccomp)"
	has_hint sandbox-weak
}

@test "128+n: a signal stops the check" {
	prepare
	KD_STUB=hang-import "$KD" --output report.json -- "$PYTHON" program.py 2>err &
	local pid=$!
	sleep 1
	kill -TERM "$pid"
	status=0
	wait "$pid" || status=$?
	expect 143 INTERRUPTED import "$T/report.json"
	not_started
	refute pgrep -s "$pid"
}

@test "--list-codes names every code of the schema, with its exit status" {
	kd --list-codes
	is 0 "$status"
	local code
	for code in $("$PYTHON" -c 'import json,sys; print(*json.load(open(sys.argv[1]))["$defs"]["code"]["enum"])' "$TOP/src/report.schema.json"); do
		grep -qE "^[0-9n+]+ +$code " out || { echo "missing: $code"; return 1; }
	done
	is 19 "$(wc -l <out)"
}
