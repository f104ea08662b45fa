#!/usr/bin/env bats
# FIELD-NOTES.md, "Shapes": what goes wrong in the field, each row by its number, without a GPU. The drivers are doubles
# (tests/doubles), PyTorch is a stub where no real one is named, device nodes are stand-ins in a private mount namespace.
# Every row has its control: the same set-up without the fault passes, or lacks the hint.

# Each test is a process of its own, and so are its exports.
# shellcheck disable=SC2030,SC2031,SC2119,SC2120

load helper

NODES=() AS=()

over() { export LD_LIBRARY_PATH=$TOP/build/doubles/$1; }

stub() {
	export PYTHONPATH=$STUBS KD_STUB=$1
	printf 'open("%s", "w")\n' "$MARKER" >program.py
}

native() { # ARG...
	rm -f "$MARKER" report.json
	kd --framework none --output report.json "$@" -- ./workload
}

torch() { # ARG...
	rm -f "$MARKER" report.json
	kd --output report.json "$@" -- "$PYTHON" program.py
}

# dev ARG...: as kd, in a mount namespace of its own whose /dev holds the usual nodes and NODES, as the user that AS says.
# A node is NAME:MODE:GROUP, and opens as /dev/null does; or NAME:lost:GROUP, which answers EPERM to open as a node does
# that the container's device rules no longer list (here a file that nobody may change: mknod would not do).
dev() {
	status=0
	# shellcheck disable=SC2016 # expanded in the namespace
	timeout --kill-after=5 100 unshare --mount --propagation private bash -euc '
		mount -t tmpfs -o mode=755 none /mnt
		for usual in "null 3" "zero 5" "full 7" "random 8" "urandom 9"; do
			mknod -m 666 "/mnt/${usual% *}" c 1 "${usual#* }"
		done
		ln -s /proc/self/fd /mnt/fd
		mkdir /mnt/shm /mnt/dri
		count=$1
		shift
		for node in "${@:1:count}"; do
			IFS=: read -r name mode group <<<"$node"
			if [[ $mode == lost ]]; then
				touch "/mnt/$name"
				chattr +i "/mnt/$name"
			else
				mknod -m "$mode" "/mnt/$name" c 1 3
				chgrp "$group" "/mnt/$name"
			fi
		done
		shift "$count"
		mount --move /mnt /dev
		exec "$@"
	' _ "${#NODES[@]}" "${NODES[@]}" "${AS[@]}" "$KD" "$@" >"$T/out" 2>"$T/err" </dev/null || status=$?
}

native_dev() {
	rm -f "$MARKER" report.json
	dev --framework none --output report.json "$@" -- ./workload
}

torch_dev() {
	rm -f "$MARKER" report.json
	dev --output report.json "$@" -- "$PYTHON" program.py
}

# as UID [GROUPS]: what dev runs, runs as this user, who may write in the test's folder.
as() {
	local folder=$T
	AS=(setpriv --reuid "$1" --regid "$1")
	if [[ $# -gt 1 ]]; then AS+=(--groups "$2"); else AS+=(--clear-groups); fi
	while [[ $folder == /*/* ]]; do
		chmod o+x "$folder"
		folder=${folder%/*}
	done
	chmod 777 "$T"
}

passed() {
	expect 0 GPU_CHECK_PASSED complete report.json && { [[ -e $MARKER ]] || { echo 'not started'; return 1; }; }
}

failed() { # STATUS CODE STAGE
	expect "$@" report.json && not_started
}

hint() {
	local id
	for id; do has_hint "$id" report.json || return 1; done
}

no_hint() {
	[[ $(value hints report.json) != *"\"$1\""* ]] || { echo "hint $1: $(value hints report.json)"; return 1; }
}

# copy_double: the CUDA double's sources in copy/, for a test to change; altered FOLDER: FOLDER/libcuda.so.1 made of them.
copy_double() {
	mkdir -p copy/tests/doubles
	cp "$TOP"/tests/doubles/*.[ch] copy/tests/doubles/
	ln -s "$TOP/build" copy/build
	ln -s "$TOP/kernels" copy/kernels
}

altered() {
	mkdir "$1"
	(cd copy && "${HOST_CC:-gcc}" -std=c11 -D_GNU_SOURCE -O1 -fPIC -shared -fvisibility=hidden -o "../$1/libcuda.so.1" \
		tests/doubles/{cuda,double,fault,mask}.c kernels/check.c)
}

# error NUMBER NAME: the driver's own, in the report
error() {
	is "$1" "$(value detail.error_number report.json)" && is "\"$2\"" "$(value detail.error_name report.json)"
}

ALL_NVIDIA=(nvidiactl:666:0 nvidia0:666:0 nvidia-uvm:666:0)

@test "field note 1: the GPU vanished from a running container (daemon-reload)" {
	need_root
	over cuda
	NODES=(nvidiactl:lost:0 nvidia0:lost:0 nvidia-uvm:lost:0)
	KD_DOUBLE_FAULT=cuInit=error:999 native_dev
	failed 6 GPU_UNAVAILABLE device
	error 999 CUDA_ERROR_UNKNOWN
	hint container-lost-gpu
	NODES=("${ALL_NVIDIA[@]}")
	KD_DOUBLE_FAULT=cuInit=error:999 native_dev
	failed 6 GPU_UNAVAILABLE device
	no_hint container-lost-gpu
	native_dev
	passed
}

@test "field note 2: 802 on an NVSwitch host: the fabric manager" {
	over cuda
	KD_DOUBLE_FAULT=cuInit=error:802 native
	failed 6 GPU_UNAVAILABLE device
	error 802 CUDA_ERROR_SYSTEM_NOT_READY
	hint fabric-manager
	native
	passed
	no_hint fabric-manager
}

compat() {
	mkdir -p compat
	cp "$TOP/build/doubles/cuda/libcuda.so.1" compat/
	export LD_LIBRARY_PATH=$T/compat
}

@test "field note 3: 803, a compat library shadows the host's driver" {
	compat
	KD_DOUBLE_FAULT=cuInit=error:803 native
	failed 6 GPU_UNAVAILABLE device
	error 803 CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
	is '"compat"' "$(value driver.library_origin report.json)"
	hint driver-library-mismatch library-compat
	over cuda
	KD_DOUBLE_FAULT=cuInit=error:803 native
	failed 6 GPU_UNAVAILABLE device
	no_hint library-compat
	compat
	native
	passed
	no_hint library-compat
}

@test "field note 4: 804, forward compatibility on a card that has none" {
	compat
	KD_DOUBLE_FAULT=cuInit=error:804 native
	failed 6 GPU_UNAVAILABLE device
	error 804 CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE
	hint compat-needs-datacenter library-compat
	native
	passed
}

@test "field note 5: a stub library on the path" {
	over cuda
	KD_DOUBLE_FAULT=cuInit=error:34 native
	failed 5 GPU_BACKEND_ABSENT backend
	error 34 CUDA_ERROR_STUB_LIBRARY
	hint library-stub
	native
	passed
}

@test "field note 5: a real toolkit's stub library on the path" {
	local real
	real=$(find /usr/local/cuda*/ -path '*/stubs/libcuda.so' -print -quit 2>/dev/null || true)
	[[ -n $real ]] || skip 'no CUDA toolkit here, whose stub library this test needs'
	mkdir stubs
	ln -s "$real" stubs/libcuda.so.1
	export LD_LIBRARY_PATH=$T/stubs
	native
	failed 5 GPU_BACKEND_ABSENT backend
	error 34 CUDA_ERROR_STUB_LIBRARY
	hint library-stub
	is '"stub"' "$(value driver.library_origin report.json)"
	unset LD_LIBRARY_PATH
	native
	failed 5 GPU_BACKEND_ABSENT backend
	no_hint library-stub
}

@test "field note 6: nvidia-smi works, the CUDA library is not mounted" {
	need_root
	mkdir bin
	printf '#include <stdio.h>\nint main(void) { return puts("535.183.01, 81559") < 0; }\n' >smi.c
	"${HOST_CC:-gcc}" -o bin/nvidia-smi smi.c
	NODES=("${ALL_NVIDIA[@]}")
	PATH=$T/bin:$PATH native_dev --host-check
	failed 5 GPU_BACKEND_ABSENT backend
	hint capabilities-without-compute
	is '"libcuda.so.1"' "$(value detail.missing report.json)"
	is null "$(value host_check.problem report.json)"
	is '"535.183.01"' "$(value host_check.driver_version report.json)"
	NODES=()
	native_dev
	failed 5 GPU_BACKEND_ABSENT backend
	no_hint capabilities-without-compute
	NODES=("${ALL_NVIDIA[@]}")
	over cuda
	native_dev
	passed
}

@test "field note 7: the driver is mounted where GKE puts it, off the path" {
	need_root
	# shellcheck disable=SC2016 # expanded in the namespace
	local gke='mount -t tmpfs none /usr/local; mkdir -p /usr/local/nvidia/lib64
		cp "$1/libcuda.so.1" /usr/local/nvidia/lib64/; shift; exec "$@"'
	status=0
	unshare --mount --propagation private bash -euc "$gke" _ "$TOP/build/doubles/cuda" \
		"$KD" --framework none --output report.json -- ./workload 2>err || status=$?
	failed 5 GPU_BACKEND_ABSENT backend
	hint library-off-path
	rm report.json
	status=0
	LD_LIBRARY_PATH=/usr/local/nvidia/lib64 unshare --mount --propagation private bash -euc "$gke" _ \
		"$TOP/build/doubles/cuda" "$KD" --framework none --output report.json -- ./workload 2>err
	passed
	is '"system"' "$(value driver.library_origin report.json)"
}

@test "field note 8: a musl image: the driver needs glibc, never 'no GPU'" {
	local loader
	loader=$(find /lib /usr/lib -maxdepth 1 -name 'ld-musl-*.so.1' -print -quit)
	[[ -n $loader ]] || skip 'no musl loader here (Debian package musl)'
	printf 'int main(int argc, char **argv) { (void)argc; FILE *f = fopen(argv[1], "w"); return !f || fclose(f); }\n' |
		sed '1i #include <stdio.h>' >touch.c
	"${MUSL_CC:-musl-gcc}" -o touch-musl touch.c
	"${HOST_CC:-gcc}" -o touch-glibc touch.c
	over cuda
	kd --output report.json -- ./touch-musl "$MARKER"
	failed 5 GPU_BACKEND_ABSENT backend
	hint musl-image
	is '"musl"' "$(value runtime.libc report.json)"
	rm report.json
	kd --output report.json -- ./touch-glibc "$MARKER"
	passed
	no_hint musl-image
}

@test "field note 9: 999 and no /dev/nvidia-uvm" {
	need_root
	over cuda
	NODES=(nvidiactl:666:0 nvidia0:666:0)
	KD_DOUBLE_FAULT=cuInit=error:999 native_dev
	failed 6 GPU_UNAVAILABLE device
	hint uvm-missing
	NODES=("${ALL_NVIDIA[@]}")
	KD_DOUBLE_FAULT=cuInit=error:999 native_dev
	failed 6 GPU_UNAVAILABLE device
	no_hint uvm-missing
	native_dev
	passed
}

@test "field note 10: the device node's group is not among this user's" {
	need_root
	over cuda
	NODES=(nvidiactl:660:44 nvidia0:660:44 nvidia-uvm:660:44)
	as 12345
	KD_DOUBLE_FAULT=cuInit=error:999 native_dev
	failed 6 GPU_UNAVAILABLE device
	hint device-node-group
	is '"group 44"' "$(value detail.missing report.json)"
	as 12345 44
	KD_DOUBLE_FAULT=cuInit=error:999 native_dev
	failed 6 GPU_UNAVAILABLE device
	no_hint device-node-group
	NODES=(nvidiactl:600:44 nvidia0:600:44 nvidia-uvm:600:44)
	KD_DOUBLE_FAULT=cuInit=error:999 native_dev
	failed 6 GPU_UNAVAILABLE device
	hint device-node-permission
	no_hint device-node-group
	native_dev
	passed
}

@test "field note 11: 46, busy or in exclusive mode, is no broken hardware" {
	over cuda
	KD_DOUBLE_FAULT=cuDevicePrimaryCtxRetain=error:46 native
	failed 6 GPU_UNAVAILABLE device
	error 46 CUDA_ERROR_DEVICE_UNAVAILABLE
	hint exclusive-mode
	native
	passed
}

@test "field note 12: the scheduler's mask names a host ordinal" {
	over cuda
	CUDA_VISIBLE_DEVICES=3 native
	failed 6 GPU_UNAVAILABLE device
	hint mask-set
	CUDA_VISIBLE_DEVICES=0 native
	passed
	no_hint mask-set
	CUDA_VISIBLE_DEVICES=0 native --device-index 1
	failed 7 DEVICE_INDEX_INVALID device
	hint mask-set
}

@test "field note 13: the second MIG instance is never visible" {
	over cuda
	native --device-index 1
	failed 7 DEVICE_INDEX_INVALID device
	native --device-index 0
	passed
	# An older PyTorch counts none under MIG, and computes.
	stub mig
	torch
	passed
	torch --device-index 1
	failed 7 DEVICE_INDEX_INVALID device
}

@test "field note 14: the wheel has no code for the card" {
	stub no-kernel
	torch
	failed 9 RUNTIME_ERROR product
	hint wheel-lacks-architecture
	stub ''
	torch
	passed
	over cuda
	KD_DOUBLE_FAULT=cuModuleLoadData=error:209 native
	failed 9 RUNTIME_ERROR product
	error 209 CUDA_ERROR_NO_BINARY_FOR_GPU
	hint no-kernel-image
	native
	passed
}

@test "field note 15: 222, 221, 218 with the driver's name for it" {
	over cuda
	KD_DOUBLE_FAULT=cuModuleLoadData=error:222 native
	failed 9 RUNTIME_ERROR product
	error 222 CUDA_ERROR_UNSUPPORTED_PTX_VERSION
	hint ptx-newer-than-driver
	KD_DOUBLE_FAULT=cuModuleLoadData=error:221 native
	failed 9 RUNTIME_ERROR product
	error 221 CUDA_ERROR_JIT_COMPILER_NOT_FOUND
	hint jit-library-missing
	KD_DOUBLE_FAULT=cuModuleLoadData=error:218 native
	failed 9 RUNTIME_ERROR product
	error 218 CUDA_ERROR_INVALID_PTX
	native
	passed
}

@test "field note 16: initialisation hangs (MPS of another user), SIGTERM ignored" {
	over cuda
	KD_DOUBLE_FAULT=cuInit=hang native --timeout 5
	failed 10 TIMEOUT device
	KD_DOUBLE_FAULT=cuInit=error:805 native
	failed 6 GPU_UNAVAILABLE device
	error 805 CUDA_ERROR_MPS_CONNECTION_FAILED
	hint mps
	KD_DOUBLE_FAULT=cuInit=sleep:300 native --timeout 5
	passed
}

# A worker that sleeps where no signal reaches it: a folder is made on a file system that is frozen. Whatever happens, the
# file system must be thawed, or the machine keeps the sleeper.
frozen_setup() {
	truncate -s 16M image
	mkfs.ext4 -q image
	mkdir frozen
	mount -o loop image frozen 2>/dev/null || skip 'no loop device can be mounted here'
}

thaw() {
	fsfreeze -u "$T/frozen" 2>/dev/null || true
	for _ in {1..50}; do
		umount "$T/frozen" 2>/dev/null && return
		sleep 0.1
	done
}

teardown() {
	[[ ! -d $T/frozen ]] || thaw
}

@test "field note 17: a worker that cannot be killed: told and saved promptly" {
	need_root
	frozen_setup
	mkdir -p sleepy/torch
	printf 'import os\ntry:\n    os.mkdir("%s/x")\nexcept OSError:\n    pass\n__path__.append("%s/torch")\nexec(open("%s/torch/__init__.py").read())\n' \
		"$T/frozen" "$STUBS" "$STUBS" >sleepy/torch/__init__.py
	stub ''
	export PYTHONPATH=$T/sleepy
	torch --timeout 5
	passed
	fsfreeze -f frozen
	local before=$SECONDS
	torch --timeout 5
	[[ $((SECONDS - before)) -le 9 ]]
	failed 10 TIMEOUT import
	is true "$(value detail.unkillable report.json)"
	thaw
}

@test "field note 17: a native worker that cannot be killed keeps the card: PyTorch gets no turn" {
	need_root
	frozen_setup
	copy_double
	sed -i -e '1i #include <sys/stat.h>' -e '/^int double_init(void)/{n;s/{/{ (void)!mkdir(getenv("KD_FROZEN"), 0700);/}' \
		copy/tests/doubles/double.c
	altered sleepy
	export LD_LIBRARY_PATH=$T/sleepy KD_FROZEN=$T/frozen/x
	stub ''
	torch --timeout 5
	passed
	fsfreeze -f frozen
	local before=$SECONDS
	torch --timeout 5
	[[ $((SECONDS - before)) -le 9 ]]
	failed 10 TIMEOUT device
	is true "$(value detail.unkillable report.json)"
	thaw
}

@test "field note 18: a crash at a driver call, noise from a preloaded library" {
	printf '#include <unistd.h>\n__attribute__((constructor)) static void noise(void) { (void)!write(1, "noise\\n", 6); (void)!write(2, "noise\\n", 6); }\n' >noise.c
	"${HOST_CC:-gcc}" -shared -fPIC -o noise.so noise.c
	over cuda
	export LD_PRELOAD=$T/noise.so
	KD_DOUBLE_FAULT=cuDeviceGet=signal:11 native
	unset LD_PRELOAD
	failed 11 WORKER_FAILED device
	is '"SIGSEGV"' "$(value detail.signal report.json)"
	rm -f "$MARKER" report.json
	LD_PRELOAD=$T/noise.so kd --framework none --output report.json -- ./workload
	passed
}

@test "field note 19: 214, an uncorrectable memory error at the first allocation" {
	over cuda
	KD_DOUBLE_FAULT=cuMemAlloc_v2=error:214 native
	failed 9 RUNTIME_ERROR allocation
	error 214 CUDA_ERROR_ECC_UNCORRECTABLE
	hint ecc-error
	native
	passed
}

@test "field note 20: the product is all zeros, and no error" {
	over cuda
	KD_DOUBLE_FAULT=cuLaunchKernel=zeros native
	failed 8 CHECK_FAILED product
	is '"4"' "$(value detail.expected report.json)"
	is '"0"' "$(value detail.observed report.json)"
	is false "$(value execution.product_verified report.json)"
	native
	passed
	stub zeros
	torch
	failed 8 CHECK_FAILED product
}

@test "field note 21: the group of /dev/kfd is not mapped" {
	need_root
	over hip
	NODES=(kfd:660:109 dri/renderD128:660:109)
	as 12345
	KD_DOUBLE_FAULT=hipInit=error:100 native_dev
	failed 6 GPU_UNAVAILABLE device
	hint device-node-group
	is '"group 109"' "$(value detail.missing report.json)"
	as 12345 109
	KD_DOUBLE_FAULT=hipInit=error:100 native_dev
	failed 6 GPU_UNAVAILABLE device
	no_hint device-node-group
	native_dev
	passed
}

@test "field note 22: a chip without code object: abort in is_available()" {
	stub hip,abort-available
	torch
	failed 11 WORKER_FAILED device
	is '"SIGABRT"' "$(value detail.signal report.json)"
	stub hip
	torch
	passed
}

@test "field note 23: device 0 is the integrated GPU" {
	over hip
	export KD_DOUBLE_DEVICES=2 KD_DOUBLE_FAULT=hipMalloc@0=error:2
	native
	failed 9 OUT_OF_MEMORY allocation
	is '"OUT_OF_MEMORY"' "$(value driver.devices.0.code report.json)"
	native --device-index 1
	passed
	# The doubles' devices are not integrated. A copy of the CUDA one, whose answer to the question for the compute mode
	# (0) becomes one to the question "integrated?" (1).
	copy_double
	sed -i -e 's/ATTRIBUTE_COMPUTE_MODE = 20/ATTRIBUTE_COMPUTE_MODE = 18/' -e 's/COMPUTE_MODE_DEFAULT = 0/COMPUTE_MODE_DEFAULT = 1/' \
		copy/tests/doubles/cuda.c
	altered integrated
	export KD_DOUBLE_FAULT=cuMemAlloc_v2@0=error:2
	LD_LIBRARY_PATH=$T/integrated native
	failed 9 OUT_OF_MEMORY allocation
	hint integrated-gpu
	LD_LIBRARY_PATH=$T/integrated native --device-index 1
	passed
	over cuda
	native
	failed 9 OUT_OF_MEMORY allocation
	no_hint integrated-gpu
}

@test "field note 24: an AMD machine got a CUDA build of PyTorch" {
	need_root
	stub no-device
	NODES=(kfd:666:0 dri/renderD128:666:0)
	torch_dev
	failed 6 GPU_UNAVAILABLE device
	hint amd-only
	# With the machine's own driver there, too.
	over hip
	torch_dev
	failed 6 GPU_UNAVAILABLE device
	hint amd-only
	NODES=("${ALL_NVIDIA[@]}")
	over cuda
	torch_dev
	failed 6 GPU_UNAVAILABLE device
	no_hint amd-only
	NODES=(kfd:666:0 dri/renderD128:666:0)
	over hip
	stub hip
	torch_dev
	passed
}

@test "field note 25: a real CPU build of PyTorch on a GPU host" {
	"$PYTHON" -c 'import sys, torch; sys.exit(bool(torch.version.cuda or torch.version.hip))' 2>/dev/null ||
		skip "$PYTHON has no CPU build of PyTorch (apt-get install python3-torch)"
	over cuda
	printf 'open("%s", "w")\n' "$MARKER" >program.py
	torch
	failed 5 GPU_BACKEND_ABSENT backend
	hint cpu-only-package
	is null "$(value pytorch.backend report.json)"
	stub ''
	torch
	passed
	no_hint cpu-only-package
}

@test "field note 26: two Pythons: that of the workload's shebang is the one tested" {
	local version
	version=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
	"$PYTHON" -m venv --without-pip with
	"$PYTHON" -m venv --without-pip without
	cp -r "$STUBS/torch" "with/lib/python$version/site-packages/"
	printf '#!%s\nopen("%s", "w")\n' "$T/with/bin/python3" "$MARKER" >torchrun
	printf '#!%s\nopen("%s", "w")\n' "$T/without/bin/python3" "$MARKER" >other
	chmod +x torchrun other
	PATH=$T/without/bin:$PATH kd --output report.json -- ./torchrun
	passed
	rm "$MARKER" report.json
	PATH=$T/with/bin:$PATH kd --output report.json -- ./other
	failed 3 TORCH_MISSING import
}

@test "field note 27: .venv/bin/python dangles" {
	mkdir -p .venv/bin
	ln -s "$T/gone/python3" .venv/bin/python
	kd --output report.json -- .venv/bin/python program.py
	failed 127 WORKLOAD_NOT_FOUND workload
	grep -q 'is a link to .*, which does not exist' err
	rm report.json
	kd --output report.json --python .venv/bin/python -- ./workload
	failed 13 INTERPRETER_FAILED interpreter
	grep -q 'is a link to .*, which does not exist' err
	rm report.json
	stub ''
	ln -sf "$PYTHON" .venv/bin/python
	kd --output report.json -- .venv/bin/python program.py
	passed
}

@test "field note 27b: python3 on PATH is a version manager's shell wrapper" {
	mkdir shims
	# shellcheck disable=SC2016 # the shim's own
	printf '#!/bin/sh\nexec /usr/bin/python3 "$@"\n' >shims/python3
	chmod +x shims/python3
	stub ''
	over cuda
	# Without PROGRAM the interpreter is searched for: never a silent skip of the torch rung.
	PATH=$T/shims:$PATH kd --output report.json
	expect 13 INTERPRETER_FAILED interpreter report.json
	hint python-is-wrapper
	rm report.json
	kd --output report.json --python "$T/shims/python3" -- ./workload
	failed 13 INTERPRETER_FAILED interpreter
	hint python-is-wrapper
	rm report.json
	kd --output report.json --python "$PYTHON" -- ./workload
	passed
}

@test "field note 28: a shared object or a symbol is missing: its name" {
	local word
	for word in missing-so:libcudnn_of_the_stub.so.9 undefined-symbol:_ZN3c104cuda3getEv; do
		stub "${word%%:*}"
		torch
		failed 4 TORCH_IMPORT_FAILED import
		is "\"${word#*:}\"" "$(value detail.missing report.json)"
	done
	# A real library whose need is not there.
	"${HOST_CC:-gcc}" -shared -o libkd-gone.so -Wl,-soname,libkd-gone.so.3 -x c /dev/null
	"${HOST_CC:-gcc}" -shared -o libneedy.so -x c /dev/null -Wl,--no-as-needed -L. -lkd-gone
	mkdir -p real/torch
	printf 'import ctypes\nctypes.CDLL("%s/libneedy.so")\n__path__.append("%s/torch")\nexec(open("%s/torch/__init__.py").read())\n' \
		"$T" "$STUBS" "$STUBS" >real/torch/__init__.py
	stub ''
	export PYTHONPATH=$T/real
	torch
	failed 4 TORCH_IMPORT_FAILED import
	is '"libkd-gone.so.3"' "$(value detail.missing report.json)"
	mv libkd-gone.so libkd-gone.so.3
	LD_LIBRARY_PATH=$T torch
	passed
}

@test "field note 29: SIGILL at import, a CPU without AVX" {
	stub sigill
	torch
	failed 11 WORKER_FAILED import
	is '"SIGILL"' "$(value detail.signal report.json)"
	stub ''
	torch
	passed
}

@test "field note 30: a traceback on stderr at a good import" {
	stub traceback
	torch
	passed
	! grep -q Traceback err report.json || false
	stub raise-import
	torch
	failed 4 TORCH_IMPORT_FAILED import
}

@test "field note 31: an arbitrary user without a passwd entry" {
	need_root
	stub ''
	as 12345
	torch_dev
	passed
	# What counts is only what the import itself does.
	mkdir -p who/torch
	printf 'import os, pwd\npwd.getpwuid(os.getuid())\n__path__.append("%s/torch")\nexec(open("%s/torch/__init__.py").read())\n' \
		"$STUBS" "$STUBS" >who/torch/__init__.py
	export PYTHONPATH=$T/who
	torch_dev
	failed 4 TORCH_IMPORT_FAILED import
	is '"KeyError"' "$(value detail.error_name report.json)"
	AS=()
	torch_dev
	passed
}

@test "field note 32: threads are refused" {
	stub no-threads
	torch
	failed 4 TORCH_IMPORT_FAILED import
	hint threads-refused
	stub ''
	torch
	passed
	no_hint threads-refused
}

# The workload itself runs without our filter, so what an outer filter refuses it must not be hidden by ours.
@test "field note 32: an old container runtime answers EPERM to clone3" {
	need_root
	mkdir -p threads/torch
	printf 'import _thread\n_thread.start_new_thread(int, ())\n__path__.append("%s/torch")\nexec(open("%s/torch/__init__.py").read())\n' \
		"$STUBS" "$STUBS" >threads/torch/__init__.py
	stub ''
	export PYTHONPATH=$T/threads
	torch
	passed
	status=0
	"$TOP/build/programs/without-syscall" clone3=1 -- "$PYTHON" -c 'import torch' 2>python.err || status=$?
	is 1 "$status" 'the import by itself'
	grep -q "can't start new thread" python.err
	rm -f "$MARKER" report.json
	status=0
	"$TOP/build/programs/without-syscall" clone3=1 -- "$KD" --output report.json -- "$PYTHON" program.py 2>err || status=$?
	[[ $status -eq 4 || $status -eq 11 ]] || { echo "exit status $status"; return 1; }
	not_started
	hint threads-refused
}

# is_us PID: it has become kd-preflight. Before that a signal would meet the shell, or unshare. Waits up to 2 s.
is_us() {
	local exe
	for _ in {1..1000}; do
		exe=$(readlink "/proc/$1/exe") || return 1
		[[ $exe != "$KD" ]] || return 0
		sleep 0.002
	done
	return 1
}

@test "field note 33: SIGTERM in the first milliseconds, as PID 1 too" {
	local delay pid first
	stub hang-import
	for delay in 0 0.001 0.050; do
		rm -f report.json
		"$KD" --output report.json -- "$PYTHON" program.py 2>err 3>&- &
		pid=$!
		is_us "$pid"
		sleep "$delay"
		kill -TERM "$pid"
		status=0
		wait "$pid" || status=$?
		is 143 "$status" "after $delay s"
		not_started
	done
	[[ $EUID -eq 0 ]] || return 0
	for delay in 0.005 0.050; do
		unshare --pid --fork --kill-child "$KD" -- "$PYTHON" program.py 2>err 3>&- &
		pid=$!
		for _ in {1..1000}; do
			first=$(tr -d ' ' <"/proc/$pid/task/$pid/children") || break
			[[ -z $first ]] || break
			sleep 0.002
		done
		is_us "$first"
		sleep "$delay"
		kill -TERM "$first"
		status=0
		wait "$pid" || status=$?
		is 143 "$status" "PID 1 after $delay s"
		not_started
	done
	stub ''
	torch
	passed
}

@test "field note 34: a workload that cannot be executed is told before any GPU work" {
	over cuda
	export KD_DOUBLE_FAULT=cuInit=signal:11 # were the driver asked, that would show
	echo 'echo hello' >no-shebang && chmod +x no-shebang
	cp workload not-executable && chmod 644 not-executable
	printf '\177ELF\002\001\001\0\0\0\0\0\0\0\0\0\002\0\363\0' >other-machine && chmod +x other-machine
	local program
	for program in ./no-shebang ./not-executable ./other-machine; do
		rm -f report.json
		kd --framework none --output report.json -- "$program"
		failed 126 WORKLOAD_NOT_EXECUTABLE workload
	done
	rm report.json
	kd --framework none --output report.json -- kd-not-on-path
	failed 127 WORKLOAD_NOT_FOUND workload
	unset KD_DOUBLE_FAULT
	native
	passed
}

@test "field note 35: a report that is already there" {
	over cuda
	native
	passed
	cp report.json before.json
	rm "$MARKER"
	kd --framework none --output report.json -- ./workload
	is 12 "$status"
	not_started
	cmp report.json before.json
	mkdir reports
	kd --framework none --output reports/ -- ./workload
	kd --framework none --output reports -- ./workload
	[[ $(find reports -name '*.json' | wc -l) -eq 2 ]]
	is 0 "$status"
}

@test "field note 36: the volume is full: 12, no partial file, the verdict is told all the same" {
	need_root
	over cuda
	# shellcheck disable=SC2016 # expanded in the namespace
	local volume='mount -t tmpfs -o size="$1" none volume; shift; [[ $1 == - ]] || head -c "$1" /dev/zero >volume/fill; shift
		code=0; "$@" || code=$?; ls -A volume >left; exit $code'
	mkdir volume
	: >log
	status=0
	unshare --mount --propagation private bash -uc "$volume" _ 4k 4096 \
		"$KD" --framework none --output volume/report.json --termination-log log -- ./workload 2>err || status=$?
	is 12 "$status"
	not_started
	is fill "$(<left)"
	grep -q 'OUTPUT_WRITE_FAILED (exit 12)' err
	grep -q '"OUTPUT_WRITE_FAILED"' log
	status=0
	unshare --mount --propagation private bash -uc "$volume" _ 1m - \
		"$KD" --framework none --output volume/report.json -- ./workload 2>err || status=$?
	is 0 "$status"
	is report.json "$(<left)"
	[[ -e $MARKER ]]
}

@test "field note 37: a termination log that is missing, read-only or a directory changes no exit status" {
	need_root
	over cuda
	local log
	mkdir folder
	: >read-only
	chmod 444 read-only
	: >good
	chmod 777 .
	as 12345
	for log in missing folder read-only good none; do
		KD_DOUBLE_FAULT=cuInit=error:999 native_dev --termination-log "$T/$log"
		failed 6 GPU_UNAVAILABLE device
		native_dev --termination-log "$T/$log"
		passed
	done
	chmod 666 good
	KD_DOUBLE_FAULT=cuInit=error:999 native_dev --termination-log "$T/good"
	grep -q '"GPU_UNAVAILABLE"' good
	[[ ! -s read-only && ! -e missing ]]
}
