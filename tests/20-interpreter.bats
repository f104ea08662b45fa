#!/usr/bin/env bats
# Which Python is checked, and how it is started, through the real program. The lookup itself: unit tests of workload and
# interpreter; the probe itself: probe.bats.

load helper

# A torch that tells how its interpreter was started, in the local part of its version, and is a CPU build otherwise.
telling_torch() {
	mkdir -p "$1/torch"
	cat >"$1/torch/__init__.py" <<-'E'
		import os, sys
		name = os.environ.get('TELL', 'prefix')
		flags = sys.flags
		__version__ = '1+' + {
		    'flags': 'I%dE%ds%dS%dO%dB%d' % (flags.isolated, flags.ignore_environment, flags.no_user_site, flags.no_site,
		                                     flags.optimize, flags.dont_write_bytecode),
		    'path0': 'path0-' + os.path.basename(sys.path[0]),
		    'prefix': 'prefix-' + os.path.basename(sys.prefix),
		    'x': 'x-' + '-'.join(sorted(sys._xoptions)),
		    'w': 'w-' + '-'.join(sys.warnoptions),
		}[name]
		tensor = matmul = float32 = device = print
		class version: cuda = hip = None
	E
	touch "$1/torch/version.py"
}

version() { value pytorch.version "$1" | sed 's/"1+/"/'; }

# told WANTED COMMAND...: the version that telling_torch told of the checked interpreter.
told() {
	local wanted=$1
	shift
	rm -f r.json
	kd --output r.json -- "$@"
	is 5 "$status" "$*" && is "\"$wanted\"" "$(version r.json)" "$*"
}

@test "PROGRAM itself, its console scripts and its virtual environment: the very interpreter is checked" {
	"$PYTHON" -m venv --without-pip venv-one
	"$PYTHON" -m venv --without-pip venv-two
	local site
	for site in venv-one venv-two; do telling_torch "$(echo "$T/$site"/lib/python3*/site-packages)"; done
	echo pass >train.py
	printf '#!%s/venv-one/bin/python\npass\n' "$T" >torchrun
	printf '#!/usr/bin/env python3\npass\n' >accelerate
	printf '#!/usr/bin/env -S python3 -s\npass\n' >vllm
	printf '#!/bin/sh\n'"'''exec' \"%s/venv-two/bin/python3\" \"\$0\" \"\$@\"\n' '''\npass\n" "$T" >long-path
	chmod +x torchrun accelerate vllm long-path
	told prefix-venv-one venv-one/bin/python train.py
	told prefix-venv-two "$T/venv-two/bin/python3" -c pass
	told prefix-venv-one ./torchrun train.py
	PATH=$T/venv-two/bin:$PATH told prefix-venv-two ./accelerate
	PATH=$T/venv-one/bin:$PATH told prefix-venv-one ./vllm
	told prefix-venv-two ./long-path
	told prefix-venv-one /usr/bin/env venv-one/bin/python train.py
	# --python, where PROGRAM does not tell
	kd --python venv-two/bin/python --output r2.json -- /bin/sh -c 'exec venv-two/bin/python train.py'
	is 5 "$status"
	is '"prefix-venv-two"' "$(version r2.json)"
}

@test "the interpreter's flags are the workload's" {
	"$PYTHON" -m venv --without-pip venv
	telling_torch "$(echo "$T"/venv/lib/python3*/site-packages)"
	export TELL=flags
	told I0E0s0S0O0B1 venv/bin/python x.py
	told I1E1s1S0O0B1 venv/bin/python -I x.py
	told I0E1s1S0O0B1 venv/bin/python -Es x.py
	told I0E0s0S0O2B1 venv/bin/python -OO x.py
	TELL=x told x-dev-utf8 venv/bin/python -X dev -Xutf8 x.py
	TELL=w told w-error venv/bin/python -W error x.py || TELL=w told w-error venv/bin/python -Werror x.py
}

@test "sys.path[0] is the workload's: the script's folder, -m, -c, and none under -I" {
	"$PYTHON" -m venv --without-pip venv
	telling_torch "$(echo "$T"/venv/lib/python3*/site-packages)"
	mkdir -p app package.d && echo pass >app/train.py && ln -s app/train.py linked.py && echo pass >package.d/__main__.py
	export TELL=path0
	told path0-app venv/bin/python app/train.py
	told path0-app venv/bin/python linked.py
	told path0-package.d venv/bin/python package.d
	told "path0-$(basename "$T")" venv/bin/python -m this
	told path0- venv/bin/python -c pass
	told "path0-$(basename "$(echo /usr/lib/python3*.zip)")" venv/bin/python -I app/train.py ||
		[[ $(version r.json) == *zip\" ]]
}

@test "a random.py or an empty folder torch/ beside the program breaks the check as it breaks the workload" {
	mkdir app && echo pass >app/train.py
	# Control: without them it is Debian's PyTorch.
	kd -- "$PYTHON" app/train.py
	is 5 "$status"
	echo 'raise RuntimeError("shadow")' >app/random.py
	kd --output r1.json -- "$PYTHON" app/train.py
	expect 4 TORCH_IMPORT_FAILED import r1.json
	has_hint module-shadowed r1.json
	rm app/random.py
	mkdir -p bare/torch && echo pass >bare/train.py
	"$PYTHON" -m venv --without-pip venv
	kd --output r2.json -- venv/bin/python bare/train.py
	expect 4 TORCH_IMPORT_FAILED import r2.json
	has_hint torch-is-namespace r2.json
	rmdir bare/torch
	kd --output r3.json -- venv/bin/python bare/train.py
	expect 3 TORCH_MISSING import r3.json
}

@test "a shell wrapper that calls itself python: 13, python-is-wrapper, never a skipped rung" {
	mkdir shims && printf '#!/bin/sh\nexec %s "$@"\n' "$PYTHON" >shims/python3 && chmod +x shims/python3
	kd -- shims/python3 train.py
	is 13 "$status"
	PATH=$T/shims:$PATH kd
	expect 13 INTERPRETER_FAILED interpreter
	has_hint python-is-wrapper
	PATH=$T/shims:$PATH kd --device cpu
	expect 13 INTERPRETER_FAILED interpreter
	kd --python "$T/shims/python3" --device cpu
	expect 13 INTERPRETER_FAILED interpreter
	# Control: what it wraps is fine.
	kd --python "$PYTHON" --device cpu
	expect 0 CPU_CHECK_PASSED complete
}

@test "dangling links: PROGRAM 127, --python 13, and the message says so" {
	ln -s /nowhere/python3 python3
	kd --output r1.json -- ./python3 train.py
	expect 127 WORKLOAD_NOT_FOUND workload r1.json
	grep -q 'link' err
	kd --python ./python3 --output r2.json -- "$T/workload"
	expect 13 INTERPRETER_FAILED interpreter r2.json
	grep -q 'link' err
	not_started
}

@test "a Python without PyTorch: 3; on PATH and not asked for it is only 'not checked'" {
	"$PYTHON" -m venv --without-pip venv
	kd --output r1.json -- venv/bin/python train.py
	expect 3 TORCH_MISSING import r1.json
	PATH=$T/venv/bin kd
	is 5 "$status"
	is null "$(value pytorch)"
	grep -q 'PyTorch: not checked' err
	PATH=$T/venv/bin kd --framework torch
	expect 3 TORCH_MISSING import
	PATH=$T/nothing kd --framework torch
	expect 13 INTERPRETER_FAILED interpreter
	PATH=$T/nothing kd
	is 5 "$status"
}

@test "the real PyTorch (Debian's CPU build): passes on the CPU, has no GPU backend, with and without our sandbox" {
	kd --device cpu --python "$PYTHON"
	expect 0 CPU_CHECK_PASSED complete
	is '"torch"' "$(value execution.by)"
	is 196 "$(value execution.loss)"
	is null "$(value pytorch.gpu_available)"
	is null "$(value pytorch.visible_device_count)"
	is null "$(value driver)"
	is true "$(value sandbox.seccomp)"
	"$TOP/tests/validate-report" --forbid "$T" --forbid "$HOME" --forbid "$(hostname)-" out
	kd --device cpu --python "$PYTHON" --sandbox off
	expect 0 CPU_CHECK_PASSED complete
	is false "$(value sandbox.seccomp)"
	has_hint sandbox-off
	grep -q WARNING err
	echo "open('$MARKER', 'w')" >train.py
	kd --output r.json -- "$PYTHON" train.py
	expect 5 GPU_BACKEND_ABSENT backend r.json
	not_started
}

@test "native only: passes on the CPU in a root without any Python, with glibc, with musl, and with no loader at all" {
	need_root
	mkdir -p glibc/lib64 glibc/lib/x86_64-linux-gnu musl/lib none
	local root
	cp /lib64/ld-linux-x86-64.so.2 glibc/lib64/ && cp /lib/x86_64-linux-gnu/{libc.so.6,libdl.so.2} glibc/lib/x86_64-linux-gnu/
	cp /lib/x86_64-linux-musl/libc.so musl/lib/ld-musl-x86_64.so.1
	for root in glibc musl none; do
		mkdir -p "$root/proc" "$root/dev" && cp "$KD" "$root/kd-preflight"
		status=0
		unshare --mount --pid --fork sh -c "mount -t proc proc $root/proc && exec chroot $root /kd-preflight --device cpu --framework none" >out 2>err || status=$?
		expect 0 CPU_CHECK_PASSED complete
		is '"native"' "$(value execution.by)"
		value runtime.libc >>libcs
		status=0
		unshare --mount --pid --fork sh -c "mount -t proc proc $root/proc && exec chroot $root /kd-preflight" >out 2>err || status=$?
		expect 5 GPU_BACKEND_ABSENT backend
		value hints >>hints
	done
	grep -q glibc libcs && grep -q musl libcs && grep -q null libcs
	sed -n 2p hints | grep -q musl-image
	sed -n 3p hints | grep -q no-loader
}

@test "an interpreter under a name of its maker's is a Python all the same; a script of such a name is not" {
	export PYTHONPATH=$STUBS
	cp "$(readlink -f "$PYTHON")" python3.11-custom
	KD_STUB=raise-import kd --output r1.json -- ./python3.11-custom x.py
	expect 4 TORCH_IMPORT_FAILED import r1.json
	printf '#!/bin/sh\ntrue\n' >python-tool && chmod +x python-tool
	KD_STUB=raise-import kd --output r2.json -- ./python-tool
	is 5 "$status"
	is null "$(value pytorch r2.json)"
}
