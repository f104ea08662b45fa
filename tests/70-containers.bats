#!/usr/bin/env bats
# The images of images/ in real containers: runc, as PID 1, another user than root, read-only root without any tmpfs, no
# capability, no network, the default seccomp profile. The GPU that passes is the CUDA double of tests/doubles, in the
# images tagged :double; the PyTorch is the stub of tests/stubs, but where a test says real.

# shellcheck disable=SC2016 # scripts that containers run

load helper

CONTAINERS=$TOP/build/containers
PODMAN=$CONTAINERS/podman
HARD=(--network=none --read-only --read-only-tmpfs=false --cap-drop=all --user 12345:12345)

setup_file() {
	[[ $EUID -eq 0 ]] || skip 'needs root'
	local tool
	for tool in podman buildah runc mmdebstrap; do
		command -v "$tool" >/dev/null || skip "$tool is not installed (ci/deps.sh test)"
	done
	"$BATS_TEST_DIRNAME/container-base.sh" >&2
	VERSION=$("$BATS_TEST_DIRNAME/../build/kd-preflight" --version | sed 's/.* //')
	export VERSION
}

teardown() {
	[[ ! -x $PODMAN ]] || "$PODMAN" rm --force --time 0 --filter "label=test=$BATS_TEST_NUMBER" >/dev/null 2>&1 || true
}

# container OPTION... IMAGE [ARG...]: runs it, as hard as can be; stdout in out, stderr in err, sets status.
container() {
	status=0
	timeout --kill-after=5 60 "$PODMAN" run --rm "${HARD[@]}" "$@" >out 2>err </dev/null || status=$?
}

# started NAME OPTION... IMAGE [ARG...]: the same in the background; stop with `stopped`.
started() {
	local name=kd-$BATS_TEST_NUMBER-$1
	shift
	"$PODMAN" run --detach --name "$name" --label "test=$BATS_TEST_NUMBER" "${HARD[@]}" "$@" >/dev/null
}

# stopped NAME: podman stop; sets status and took_s; output in out and err.
stopped() {
	local name=kd-$BATS_TEST_NUMBER-$1 begin=$SECONDS
	"$PODMAN" stop --time 20 "$name" >/dev/null
	took_s=$((SECONDS - begin))
	status=$("$PODMAN" inspect --format '{{.State.ExitCode}}' "$name")
	"$PODMAN" logs "$name" >out 2>err
}

# until_said NAME PATTERN: waits until the container's output matches.
until_said() {
	local name=kd-$BATS_TEST_NUMBER-$1 i
	for i in $(seq 100); do
		# A herestring, not a pipe: grep -q would end podman by SIGPIPE.
		! grep -q "$2" <<<"$("$PODMAN" logs "$name" 2>&1)" || return 0
		sleep 0.1
	done
	echo "never said: $2"
	"$PODMAN" logs "$name"
	return 1
}

# a folder that the container's user may write to
reports() {
	mkdir reports
	chown 12345:12345 reports
}

@test "what is in the images: labels, a numeric user, an exec-form ENTRYPOINT, the very binary" {
	local name
	for name in kd-preflight kd-preflight-init kd-preflight-pytorch kd-preflight-cpu-ci; do
		"$PODMAN" image inspect "localhost/$name:$VERSION" >image.json
		grep -q "\"org.opencontainers.image.title\": \"$name\"" image.json
		grep -q "\"org.opencontainers.image.version\": \"$VERSION\"" image.json
		grep -q '"org.opencontainers.image.licenses": "Apache-2.0"' image.json
		is '"65532:65532"' "$(value 0.User image.json)" "user of $name"
		[[ $(value 0.Config.Entrypoint.0 image.json) == *kd-preflight\" ]]
	done
	"$PODMAN" create --name "kd-$BATS_TEST_NUMBER" --label "test=$BATS_TEST_NUMBER" "localhost/kd-preflight:$VERSION" >/dev/null
	"$PODMAN" export "kd-$BATS_TEST_NUMBER" >root.tar
	tar -xf root.tar kd-preflight
	cmp kd-preflight "$KD"
	# Nothing else but licences and what the engine puts there.
	is kd-preflight "$(tar -tf root.tar | grep -vE '/$|^(licenses|dev|etc|proc|sys|run)/')"
}

@test "two builds of one tree are one image, and the size of each is printed" {
	printf '#!/bin/sh\n[ "$1" != build ] || { shift; set -- build --no-cache "$@"; }\nexec "%s" "$@"\n' "$PODMAN" >engine
	chmod +x engine
	cd "$TOP"
	cp "$KD" "$T/kd"
	local name tag
	for tag in again1 again2; do
		ENGINE=$T/engine BINARY=$T/kd TAG=$tag SOURCE_DATE_EPOCH=1700000000 BASE_INIT=localhost/kd-test-minimal \
			images/build.sh kd-preflight init >>"$T/sizes"
		sleep 1 # so that a clock that gets in would show
	done
	for name in kd-preflight kd-preflight-init; do
		is "$("$PODMAN" image inspect --format '{{.Id}}' "localhost/$name:again1")" \
			"$("$PODMAN" image inspect --format '{{.Id}}' "localhost/$name:again2")" "image of $name"
		is '2023-11-14 22:13:20 +0000 UTC' "$("$PODMAN" image inspect --format '{{.Created}}' "localhost/$name:again1")" created
		grep -qE "^localhost/$name:again1 +[0-9]+ bytes$" "$T/sizes"
	done
	"$PODMAN" rmi localhost/kd-preflight{-init,}:again{1,2} >/dev/null
}

@test "buildah builds, too; a missing base, an unknown image and a missing builder are told" {
	cd "$TOP"
	PATH=$CONTAINERS:$PATH ENGINE=buildah TAG=buildah images/build.sh kd-preflight | grep -qE '^localhost/kd-preflight:buildah +[0-9.]+ [KM]B'
	"$PODMAN" rmi localhost/kd-preflight:buildah >/dev/null
	run -2 env PATH="$CONTAINERS:$PATH" ENGINE=podman images/build.sh pytorch
	[[ $output == *'no base'* ]]
	run -2 env PATH="$CONTAINERS:$PATH" ENGINE=podman images/build.sh gpu
	[[ $output == *'gpu: no such image'* ]]
}

@test "control: the container is as hard as these tests say" {
	container --entrypoint cat localhost/kd-test-python /proc/self/status
	grep -qP '^Uid:\t12345\t12345' out
	grep -qP '^CapEff:\t0+$' out
	grep -qP '^CapBnd:\t0+$' out
	grep -qP '^Seccomp:\t2$' out
	grep -qP '^Pid:\t1$' out
	container --entrypoint sh localhost/kd-test-python -c 'echo x >/tmp/x'
	is 2 "$status"
	container --entrypoint cat localhost/kd-test-python /proc/net/dev
	is lo "$(sed -n 's/^ *\([^ ]*\):.*/\1/p' out)"
}

@test "init image: passes over the double, as PID 1, with the report on stdout" {
	container localhost/kd-preflight-init:double
	expect 0 GPU_CHECK_PASSED complete out
	is '"native"' "$(value execution.by)"
	is true "$(value sandbox.seccomp)"
	is true "$(value sandbox.no_new_privs)"
	grep -q 'PyTorch: not checked' err
}

@test "init image: refuses without a driver" {
	container "localhost/kd-preflight-init:$VERSION"
	expect 5 GPU_BACKEND_ABSENT backend out
}

@test "init image: refuses wrong numbers, a driver that says no, and one that hangs" {
	container -e KD_DOUBLE_FAULT=cuLaunchKernel=zeros localhost/kd-preflight-init:double
	expect 8 CHECK_FAILED product out
	container -e KD_DOUBLE_FAULT=cuInit=error:802 localhost/kd-preflight-init:double
	expect 6 GPU_UNAVAILABLE device out
	container -e KD_DOUBLE_FAULT=cuInit=hang localhost/kd-preflight-init:double --timeout 5
	expect 10 TIMEOUT device out
}

@test "distribution image by itself: no loader, told as such" {
	container "localhost/kd-preflight:$VERSION"
	expect 5 GPU_BACKEND_ABSENT backend out
	has_hint no-loader
}

@test "PyTorch image: the workload starts on a pass, and stdout is its own" {
	container localhost/kd-preflight-pytorch:double --steps 2
	is 0 "$status"
	is $'train: first step done, loss 196\ntrain: 2 steps done' "$(<out)"
	grep -q 'GPU_CHECK_PASSED (exit 0)' err
}

@test "PyTorch image: refuses without a device, and starts nothing" {
	container -e KD_STUB=no-device "localhost/kd-preflight-pytorch:$VERSION" --steps 2
	is 6 "$status"
	[[ ! -s out ]]
	grep -q 'GPU_UNAVAILABLE (exit 6), stage device' err
	grep -q 'the workload was not started' err
}

@test "PyTorch image: wrong numbers of the driver refuse a PyTorch that computes" {
	container -e KD_DOUBLE_FAULT=cuLaunchKernel=zeros localhost/kd-preflight-pytorch:double --steps 2
	is 8 "$status"
	[[ ! -s out ]]
}

@test "the workload is PID 1 after the check, without our sandbox, and its exit status is the container's" {
	container --entrypoint kd-preflight localhost/kd-preflight-pytorch:double --python /usr/bin/python3 -- \
		python3 -c 'import os; print(os.getpid(), open("/proc/self/status").read())'
	is 0 "$status"
	grep -q '^1 ' out
	grep -qP '^NoNewPrivs:\t0$' out
	grep -qP '^Seccomp_filters:\t1$' out # the container's own
	container --entrypoint kd-preflight localhost/kd-preflight-pytorch:double -- python3 -c 'raise SystemExit(42)'
	is 42 "$status"
	container --entrypoint kd-preflight localhost/kd-preflight-pytorch:double -- /app/train.py
	is 126 "$status"
	container --entrypoint kd-preflight localhost/kd-preflight-pytorch:double -- nothing-here
	is 127 "$status"
}

@test "CPU image: passes, refuses a PROGRAM, and tells a missing and a broken PyTorch" {
	container "localhost/kd-preflight-cpu-ci:$VERSION"
	expect 0 CPU_CHECK_PASSED complete out
	is null "$(value driver)"
	container "localhost/kd-preflight-cpu-ci:$VERSION" -- python3 x.py
	is 2 "$status"
	container --mount type=tmpfs,notmpcopyup,destination=/usr/lib/python3/dist-packages "localhost/kd-preflight-cpu-ci:$VERSION"
	expect 3 TORCH_MISSING import out
	container -e KD_STUB=missing-so "localhost/kd-preflight-cpu-ci:$VERSION"
	expect 4 TORCH_IMPORT_FAILED import out
}

@test "CPU image with a real PyTorch (this machine's, mounted)" {
	[[ -d /usr/lib/python3/dist-packages/torch ]] || skip 'python3-torch is not installed (ci/deps.sh test)'
	container -v /usr/lib:/usr/lib:ro -v /usr/bin:/usr/bin:ro -v /etc/alternatives:/etc/alternatives:ro \
		"localhost/kd-preflight-cpu-ci:$VERSION"
	expect 0 CPU_CHECK_PASSED complete out
	[[ $(value pytorch.version) != *stub* ]]
	is 196 "$(value execution.loss)"
}

@test "a report on a mounted folder: each run its own file, and one that is taken is refused" {
	reports
	container -v "$T/reports:/reports" -e KD_PREFLIGHT_OUTPUT=/reports/ localhost/kd-preflight-pytorch:double --steps 1
	is 0 "$status"
	container -v "$T/reports:/reports" -e KD_PREFLIGHT_OUTPUT=/reports/ localhost/kd-preflight-init:double
	is 0 "$status"
	container -v "$T/reports:/reports" -e KD_PREFLIGHT_OUTPUT=/reports/ -e KD_STUB=no-device \
		"localhost/kd-preflight-pytorch:$VERSION"
	is 6 "$status"
	local report
	is 3 "$(find reports -name '*.json' | wc -l)"
	for report in reports/*.json; do
		valid "$report"
		is 12345 "$(stat -c %u "$report")"
	done
	container -v "$T/reports:/reports" -e KD_PREFLIGHT_OUTPUT=/reports/one.json localhost/kd-preflight-init:double
	is 0 "$status"
	container -v "$T/reports:/reports" -e KD_PREFLIGHT_OUTPUT=/reports/one.json localhost/kd-preflight-init:double
	is 12 "$status"
	container -v "$T/reports:/reports:ro" -e KD_PREFLIGHT_OUTPUT=/reports/ localhost/kd-preflight-pytorch:double --steps 1
	is 12 "$status"
	[[ ! -s out ]]
}

@test "the verdict in a termination log, on a failure and on a pass without PROGRAM" {
	: >log && chmod 666 log
	container -v "$T/log:/dev/termination-log" "localhost/kd-preflight-init:$VERSION"
	is '"GPU_BACKEND_ABSENT"' "$(value code log)"
	: >log
	container -v "$T/log:/dev/termination-log" localhost/kd-preflight-pytorch:double --steps 1
	[[ ! -s log ]]
}

# A character device with the owner and mode of AMD's stands for it; the HIP double for the driver.
@test "AMD: without the group of the device node refused, with a hint; with the groups of amd.yaml passed" {
	mknod -m 0660 kfd c 1 3
	chgrp 109 kfd
	local amd=(-v "$TOP/build/doubles/hip:/opt/hip:ro" -e LD_LIBRARY_PATH=/opt/hip --device "$T/kfd:/dev/kfd")
	container "${amd[@]}" -e KD_DOUBLE_FAULT=hipInit=error:100 "localhost/kd-preflight-init:$VERSION"
	expect 6 GPU_UNAVAILABLE device out
	has_hint device-node-group
	local groups=()
	mapfile -t groups < <(sed -n 's/.*supplementalGroups: \[\(.*\)\]/\1/p' "$TOP/entrypoint/kubernetes/amd.yaml" | tr -d ' ' | tr , '\n')
	is 2 "${#groups[@]}"
	container "${amd[@]}" "${groups[@]/#/--group-add=}" "localhost/kd-preflight-init:$VERSION"
	expect 0 GPU_CHECK_PASSED complete out
	is '"hip"' "$(value driver.backend)"
	# Control: the same failure, in the group, has no such hint.
	container "${amd[@]}" "${groups[@]/#/--group-add=}" -e KD_DOUBLE_FAULT=hipInit=error:100 "localhost/kd-preflight-init:$VERSION"
	is 6 "$status"
	run -1 has_hint device-node-group
}

@test "the distribution image mounted into a foreign one, as image-volume.yaml does" {
	mkdir app && cp "$TOP/images/train.py" app/
	local command=() mounted=(--mount "type=image,source=localhost/kd-preflight:$VERSION,destination=/kd-preflight")
	mapfile -t command < <(sed -n 's/.*command: \[\(.*\)\]/\1/p' "$TOP/entrypoint/kubernetes/image-volume.yaml" | tr -d ' "' | tr , '\n')
	reports
	container "${mounted[@]}" -v "$T/app:/app:ro" -v "$T/reports:/reports" localhost/kd-test-python:double "${command[@]}"
	is 0 "$status"
	grep -q 'train: 100 steps done' out
	valid reports/*.json
	container "${mounted[@]}" -v "$T/app:/app:ro" -v "$T/reports:/reports" -e KD_DOUBLE_FAULT=cuLaunchKernel=zeros \
		localhost/kd-test-python:double "${command[@]}"
	is 8 "$status"
	[[ ! -s out ]]
}

@test "podman stop during the native check: 143 at once, the report says INTERRUPTED" {
	reports
	started a -v "$T/reports:/reports" -e KD_DOUBLE_FAULT=cuInit=hang localhost/kd-preflight-init:double \
		--output /reports/ --timeout 60
	sleep 1
	stopped a
	is 143 "$status"
	((took_s <= 5))
	valid out
	is '"INTERRUPTED"' "$(value code)"
	is '"SIGTERM"' "$(value detail.signal)"
	valid reports/*.json
}

@test "podman stop during the import of PyTorch: 143 at once, the workload never starts" {
	started a -e KD_STUB=hang-import localhost/kd-preflight-pytorch:double --steps 1
	sleep 1
	stopped a
	is 143 "$status"
	((took_s <= 5))
	[[ ! -s out ]]
	grep -q 'INTERRUPTED (exit 143)' err
}

@test "podman stop during the workload reaches the workload" {
	started a localhost/kd-preflight-pytorch:double --steps 0
	until_said a 'first step done'
	stopped a
	is 143 "$status"
	((took_s <= 5))
	grep -q 'train: stopped by signal 15' out
}

@test "podman kill at once: no workload, whatever the moment" {
	local i
	for i in 1 2 3; do
		started "$i" -e KD_STUB=hang-import localhost/kd-preflight-pytorch:double --steps 1
		"$PODMAN" kill --signal TERM "kd-$BATS_TEST_NUMBER-$i" >/dev/null
		is 143 "$("$PODMAN" wait "kd-$BATS_TEST_NUMBER-$i")"
	done
}

# recipe NAME LINE...: builds entrypoint/docker/Containerfile.NAME on the python base and the lines, as localhost/kd-test:NAME.
recipe() {
	local name=$1
	shift
	mkdir context
	cp "$TOP/images/train.py" context/
	[[ ! -d extra ]] || cp -r extra/. context/
	printf '%s\n' 'FROM localhost/kd-test-python:double' "$@" >base
	"$PODMAN" build --quiet --timestamp 0 -t "localhost/kd-test:base-$name" -f base context >/dev/null
	"$PODMAN" build --quiet --timestamp 0 --build-arg "BASE=localhost/kd-test:base-$name" \
		--build-arg "KD_PREFLIGHT=localhost/kd-preflight:$VERSION" -t "localhost/kd-test:$name" \
		-f "$TOP/entrypoint/docker/Containerfile.$name" context >/dev/null
}

@test "recipe: plain ENTRYPOINT" {
	recipe entrypoint
	container localhost/kd-test:entrypoint --steps 1
	is 0 "$status"
	grep -q '1 steps done' out
	container -e KD_STUB=no-device -e KD_DOUBLE_FAULT=cuInit=error:100 localhost/kd-test:entrypoint --steps 1
	is 6 "$status"
	[[ ! -s out ]]
}

@test "recipe: behind tini, which stays PID 1 and forwards podman stop to check and workload" {
	recipe tini
	container localhost/kd-test:tini --steps 1
	is 0 "$status"
	container -e KD_STUB=no-device -e KD_DOUBLE_FAULT=cuInit=error:100 localhost/kd-test:tini --steps 1
	is 6 "$status"
	started check -e KD_STUB=hang-import localhost/kd-test:tini --steps 0
	sleep 1
	stopped check
	is 143 "$status"
	((took_s <= 5))
	started work localhost/kd-test:tini --steps 0
	until_said work 'first step done'
	stopped work
	is 143 "$status"
	grep -q 'train: stopped by signal 15' out
}

@test "recipe: in front of torchrun (a stand-in for the launcher), every card checked" {
	mkdir extra
	cat >extra/torchrun <<-'S'
		#!/usr/bin/python3
		import os, sys
		assert sys.argv[1:3] == ['--standalone', '--nproc-per-node=gpu'], sys.argv
		for rank in range(int(os.environ['KD_DOUBLE_DEVICES'])):
		    os.environ['LOCAL_RANK'] = str(rank)
		    status = os.spawnv(os.P_WAIT, sys.executable, [sys.executable] + sys.argv[3:])
		    if status:
		        sys.exit(status)
	S
	chmod +x extra/torchrun
	recipe torchrun 'COPY torchrun /usr/local/bin/'
	container -e KD_DOUBLE_DEVICES=2 -e KD_STUB_DEVICES=2 localhost/kd-test:torchrun --steps 1
	is 0 "$status"
	is 2 "$(grep -c '1 steps done' out)"
	grep -q '2 visible' err
	container -e KD_DOUBLE_DEVICES=2 -e KD_STUB_DEVICES=2 -e KD_DOUBLE_FAULT=cuLaunchKernel@1=zeros localhost/kd-test:torchrun --steps 1
	is 8 "$status"
	[[ ! -s out ]]
}

# The launchers themselves are stand-ins: what counts is which interpreter is checked, and that they are started.
@test "recipe: uv and conda images, the interpreter named by --python" {
	mkdir extra
	printf '#!/bin/sh\n[ "$1 $2" = "run --no-sync" ] && shift 2 && exec /app/.venv/bin/python "$@"\n' >extra/uv
	chmod +x extra/uv
	mkdir -p venv/bin && ln -s /usr/bin/python3 venv/bin/python && printf 'home = /usr/bin\ninclude-system-site-packages = true\n' >venv/pyvenv.cfg
	cp -r venv extra/.venv
	recipe uv 'COPY .venv /app/.venv' 'COPY uv /usr/local/bin/'
	container localhost/kd-test:uv --steps 1
	is 0 "$status"
	grep -q '1 steps done' out
	container --mount type=tmpfs,notmpcopyup,destination=/app/.venv localhost/kd-test:uv --steps 1
	is 13 "$status"

	rm -rf extra context && mkdir extra
	printf '#!/bin/sh\n[ "$*" != "${*#run --no-capture-output -n app}" ] && shift 5 && exec /opt/conda/envs/app/bin/python "$@"\n' >extra/conda
	chmod +x extra/conda
	cp -r venv extra/env
	recipe conda 'COPY env /opt/conda/envs/app' 'COPY conda /usr/local/bin/'
	container localhost/kd-test:conda --steps 1
	is 0 "$status"
	grep -q '1 steps done' out
	container --mount type=tmpfs,notmpcopyup,destination=/usr/lib/python3/dist-packages localhost/kd-test:conda --steps 1
	is 3 "$status"
	[[ ! -s out ]]
}
