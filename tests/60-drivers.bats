#!/usr/bin/env bats
# The GPU rungs over the driver doubles: what passes, which device is checked, and how the native worker and PyTorch's
# share a card. The doubles compute on the CPU and the PyTorch here is a stub that computes in plain Python: a pass says
# nothing about a GPU.

# Each test is a process of its own, and so are its exports.
# shellcheck disable=SC2030,SC2031,SC2119,SC2120

load helper

# over BACKEND...: the doubles of these backends are all the drivers that there are.
over() {
	local path='' backend
	for backend; do
		path+=${path:+:}$TOP/build/doubles/$backend
	done
	export LD_LIBRARY_PATH=$path
}

# stub WORD[,WORD]: a Python workload over the stub PyTorch.
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

# passed: the workload was started, and a saved report says so.
passed() {
	expect 0 GPU_CHECK_PASSED complete report.json && is true "$(value workload.starting report.json)" starting &&
		{ [[ -e $MARKER ]] || { echo 'the workload was not started'; return 1; }; }
}

# failed STATUS CODE STAGE
failed() {
	expect "$@" report.json && not_started && is false "$(value workload.starting report.json)" starting
}

hint() { has_hint "$1" report.json; }

no_hint() {
	[[ $(value hints report.json) != *"\"$1\""* ]] || { echo "hint $1"; return 1; }
}

@test "CUDA and HIP: a native pass starts PROGRAM, and a saved report says so" {
	local backend
	for backend in cuda hip; do
		over "$backend"
		native
		passed
		is "\"$backend\"" "$(value driver.backend report.json)"
		is "\"$backend:0\"" "$(value execution.device report.json)"
		is '"native"' "$(value execution.by report.json)"
		is 196 "$(value execution.loss report.json)"
		is null "$(value pytorch report.json)"
		is '[]' "$(value hints report.json)"
		[[ ! -s out ]]
	done
	nothing_left
}

@test "the control: without a driver there is no pass" {
	unset LD_LIBRARY_PATH
	native
	failed 5 GPU_BACKEND_ABSENT backend
}

@test "hand-over: the workload gets what it would have got without us" {
	local backend
	# Through env, so that the shell's `_` is the same; the pid is that of whoever was started.
	state() {
		env "LD_LIBRARY_PATH=$LD_LIBRARY_PATH" "$@" "$TOP/build/programs/process-state" - a b 2>/dev/null >state
		sed 's/^pid [0-9]*/pid N/' state
	}
	for backend in cuda hip; do
		over "$backend"
		state >plain
		state "$KD" --framework none -- >checked
		[[ $(wc -l <plain) -gt 50 ]]
		diff plain checked
	done
}

@test "each index of four devices" {
	local backend index
	for backend in cuda hip; do
		over "$backend"
		for index in 0 1 2 3; do
			KD_DOUBLE_DEVICES=4 native --device-index "$index"
			passed
			is 4 "$(value driver.visible_device_count report.json)"
			is "\"$backend:$index\"" "$(value execution.device report.json)"
			is "\"kd-double GPU $index\"" "$(value "driver.devices.$index.name" report.json)"
			is '"GPU_CHECK_PASSED"' "$(value "driver.devices.$index.code" report.json)"
			is null "$(value "driver.devices.$(((index + 1) % 4)).code" report.json)"
		done
	done
}

@test "a fault of one device counts for this device only" {
	local backend call
	for backend in cuda hip; do
		over "$backend"
		call=cuMemAlloc_v2
		[[ $backend == cuda ]] || call=hipMalloc
		export KD_DOUBLE_DEVICES=3 KD_DOUBLE_FAULT=$call@1=error:214
		native --device-index 0
		passed
		native --device-index 1
		failed 9 RUNTIME_ERROR allocation
		native --device-index 2
		passed
		native --device-index all
		failed 9 RUNTIME_ERROR allocation
		is '"GPU_CHECK_PASSED"' "$(value driver.devices.0.code report.json)"
		is '"RUNTIME_ERROR"' "$(value driver.devices.1.code report.json)"
		is '"GPU_CHECK_PASSED"' "$(value driver.devices.2.code report.json)"
	done
}

@test "--device-index all: every device has its own result" {
	local backend index
	for backend in cuda hip; do
		over "$backend"
		KD_DOUBLE_DEVICES=4 native --device-index all
		passed
		for index in 0 1 2 3; do
			is '"GPU_CHECK_PASSED"' "$(value "driver.devices.$index.code" report.json)"
		done
	done
	over cuda
	KD_DOUBLE_DEVICES=40 native --device-index all
	passed
	is '"GPU_CHECK_PASSED"' "$(value driver.devices.39.code report.json)"
}

@test "--device-index all: of several failures the earliest layer is told, wrong numbers before all" {
	over cuda
	export KD_DOUBLE_DEVICES=3
	KD_DOUBLE_FAULT='cuLaunchKernel@0=error:719;cuMemAlloc_v2@2=error:2' native --device-index all
	failed 9 OUT_OF_MEMORY allocation
	KD_DOUBLE_FAULT='cuMemAlloc_v2@0=error:2;cuLaunchKernel@2=wrong:gradient:0:9' native --device-index all
	failed 8 CHECK_FAILED gradient
	KD_DOUBLE_FAULT='cuLaunchKernel@0=wrong:product:0:9;cuLaunchKernel@2=wrong:gradient:0:9' native --device-index all
	failed 8 CHECK_FAILED product
	KD_DOUBLE_FAULT='cuLaunchKernel@0=wrong:gradient:0:9;cuLaunchKernel@2=wrong:product:0:9' native --device-index all
	failed 8 CHECK_FAILED product
}

@test "--expect-devices, met and not met" {
	local backend
	for backend in cuda hip; do
		over "$backend"
		KD_DOUBLE_DEVICES=8 native --expect-devices 8
		passed
		KD_DOUBLE_DEVICES=7 native --expect-devices 8
		failed 7 DEVICE_INDEX_INVALID device
		is 7 "$(value driver.visible_device_count report.json)"
		KD_DOUBLE_DEVICES=2 native --expect-devices 1
		failed 7 DEVICE_INDEX_INVALID device
	done
}

@test "an index that no device has: 7, with the hint" {
	local backend
	for backend in cuda hip; do
		over "$backend"
		KD_DOUBLE_DEVICES=2 native --device-index 1
		passed
		KD_DOUBLE_DEVICES=2 native --device-index 2
		failed 7 DEVICE_INDEX_INVALID device
		hint index-out-of-range
		no_hint mask-set
	done
}

@test "--device-uuid: a UUID is in the report only when asked for" {
	local backend uuid
	for backend in cuda hip; do
		over "$backend"
		KD_DOUBLE_DEVICES=2 native
		passed
		! grep -qi uuid report.json || false
		! grep -q GPU-d0 report.json err || false
		KD_DOUBLE_DEVICES=2 native --device-uuid
		passed
		uuid=$(value driver.devices.1.uuid report.json)
		[[ $uuid == '"GPU-d1'* ]] || { echo "uuid $uuid"; return 1; }
	done
	[[ $uuid =~ ^\"GPU-[0-9a-f]{16}\"$ ]]
}

# masked VARIABLE VALUE INDEX WANTED: the name of the device that is checked at that index, or exit status and count.
masked() {
	local wanted=$4
	echo "mask: $1='$2' index $3"
	(
		export "$1=$2" KD_DOUBLE_DEVICES=4
		native --device-index "$3"
		echo "$status" >code
	)
	status=$(<code)
	case $wanted in
	6) failed 6 GPU_UNAVAILABLE device && hint mask-set ;;
	7) failed 7 DEVICE_INDEX_INVALID device && hint mask-set ;;
	*) passed && is "\"kd-double GPU $wanted\"" "$(value "driver.devices.$3.name" report.json)" ;;
	esac
}

@test "CUDA_VISIBLE_DEVICES: as the driver reads it, with a hint where it decides" {
	over cuda
	masked CUDA_VISIBLE_DEVICES 1 0 1
	masked CUDA_VISIBLE_DEVICES 2,0 0 2
	masked CUDA_VISIBLE_DEVICES 2,0 1 0
	masked CUDA_VISIBLE_DEVICES 1 1 7
	masked CUDA_VISIBLE_DEVICES '' 0 6
	masked CUDA_VISIBLE_DEVICES -1 0 6
	masked CUDA_VISIBLE_DEVICES NoDevFiles 0 6
	masked CUDA_VISIBLE_DEVICES 9 0 6
	masked CUDA_VISIBLE_DEVICES 3,-1,0 0 3
	masked CUDA_VISIBLE_DEVICES 3,-1,0 1 7
	masked CUDA_VISIBLE_DEVICES GPU-d2 0 2
	masked CUDA_VISIBLE_DEVICES GPU-d3,GPU-d1 1 1
	masked CUDA_VISIBLE_DEVICES GPU-d 0 6 # names more than one
	masked CUDA_VISIBLE_DEVICES MIG-d2 0 6
}

@test "HIP_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES: likewise; an empty HIP_VISIBLE_DEVICES hides nothing" {
	over hip
	masked HIP_VISIBLE_DEVICES 1 0 1
	masked HIP_VISIBLE_DEVICES 2,0 1 0
	masked HIP_VISIBLE_DEVICES 1 1 7
	masked HIP_VISIBLE_DEVICES '' 3 3
	masked HIP_VISIBLE_DEVICES -1 0 6
	masked HIP_VISIBLE_DEVICES GPU-d2 0 2
	masked CUDA_VISIBLE_DEVICES 3 0 3
	masked ROCR_VISIBLE_DEVICES 2 0 2
	masked ROCR_VISIBLE_DEVICES GPU-d1 0 1
	masked ROCR_VISIBLE_DEVICES -1 0 6
}

# --- who has the card when -------------------------------------------------------------------------------------------

# A stub PyTorch that takes the same lock as the CUDA double when it first uses the card, as a context does in
# exclusive-process mode, and fails as PyTorch does when somebody else has it.
locking_torch() {
	export KD_DOUBLE_EXCLUSIVE=kd-$$-$RANDOM
	mkdir -p locking/torch
	cat >locking/torch/__init__.py <<-E
		import os, socket
		__path__.append('$STUBS/torch')
		exec(open('$STUBS/torch/__init__.py').read())
		from torch import cuda, AcceleratorError
		held, allocate = {}, cuda.allocate
		def take(device):
		    if device.index not in held:
		        held[device.index] = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		        try:
		            held[device.index].bind('\0kd-double:%s:%d' % (os.environ['KD_DOUBLE_EXCLUSIVE'], device.index))
		        except OSError:
		            raise AcceleratorError('CUDA error: CUDA-capable device(s) is/are busy or unavailable', 46)
		    allocate(device)
		cuda.allocate = take
	E
	stub ''
	export PYTHONPATH=$T/locking
}

# hold: somebody else has device 0. Sets holder.
hold() {
	"$PYTHON" -c 'import os, socket, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind("\0kd-double:%s:0" % os.environ["KD_DOUBLE_EXCLUSIVE"])
open("held", "w")
time.sleep(60)' 3>&- &
	holder=$!
	for _ in {1..200}; do
		[[ ! -e held ]] || return 0
		sleep 0.02
	done
	echo 'the lock could not be taken'
	return 1
}

let_go() {
	kill "$holder"
	wait "$holder" 2>/dev/null || true
	rm -f held
}

@test "an exclusive card that another process holds: 6 with the hint, natively and by PyTorch; free, it passes" {
	local backend number
	export KD_DOUBLE_EXCLUSIVE=kd-$$-$RANDOM
	for backend in cuda hip; do
		number=46
		[[ $backend == cuda ]] || number=216
		over "$backend"
		hold
		native
		let_go
		failed 6 GPU_UNAVAILABLE device
		is "$number" "$(value detail.error_number report.json)"
		hint exclusive-mode
		native
		passed
	done
	over cuda
	locking_torch
	hold
	torch
	let_go
	[[ $status -eq 6 || $status -eq 9 ]] # 46 where PyTorch tells a number, else what any refused allocation is
	valid report.json
	not_started
	hint exclusive-mode
	torch
	passed
}

@test "workers never overlap on an exclusive card: native, then PyTorch, then the workload" {
	over cuda
	locking_torch
	# The native worker keeps its context for a good while after PyTorch has been imported.
	export KD_DOUBLE_FAULT='cuMemGetInfo_v2=sleep:400;cuDevicePrimaryCtxRelease_v2=sleep:400'
	torch
	passed
	no_hint native-disagrees
	KD_DOUBLE_DEVICES=3 KD_STUB_DEVICES=3 torch --device-index all
	passed
	no_hint native-disagrees
	KD_DOUBLE_DEVICES=3 native --device-index all
	passed
}

@test "the workers are gone before the workload starts: it has no child, and can take an exclusive card" {
	over cuda
	locking_torch
	cat >program.py <<-E
		import os, socket
		children = open('/proc/self/task/%d/children' % os.getpid()).read()
		assert not children, children
		socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).bind('\0kd-double:%s:0' % os.environ['KD_DOUBLE_EXCLUSIVE'])
		open('$MARKER', 'w')
	E
	torch
	passed
	# The control: while somebody has the card, the workload cannot take it.
	hold
	status=0
	"$PYTHON" program.py 2>/dev/null || status=$?
	let_go
	is 1 "$status"
}

# --- the native rungs beside a stub PyTorch -----------------------------------------------------------------------------

@test "stub PyTorch passes, several devices and a merged verdict" {
	over cuda
	stub ''
	KD_DOUBLE_DEVICES=3 KD_STUB_DEVICES=3 torch --device-index all --expect-devices 3
	passed
	is '"torch"' "$(value execution.by report.json)"
	is 3 "$(value pytorch.visible_device_count report.json)"
	is 3 "$(value driver.visible_device_count report.json)"
	KD_STUB=zeros KD_STUB_ONLY=2 KD_DOUBLE_DEVICES=3 KD_STUB_DEVICES=3 torch --device-index all
	failed 8 CHECK_FAILED product
	KD_STUB=zeros KD_STUB_ONLY=2 KD_DOUBLE_DEVICES=3 KD_STUB_DEVICES=3 torch --device-index 1
	passed
}

@test "wrong numbers natively: 8, whatever a PyTorch that passes says" {
	local fault
	over cuda
	stub ''
	torch
	passed
	for fault in zeros wrong:product:3:nan; do
		KD_DOUBLE_FAULT=cuLaunchKernel=$fault torch
		failed 8 CHECK_FAILED product
	done
	for fault in wrong:loss:195 wrong:gradient:2:41; do
		KD_DOUBLE_FAULT=cuLaunchKernel=$fault torch
		failed 8 CHECK_FAILED gradient
	done
	over hip
	KD_STUB=hip KD_DOUBLE_FAULT=hipModuleLaunchKernel=zeros torch
	failed 8 CHECK_FAILED product
}

@test "a library, symbol or image that is missing natively says nothing against a PyTorch that computed" {
	stub ''
	torch
	passed
	no_hint native-disagrees
	# A symbol: a library of that name with nothing in it.
	mkdir empty
	${HOST_CC:-gcc} -shared -o empty/libcuda.so.1 -x c /dev/null
	export LD_LIBRARY_PATH=$T/empty
	native
	failed 5 GPU_BACKEND_ABSENT backend
	is '"cuInit"' "$(value detail.missing report.json)"
	torch
	passed
	no_hint native-disagrees
	# What the library itself needs.
	mkdir needy
	${HOST_CC:-gcc} -shared -o needy/libkd-gone.so -Wl,-soname,libkd-gone.so -x c /dev/null
	${HOST_CC:-gcc} -shared -o needy/libcuda.so.1 -x c /dev/null -Wl,--no-as-needed -Lneedy -lkd-gone
	rm needy/libkd-gone.so
	export LD_LIBRARY_PATH=$T/needy
	native
	failed 5 GPU_BACKEND_ABSENT backend
	is '"libkd-gone.so"' "$(value detail.missing report.json)"
	torch
	passed
	no_hint native-disagrees
	# A code image: natively alone it counts.
	over hip
	export KD_DOUBLE_ARCH=gfx9999
	native
	failed 9 RUNTIME_ERROR product
	is '"code image gfx9999"' "$(value detail.missing report.json)"
	hint no-kernel-image
	KD_STUB=hip torch
	passed
	no_hint native-disagrees
	unset KD_DOUBLE_ARCH
	over cuda
	KD_DOUBLE_FAULT=cuModuleLoadData=error:222 torch
	passed
	no_hint native-disagrees
}

@test "any other native failure beside a PyTorch that computed: a pass with native-disagrees" {
	local fault
	over cuda
	stub ''
	torch
	passed
	no_hint native-disagrees
	for fault in cuInit=error:999 cuDevicePrimaryCtxRetain=error:46 cuMemAlloc_v2=error:214 cuMemAlloc_v2=error:2 \
		cuLaunchKernel=error:719 cuCtxSynchronize#2=error:700 cuDeviceGet=signal:11 cuInit=exit:0 cuInit=hang; do
		echo "fault: $fault"
		KD_DOUBLE_FAULT=$fault torch --timeout 5
		passed
		hint native-disagrees
		is '"torch"' "$(value execution.by report.json)"
	done
}

@test "PyTorch fails and the driver computes: fault-in-package" {
	local word
	over cuda
	for word in raise-import missing-so no-device no-kernel zeros wrong-gradient crash sync-error; do
		echo "word: $word"
		stub "$word"
		torch
		not_started
		[[ $status -ne 0 ]]
		hint fault-in-package
	done
	# The control: both fail, and what the driver says comes with it.
	stub no-device
	KD_DOUBLE_FAULT=cuInit=error:802 torch
	failed 6 GPU_UNAVAILABLE device
	no_hint fault-in-package
	hint fabric-manager
	is 802 "$(value detail.error_number report.json)"
	is '"cuInit"' "$(value detail.call report.json)"
}

@test "a machine with both backends: the package's own is the one asked" {
	over cuda hip
	native
	passed
	is '"cuda"' "$(value driver.backend report.json)"
	stub ''
	torch
	passed
	is '"cuda"' "$(value driver.backend report.json)"
	stub hip
	torch
	passed
	is '"hip"' "$(value driver.backend report.json)"
	# What the other one would say is not looked at.
	KD_DOUBLE_FAULT=cuLaunchKernel=zeros torch
	is '"hip"' "$(value driver.backend report.json)"
	passed
	# And HIP is asked after a CUDA library without devices.
	KD_DOUBLE_FAULT=cuInit=error:100 native
	passed
	is '"hip"' "$(value driver.backend report.json)"
}

@test "a PyTorch that counts no device and computes all the same (MIG): a pass, also for all and with --expect-devices 1" {
	over cuda
	stub mig
	torch
	passed
	torch --device-index all
	passed
	torch --expect-devices 1
	passed
	torch --expect-devices 2
	failed 7 DEVICE_INDEX_INVALID device
}

@test "the HIP runtime: each soname" {
	local major
	for major in 5 6 7; do
		mkdir "hip$major"
		cp "$TOP/build/doubles/hip/libamdhip64.so.6" "hip$major/libamdhip64.so.$major"
		export LD_LIBRARY_PATH=$T/hip$major
		native
		passed
		is '"other"' "$(value driver.library_origin report.json)"
	done
}

# A ROCm wheel in a virtual environment brings its own runtime. An empty `torch` beside it would shadow nothing: the stub
# comes first on the path.
rocm_wheel() {
	local version
	unset LD_LIBRARY_PATH
	stub hip
	version=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
	"$PYTHON" -m venv --without-pip venv
	kd --output report.json -- "$T/venv/bin/python3" program.py
	passed
	is null "$(value driver report.json)" 'the control: no driver without the wheel'
	mkdir -p "venv/lib/python$version/site-packages/torch/lib"
	cp "$TOP/build/doubles/hip/libamdhip64.so.6" "venv/lib/python$version/site-packages/torch/lib/libamdhip64.so"
}

wheel_is_asked() { # PROGRAM
	rm -f "$MARKER" report.json
	PATH=$T/venv/bin:$PATH kd --output report.json -- "$1" program.py
	passed
	[[ $(value driver report.json) != null ]] || { echo "$1: the runtime of the wheel was not found"; return 1; }
	is '"hip"' "$(value driver.backend report.json)"
	is '"python-package"' "$(value driver.library_origin report.json)"
}

@test "the HIP runtime inside the interpreter's PyTorch: an absolute path to the interpreter" {
	rocm_wheel
	wheel_is_asked "$T/venv/bin/python3"
}

@test "the HIP runtime inside the interpreter's PyTorch: the interpreter found on PATH" {
	rocm_wheel
	wheel_is_asked python3
}

@test "the HIP runtime inside the interpreter's PyTorch: a relative path, and a script's shebang" {
	rocm_wheel
	wheel_is_asked venv/bin/python3
	printf '#!%s\nopen("%s", "w")\n' "$T/venv/bin/python3" "$MARKER" >script
	chmod +x script
	wheel_is_asked ./script
}

@test "a driver that prints verdicts and closes descriptors changes nothing" {
	over cuda
	KD_DOUBLE_FAULT='cuInit=hostile:noise;cuMemAlloc_v2=hostile:close' native
	passed
	[[ ! -s out ]]
	! grep -q 'noise' err || false
	KD_DOUBLE_FAULT='cuInit=hostile:noise;cuLaunchKernel=zeros' native
	failed 8 CHECK_FAILED product
}
