#!/usr/bin/env bats
# The Python worker by itself, without supervisor or sandbox: what it says for each shape of the stub, for a real PyTorch,
# and how it rebuilds sys.path. KD_PYTHONS may name further interpreters for the test of all of them.

setup_file() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
	export ROOT PROBE="$ROOT/src/worker/probe.py" STUBS="$ROOT/tests/stubs"
	export PY=${KD_PYTHON:-/usr/bin/python3}
	# The Python of the tests must not be steered by the environment of whoever runs them.
	unset PYTHONPATH PYTHONHOME PYTHONSAFEPATH PYTHONSTARTUP KD_STUB KD_STUB_DEVICES KD_STUB_ONLY
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	mkdir -p app work
}

# probe [FLAG]... -- KEY=VALUE...: the lines it says in $output, what it printed in the file printed. A turn is given.
probe() {
	local flags=()
	while [ "$1" != -- ]; do
		flags+=("$1")
		shift
	done
	shift
	run_probe() {
		printf g | timeout -s KILL "${LIMIT:-20}" "$PY" "${flags[@]}" -B -c "$(cat "$PROBE")" result=20 go=21 "$@" \
			20>&1 21<&0 3>&- 4>&- >printed 2>&1 </dev/null
	}
	run run_probe "$@"
}

stub() {
	local word=$1
	shift
	export PYTHONPATH="$STUBS" KD_STUB="$word"
	probe -- device=gpu index=0 "$@"
}

says() {
	local line
	for line in "$@"; do
		grep -qxF -- "$line" <<<"$output" || {
			printf 'not said: %s\n%s\nprinted:\n%s\n' "$line" "$output" "$(tail -n 5 printed)"
			return 1
		}
	done
}

says_no() {
	! grep -q -- "$1" <<<"$output" || {
		printf 'said: %s\n%s\n' "$1" "$output"
		return 1
	}
}

last_stage() {
	local last
	last=$(grep '^stage ' <<<"$output" | tail -n 1)
	[ "$last" = "stage $1" ] || {
		printf 'last: %s, wanted %s\n%s\n' "$last" "$1" "$output"
		return 1
	}
}

RIGHT=("product 40800000 40800000 41200000 41000000" "loss 43440000" "gradient 41800000 41c00000 42200000 42500000" "end pass")

@test "a real PyTorch computes on the CPU and is not asked about a GPU" {
	"$PY" -c 'import torch' 2>/dev/null || skip "no PyTorch in $PY (apt-get install python3-torch)"
	probe -- device=cpu
	[ "$status" -eq 0 ]
	says "stage interpreter" "stage import" "computed cpu" "stage allocation" "${RIGHT[@]}"
	says_no '^wait'
	says_no '^torch_gpu_available'
	says_no '^torch_device_count'
}

@test "a real CPU build in GPU mode has no backend" {
	"$PY" -c 'import sys, torch; sys.exit(bool(torch.version.cuda or torch.version.hip))' 2>/dev/null ||
		skip "$PY has no CPU build of PyTorch (apt-get install python3-torch)"
	probe -- device=gpu index=0
	says "torch_backend none" "fail GPU_BACKEND_ABSENT" "end fail"
	last_stage backend
	says_no '^wait'
}

@test "the stub that works: order of the stages, facts, and a turn before the device" {
	stub ""
	[ "$status" -eq 0 ]
	says "torch_version 2.99.0+stub" "torch_cuda 12.4" "torch_backend cuda" "torch_gpu_available 1" "torch_device_count 1" \
		"torch_arch_list sm_50,sm_80,sm_90,compute_90" "computed 0" "${RIGHT[@]}"
	says_no '^torch_hip'
	[ "$(grep -E '^(stage|wait|computed|end)' <<<"$output" | tr '\n' ' ')" = "stage interpreter stage import stage backend \
wait turn stage device computed 0 stage allocation stage product stage synchronization stage gradient \
stage synchronization end pass " ]
}

@test "no turn comes: it leaves without touching the GPU" {
	export PYTHONPATH="$STUBS" KD_STUB=abort-available
	run bash -c '"$PY" -B -c "$(cat "$PROBE")" result=20 go=21 device=gpu 20>&1 21</dev/null >/dev/null'
	[ "$status" -eq 0 ]
	says "wait turn"
	says_no 'stage device'
	says_no '^end'
}

@test "on the CPU a CUDA build never asks for the GPU" {
	export PYTHONPATH="$STUBS" KD_STUB=abort-available,no-device
	probe -- device=cpu
	says "torch_backend cuda" "torch_cuda 12.4" "computed cpu" "${RIGHT[@]}"
	says_no '^torch_gpu_available'
}

@test "every word of the stub's table is told as the table says" {
	# word | last stage | lines
	while IFS='|' read -r word stage lines; do
		LIMIT=10
		[[ $word != hang-* ]] || LIMIT=2
		stub "$word"
		last_stage "$stage" || { echo "word: $word"; return 1; }
		while [ -n "$lines" ]; do
			says "${lines%%;*}" || { echo "word: $word"; return 1; }
			case $lines in *\;*) lines=${lines#*;} ;; *) lines= ;; esac
		done
		says_no '/srv/secret'
	done <<-'TABLE'
		sigill|import|
		abort-import|import|
		hang-import|import|
		exit-import|import|
		system-exit|import|fail TORCH_IMPORT_FAILED;error_name SystemExit;end fail
		raise-import|import|fail TORCH_IMPORT_FAILED;error_name RuntimeError;call import torch;end fail
		missing-so|import|fail TORCH_IMPORT_FAILED;error_name OSError;missing libcudnn_of_the_stub.so.9
		wrapped-so|import|fail TORCH_IMPORT_FAILED;error_name ValueError;missing libcudnn_of_the_stub.so.9
		undefined-symbol|import|fail TORCH_IMPORT_FAILED;error_name ImportError;missing _ZN3c104cuda3getEv
		missing-version|import|fail TORCH_IMPORT_FAILED;missing GLIBC_2.99
		musl-so|import|fail TORCH_IMPORT_FAILED;missing libgomp.so.1
		musl-symbol|import|fail TORCH_IMPORT_FAILED;missing __strdup
		missing-module|import|fail TORCH_IMPORT_FAILED;error_name ModuleNotFoundError;missing a_dependency_of_the_stub
		missing-self|import|fail TORCH_IMPORT_FAILED;missing torch._C
		no-threads|import|fail TORCH_IMPORT_FAILED;error_name RuntimeError;hint threads-refused
		traceback|synchronization|end pass
		prints|synchronization|end pass
		close-fds|synchronization|end pass
		garbage|synchronization|garbage without a meaning
		close-all|import|
		reopen-all|import|
		cpu-build|backend|torch_backend none;fail GPU_BACKEND_ABSENT;end fail
		hip|synchronization|torch_backend hip;torch_hip 6.2.41133-dd7f95766;torch_arch_list gfx90a,gfx1100;end pass
		abort-available|device|
		hang-device|device|
		raise-available|device|torch_gpu_available 0;fail GPU_UNAVAILABLE;call torch.cuda.is_available;error_name RuntimeError
		no-device|device|torch_gpu_available 0;torch_device_count 0;fail GPU_UNAVAILABLE;error_name RuntimeError
		no-device-code|device|fail GPU_UNAVAILABLE;error_name AcceleratorError;error_number 100
		mig|synchronization|torch_device_count 0;computed 0;end pass
		oom|allocation|fail OUT_OF_MEMORY;error_name OutOfMemoryError;call torch.tensor
		oom-code|allocation|fail OUT_OF_MEMORY;error_number 2
		oom-text|allocation|fail RUNTIME_ERROR;error_name RuntimeError
		ecc|allocation|fail RUNTIME_ERROR;error_number 214
		no-kernel|product|fail RUNTIME_ERROR;hint wheel-lacks-architecture;call torch.matmul
		runtime-error|product|fail RUNTIME_ERROR
		crash|product|
		hang-product|product|
		zeros|synchronization|product 00000000 00000000 00000000 00000000;end pass
		nan|synchronization|product 7fc00000 7fc00000 7fc00000 7fc00000;end pass
		shape|synchronization|product 7fc00000 7fc00000 7fc00000 7fc00000;end pass
		wrong-loss|synchronization|product 40800000 40800000 41200000 41000000;loss 43450000;end pass
		wrong-gradient|synchronization|loss 43440000;gradient 41800000 41c00000 42200000 42500001;end pass
		no-gradient|synchronization|loss 43440000;gradient 7fc00000 7fc00000 7fc00000 7fc00000;end pass
		backward-error|gradient|product 40800000 40800000 41200000 41000000;fail RUNTIME_ERROR;call Tensor.backward
		sync-error|synchronization|during product;fail RUNTIME_ERROR;call torch.cuda.synchronize
		sync-error-late|synchronization|during gradient;fail RUNTIME_ERROR
		hang-sync|synchronization|
		exit-sync|synchronization|
	TABLE
}

@test "the table above knows every word of the stub" {
	grep -oE '^    [a-z-]+  +[^ -]' "$STUBS/torch/__init__.py" | awk '{print $1}' | grep -vx word | sort -u >words
	[ "$(wc -l <words)" -gt 40 ]
	while read -r word; do
		grep -qE "^[[:space:]]+$word\|" "$BATS_TEST_FILENAME" || { echo "missing: $word"; return 1; }
	done <words
}

@test "a short life says nothing that looks like an end" {
	for word in sigill abort-import exit-import abort-available crash exit-sync; do
		stub "$word"
		says_no '^end'
	done
}

@test "a broken result descriptor ends it with 1" {
	for word in close-all reopen-all; do
		stub "$word"
		[ "$status" -eq 1 ]
	done
	run "$PY" -B -c "$(cat "$PROBE")" result=99 device=cpu
	[ "$status" -eq 1 ]
}

@test "indices and the number of devices" {
	export KD_STUB_DEVICES=3
	stub "" index=2 expect=3
	says "torch_device_count 3" "computed 2" "end pass"
	stub "" index=3
	says "torch_device_count 3" "fail DEVICE_INDEX_INVALID" "end fail"
	last_stage device
	stub "" index=0 expect=4
	says "fail DEVICE_INDEX_INVALID"
	stub "" index=all
	[ "$(grep -E '^(computed|end)' <<<"$output" | tr '\n' ' ')" = "computed 0 computed 1 computed 2 end pass " ]
	KD_STUB_ONLY=1 stub oom index=all
	says "computed 0" "computed 1" "fail OUT_OF_MEMORY"
	says_no 'computed 2'
}

@test "torch missing, an empty folder, a foreign module" {
	export PY="$PY"
	probe -S -I -- device=cpu
	says "fail TORCH_MISSING" "missing torch" "error_name ModuleNotFoundError" "end fail"
	mkdir work/torch
	probe -S -E -s -- device=cpu "path0=$PWD/work"
	says "fail TORCH_IMPORT_FAILED" "hint torch-is-namespace"
	echo 'answer = 42' >app/torch.py
	probe -S -E -s -- device=cpu "path0=$PWD/app"
	says "fail TORCH_IMPORT_FAILED" "hint torch-is-foreign"
	echo 'import sys; sys.modules["torch"] = None' >app/sitecustomize.py
	PYTHONPATH=$PWD/app probe -- device=cpu
	says "fail TORCH_IMPORT_FAILED"
}

@test "a module beside the workload that hides one of torch's is named" {
	export PYTHONPATH="$STUBS"
	echo 'answer = 42' >app/random.py
	probe -- device=gpu "path0=$PWD/app"
	says "fail TORCH_IMPORT_FAILED" "error_name AttributeError" "hint module-shadowed" "call import random"
	echo 'raise ValueError' >app/random.py
	probe -- device=gpu "path0=$PWD/app"
	says "error_name ValueError" "hint module-shadowed"
	echo 'import not_there' >app/random.py
	probe -- device=gpu "path0=$PWD/app"
	says "error_name ModuleNotFoundError" "missing not_there" "hint module-shadowed"
	# The control: elsewhere the same import works; in the current folder it breaks, since -c looks there.
	probe -- device=gpu "path0=$PWD/work"
	says "end pass"
	cd app && probe -- device=gpu
	says "hint module-shadowed"
	# A module of the workload's own hides nothing.
	rm random.py
	echo 'pass' >helper.py
	KD_STUB=raise-import probe -- device=gpu
	says "fail TORCH_IMPORT_FAILED"
	says_no 'hint'
}

@test "nothing is imported before torch: modules beside the workload stay untouched" {
	export PYTHONPATH="$STUBS"
	for name in os posix re struct errno traceback codecs; do
		echo "open('$PWD/$name.was-imported', 'w')" >"app/$name.py"
	done
	probe -S -- device=gpu "path0=$PWD/app"
	# struct is the stub's own import, as it is the real one's; posix and errno are built in everywhere.
	run ls
	says_no 'posix.was-imported'
	says_no 're.was-imported'
	says_no 'errno.was-imported'
	says_no 'traceback.was-imported'
}

# One sys.path[0] per way to start a script, as the interpreter itself makes it, against what the probe makes of it.
@test "sys.path is the one the script would find" {
	cat >app/torch.py <<-'EOT'
		import sys
		open('path', 'w').write(repr(sys.path))
	EOT
	echo 'import sys; open("script-path", "w").write(repr(sys.path))' >app/train.py
	for flags in "" "-E" "-s" "-I" "-S" "-Es"; do
		# shellcheck disable=SC2086
		"$PY" $flags app/train.py
		# shellcheck disable=SC2086
		PYTHONPATH='' probe $flags -- device=cpu "path0=$PWD/app"
		if [ "$flags" != -I ]; then
			[ "$(cat path)" = "$(cat script-path)" ] || { echo "$flags"; cat path script-path; return 1; }
		else
			[ ! -e path ] # app is not on the path there, so its torch.py is not met
		fi
		rm -f path
	done
	cp app/train.py app/__main__.py
	"$PY" -I app
	probe -I -- device=cpu "path0_always=app"
	[ "$(sed "s|$PWD/||" path)" = "$(sed "s|$PWD/||" script-path)" ]
}

@test "a path0 that is empty, odd or not UTF-8 is taken as it is" {
	echo 'answer = 42' >app/torch.py
	(cd app && probe -S -E -s -- device=cpu path0= && says "hint torch-is-foreign")
	odd="$PWD/a=b c"$'\xff'
	mkdir "$odd" && cp app/torch.py "$odd"
	probe -S -E -s -- device=cpu "path0=$odd"
	says "hint torch-is-foreign"
}

@test "a sitecustomize that prints changes nothing" {
	echo 'print("end pass\n" * 100)' >app/sitecustomize.py
	PYTHONPATH=$STUBS:$PWD/app probe -- device=gpu
	says "${RIGHT[@]}"
	grep -q 'end pass' printed
}

@test "what the probe says is in the grammar: one space, printable, short lines" {
	for word in "" hip raise-import undefined-symbol oom; do
		stub "$word"
		! grep -vE '^[a-z0-9_]+ [!-~]([ -~]*[!-~])?$' <<<"$output"
		[ "$(wc -L <<<"$output")" -lt 512 ]
	done
}

@test "the interpreters of this machine from 3.8 on" {
	ran=0
	for python in ${KD_PYTHONS:-} "$HOME"/.pyenv/versions/*/bin/python3 /usr/bin/python3; do
		[ -x "$python" ] && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' || continue
		PY=$python
		stub ""
		says "${RIGHT[@]}" || { echo "$python"; return 1; }
		stub missing-module
		says "missing a_dependency_of_the_stub"
		unset PYTHONPATH
		probe -I -S -- device=cpu
		says "fail TORCH_MISSING"
		ran=$((ran + 1))
	done
	echo "# $ran interpreters" >&3
	[ "$ran" -gt 0 ]
}
