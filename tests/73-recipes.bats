#!/usr/bin/env bats
# The scripts and pages of entrypoint/ through the rules of what reads them, and every command that a page tells to type, typed.

# shellcheck disable=SC2013,SC2016,SC2030,SC2031 # words without blanks; patterns; each test has its own variables

load helper

ENTRY=$TOP/entrypoint
DOUBLE=$TOP/build/doubles/cuda

setup_file() {
	export CONTAINERS_READY=
	local tool
	for tool in podman runc catatonit mmdebstrap; do
		command -v "$tool" >/dev/null || return 0
	done
	[[ $EUID -eq 0 ]] || return 0
	"$BATS_TEST_DIRNAME/container-base.sh" >&2
	CONTAINERS_READY=1
}

need_containers() {
	[[ -n $CONTAINERS_READY ]] || skip 'podman, runc, catatonit or mmdebstrap is not installed (ci/deps.sh test), or not root'
	PODMAN=$TOP/build/containers/podman
	VERSION=$("$KD" --version | sed 's/.* //')
}

teardown() {
	[[ -z ${STARTED:-} ]] || kill -KILL "$STARTED" 2>/dev/null || true
	[[ -z $CONTAINERS_READY ]] || "$TOP/build/containers/podman" rm --force --time 0 rental >/dev/null 2>&1 || true
}

# said_by STATUS CODE LINE: a stand-in for kd-preflight that ends so, in $T/fake.
said_by() {
	printf '#!/bin/sh\necho "{}"\necho "kd-preflight: [FAILED] backend and device" >&2\necho "%s" >&2\nexit %s\n' "$3" "$1" >fake
	chmod +x fake
}

# --- node-problem-detector

# plugin: runs it with its environment; sets status, answer in out. What the detector would make of it is checked here: one
# line, at most 80 bytes, nothing else than 0, 1 or 2.
plugin() {
	status=0
	env "$@" sh "$ENTRY/node-problem-detector/kd-preflight.sh" >out 2>err || status=$?
	is 1 "$(wc -l <out)" lines
	(($(stat -c %s out) <= 81)) || { echo "too long: $(<out)"; return 1; }
	[[ $status == [012] ]] || { echo "exit status $status"; return 1; }
}

@test "node-problem-detector: every code has its answer" {
	local number name wanted
	while read -r number name _; do
		case $name in
		GPU_CHECK_PASSED | CPU_CHECK_PASSED) wanted=0 ;;
		GPU_BACKEND_ABSENT | GPU_UNAVAILABLE | DEVICE_INDEX_INVALID | CHECK_FAILED | RUNTIME_ERROR | TIMEOUT | WORKER_FAILED)
			wanted=1 ;;
		*) wanted=2 ;;
		esac
		said_by "${number/+n/}" "$name" "kd-preflight: $name (exit ${number/+n/}), stage device, cuInit, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803); next: x"
		plugin KD="$T/fake"
		is "$wanted" "$status" "answer to $name"
		[[ $wanted -eq 0 ]] || grep -q "$name (exit" out
	done < <("$KD" --list-codes)
	is 'no check: exit 127' "$(plugin KD="$T/not-there" && cat out)"
}

@test "node-problem-detector: over the real program" {
	plugin KD="$KD" LD_LIBRARY_PATH="$DOUBLE"
	is 0 "$status"
	plugin KD="$KD" LD_LIBRARY_PATH="$DOUBLE" KD_DOUBLE_FAULT=cuInit=error:802
	is 1 "$status"
	is 'GPU_UNAVAILABLE (exit 6), stage device, cuInit, CUDA_ERROR_SYSTEM_NOT_READY (802' "$(head -c 80 out)"
	plugin KD="$KD" LD_LIBRARY_PATH="$DOUBLE" KD_DOUBLE_FAULT=cuMemAlloc_v2=error:2
	is 2 "$status"
	grep -q '^in use: OUT_OF_MEMORY' out
	plugin KD="$KD" LD_LIBRARY_PATH="$DOUBLE" KD_DOUBLE_FAULT=cuDevicePrimaryCtxRetain=error:46
	is 2 "$status"
	grep -q '^in use: GPU_UNAVAILABLE' out
	plugin KD="$KD" LD_LIBRARY_PATH="$DOUBLE" KD_DOUBLE_FAULT=cuInit=hang KD_SECONDS=5
	is 1 "$status"
	grep -q '^TIMEOUT' out
	plugin KD="$KD" LD_LIBRARY_PATH="$DOUBLE" KD_EXPECT=2
	is 1 "$status"
	plugin KD="$KD" LD_LIBRARY_PATH="$DOUBLE" KD_SECONDS=1
	is 2 "$status"
	plugin KD="$KD"
	is 1 "$status"
}

@test "node-problem-detector: the monitor's file is one that it accepts" {
	"$PYTHON" - "$ENTRY/node-problem-detector/kd-preflight.json" <<-'P'
		import json, re, sys
		# pkg/custompluginmonitor/types/config.go: plugin "custom"; a rule's timeout not above the global one; a
		# permanent rule's condition has a default.
		config = json.load(open(sys.argv[1]))
		def seconds(text):
		    number, unit = re.fullmatch(r'(\d+)([smh])', text).groups()
		    return int(number) * {'s': 1, 'm': 60, 'h': 3600}[unit]
		assert config['plugin'] == 'custom'
		limits = config['pluginConfig']
		assert limits['max_output_length'] == 80
		conditions = {c['type'] for c in config['conditions']}
		for rule in config['rules']:
		    assert rule['type'] == 'permanent' and rule['condition'] in conditions
		    assert 20 < seconds(rule['timeout']) <= seconds(limits['timeout']) < seconds(limits['invoke_interval'])
	P
}

# --- CI

@test "CI step: passes with this machine's PyTorch, keeps the report, and hands failures through" {
	mkdir bin && ln -s "$KD" bin/kd-preflight
	export PATH=$T/bin:$PATH
	status=0
	PYTHON=/usr/bin/python3 sh "$ENTRY/ci/cpu-check.sh" >out 2>err || status=$?
	expect 0 CPU_CHECK_PASSED complete out
	valid kd-preflight-reports/*.json
	local shape wanted
	for shape in missing-so=4 sigill=11 zeros=8; do
		wanted=${shape#*=}
		status=0
		PYTHONPATH=$STUBS KD_STUB=${shape%=*} sh "$ENTRY/ci/cpu-check.sh" other >out 2>err || status=$?
		is "$wanted" "$status" "$shape"
	done
	is 3 "$(find other -name '*.json' | wc -l)"
	status=0
	PYTHON=/no/python sh "$ENTRY/ci/cpu-check.sh" other >out 2>err || status=$?
	is 13 "$status"
}

@test "CI step: the workflow's own commands, in the shell and the environment that a runner gives" {
	need_containers
	"$PYTHON" - "$ENTRY/ci/cpu-check.yml" >steps <<-'P'
		import sys, yaml
		job, = yaml.safe_load(open(sys.argv[1]))['jobs'].values()
		for number, step in enumerate(job['steps']):
		    assert ('uses' in step) != ('run' in step)
		    if 'run' in step and 'pip install' not in step['run']:
		        name = 'step-%d' % number
		        open(name, 'w').write(step['run'])
		        print(name)
	P
	is 2 "$(wc -l <steps)"
	mkdir bin runner
	ln -s /usr/bin/python3 bin/python
	shim_docker
	export PATH=$T/bin:$PATH RUNNER_TEMP=$T/runner GITHUB_PATH=$T/path IMAGE=localhost/kd-preflight:$VERSION
	mkdir entrypoint && cp -r "$ENTRY/ci" entrypoint/
	bash -e "$(sed -n 1p steps)"
	PATH=$(<path):$PATH
	bash -e "$(sed -n 2p steps)" >out
	is '"CPU_CHECK_PASSED"' "$(value code)"
	valid kd-preflight-reports/*.json
}

# --- rented machines

# rental [NAME=VALUE...] -- WORKLOAD...: start.sh in the background, pid in STARTED, its words in out and err.
rental() {
	local settings=()
	while [[ $1 != -- ]]; do
		settings+=("$1")
		shift
	done
	shift
	mkdir -p bin && ln -sf "$KD" bin/kd-preflight
	env PATH="$T/bin:$PATH" LD_LIBRARY_PATH="$DOUBLE" PYTHONPATH="$STUBS" REPORT_DIR="$T/volume" \
		KD_PREFLIGHT_TERMINATION_LOG=none "${settings[@]}" sh "$ENTRY/rental/start.sh" "$@" >out 2>err </dev/null 3>&- &
	STARTED=$!
}

until_file_says() { # FILE PATTERN
	local tries=150
	while ((tries-- > 0)); do
		! grep -q "$2" "$1" 2>/dev/null || return 0
		sleep 0.1
	done
	echo "$1 never said: $2"
	cat out err
	return 1
}

ended() {
	status=0
	wait "$STARTED" || status=$?
	STARTED=
}

@test "rental: the workload runs behind a pass; the machine stays, and goes on SIGTERM" {
	rental ACCESS="sh -c 'echo \$\$ >$T/access; exec sleep 300'" -- "$PYTHON" -c 'print("worked")'
	until_file_says err 'the workload ended with 0'
	grep -qx worked out
	kill -0 "$STARTED"
	kill -0 "$(<access)"
	kill -TERM "$STARTED"
	ended
	is 143 "$status"
	! kill -0 "$(<access)" 2>/dev/null || { echo 'access was left behind'; return 1; }
	grep -q GPU- volume/*.json # UUIDs, as proof
	valid volume/*.json
}

@test "rental: LEAVE=1 ends with the workload's exit status" {
	rental LEAVE=1 ACCESS='sleep 300' -- "$PYTHON" -c 'raise SystemExit(6)'
	ended
	is 6 "$status"
	grep -q 'the workload ended with 6' err
}

@test "rental: a failed check starts nothing, keeps the machine reachable, and names the report" {
	rental LEAVE=1 KD_DOUBLE_FAULT='cuLaunchKernel=zeros' ACCESS="sh -c 'echo \$\$ >$T/access; exec sleep 300'" -- "$T/workload"
	until_file_says err 'refused with 8'
	until_file_says err 'sha256'
	not_started
	kill -0 "$STARTED"
	kill -0 "$(<access)"
	local report
	report=$(sed -n 's/.*report for a claim: \(.*\), sha256 .*/\1/p' err)
	expect_report 8 CHECK_FAILED product "$report"
	is "$(sha256sum "$report" | cut -c -64)" "$(sed -n 's/.*sha256 //p' err)" sha256
	kill -TERM "$STARTED"
	ended
	is 143 "$status"
}

expect_report() {
	valid "$4" && is "\"$2\"" "$(value code "$4")" && is "\"$3\"" "$(value stage "$4")" && is "$1" "$(value exit_code "$4")"
}

@test "rental: fewer cards than were paid for; each card is checked" {
	rental RENTED_DEVICES=8 KD_DOUBLE_DEVICES=7 -- "$T/workload"
	until_file_says err 'refused with 7'
	not_started
	kill -TERM "$STARTED"
	ended
	is 143 "$status"
	rental RENTED_DEVICES=2 KD_DOUBLE_DEVICES=2 KD_DOUBLE_FAULT='cuLaunchKernel@1=zeros' -- "$T/workload"
	until_file_says err 'refused with 8'
	not_started
	kill -TERM "$STARTED"
	ended
}

@test "rental: a report folder that cannot be written keeps the machine reachable, too" {
	printf x >volume
	rental -- "$T/workload"
	until_file_says err 'start.sh: kd-preflight refused'
	not_started
	kill -0 "$STARTED"
	kill -TERM "$STARTED"
	ended
	is 143 "$status"
	run -2 sh "$ENTRY/rental/start.sh"
}

# --- ranks

@test "rank.sh behind the real torchrun: each rank checks its own card" {
	[[ -x /usr/bin/torchrun ]] || skip 'python3-torch is not installed (ci/deps.sh test)'
	mkdir bin && ln -s "$KD" bin/kd-preflight
	printf 'import os\nopen("rank-" + os.environ["LOCAL_RANK"], "w")\n' >train.py
	# torchrun itself is the real PyTorch; the ranks' is the stub, since no card is here.
	printf '#!/bin/sh\nexport PYTHONPATH="%s"\nexec sh "%s" "$@"\n' "$STUBS" "$ENTRY/docker/rank.sh" >rank
	chmod +x rank
	# Where the output goes, rank by rank: torchrun 1.13 cannot read its own default under Python 3.11.
	local launch=(timeout 90 torchrun --standalone --nproc_per_node=2 --redirects='0:1,1:1' --tee='0:1,1:1' --no_python ./rank train.py)
	export PATH=$T/bin:$PATH LD_LIBRARY_PATH=$DOUBLE KD_DOUBLE_DEVICES=2 KD_STUB_DEVICES=2 KD_PREFLIGHT_OUTPUT=$T/reports/
	mkdir reports
	"${launch[@]}" >out 2>err || { tail -n 30 err; return 1; }
	[[ -e rank-0 && -e rank-1 ]]
	is 2 "$(find reports -name '*.json' | wc -l)"
	is '0 1' "$(for report in reports/*.json; do value requested.device_index "$report"; done | sort | xargs)"
	rm rank-?
	export KD_DOUBLE_FAULT=cuLaunchKernel@1=zeros
	! "${launch[@]}" >out 2>err || return 1
	[[ ! -e rank-1 ]]
	grep -q 'CHECK_FAILED (exit 8)' err
}

# --- pages

# blocks PAGE: the commands of its ```sh blocks.
blocks() {
	sed -n '/^```sh$/,/^```$/p' "$1" | grep -v '^```'
}

# docker as these pages use it: podman with what this machine needs, the cards of --gpus being the double's in the image.
shim_docker() {
	cat >bin/docker <<-S
		#!/bin/bash
		echo "docker \$*" >>$T/typed
		command=\$1 arguments=()
		shift
		[[ \$command != run ]] || arguments+=(--network none)
		while ((\$# > 0)); do
		    case \$1 in
		    --gpus | --network) shift ;;
		    *) arguments+=("\$1") ;;
		    esac
		    shift
		done
		[[ \$command != create ]] || arguments=(--name kd-create-\$\$ "\${arguments[@]}")
		exec "$PODMAN" "\$command" "\${arguments[@]}"
	S
	chmod +x bin/docker
}

@test "every file of entrypoint/ is named on the page of its folder, and every folder on the first" {
	local folder file
	for folder in "$ENTRY"/*/; do
		grep -q "($(basename "$folder")/README.md)" "$ENTRY/README.md"
		for file in "$folder"*; do
			[[ $file == */README.md ]] || grep -q "$(basename "$file")" "$folder/README.md" || { echo "$file"; return 1; }
		done
	done
}

@test "no page has commands that are not typed below" {
	is 'ci docker kubernetes node-problem-detector rental slurm' \
		"$(for page in "$ENTRY"/*/README.md; do [[ -z $(blocks "$page") ]] || basename "$(dirname "$page")"; done | xargs)"
	is '' "$(blocks "$ENTRY/README.md")"
}

@test "typed: docker/README.md" {
	need_containers
	mkdir bin reports && chmod 777 reports
	shim_docker
	blocks "$ENTRY/docker/README.md" >commands
	is 3 "$(wc -l <commands)"
	export PATH=$T/bin:$PATH BASE=localhost/kd-test-python:double REPORTS=$T/reports
	cd "$TOP" && bash -eux "$T/commands" >"$T/out" 2>"$T/err"
	cd "$T"
	is 2 "$(grep -c '^train: 3 steps done$' out)"
	is '"GPU_CHECK_PASSED"' "$(value code reports/*.json)"
}

@test "typed: ci/README.md" {
	need_containers
	mkdir bin && ln -s "$KD" bin/kd-preflight
	shim_docker
	blocks "$ENTRY/ci/README.md" >commands
	is 2 "$(wc -l <commands)"
	ln -s "$ENTRY" entrypoint
	export PATH=$T/bin:$PATH CPU_IMAGE=localhost/kd-preflight-cpu-ci:$VERSION
	bash -eux commands >out 2>err
	valid kd-preflight-reports/*.json
	is 2 "$(grep -c 'CPU_CHECK_PASSED (exit 0)' err)"
}

@test "typed: rental/README.md, with start.sh as PID 1 of a container" {
	need_containers
	mkdir bin context volume && chmod 777 volume
	shim_docker
	cp "$ENTRY/rental/start.sh" "$TOP/images/train.py" context/
	# The lines of the page, over a base that has the double in it.
	{
		echo 'FROM localhost/kd-test-python:double'
		sed -n 's/^    \(COPY\|ENV\|ENTRYPOINT\)/\1/p' "$ENTRY/rental/README.md"
		echo 'COPY train.py /app/train.py'
		echo 'ENV ACCESS="sleep 300" KD_DOUBLE_FAULT=cuInit=error:999 KD_STUB=no-device'
	} >Containerfile
	"$PODMAN" build --quiet --timestamp 0 -t localhost/kd-test:rental -f Containerfile context >/dev/null
	blocks "$ENTRY/rental/README.md" >commands
	is 3 "$(wc -l <commands)"
	export PATH=$T/bin:$PATH RENTAL_IMAGE=localhost/kd-test:rental REPORTS=$T/volume
	# A pause between the lines, as between two of a person's.
	sed -i '1s/$/; sleep 3/' commands
	bash -eux commands >out 2>err || { cat out err; return 1; }
	cat out err >both && cat both
	grep -q 'kd-preflight refused with 6: the workload was not started' both
	grep -q 'sha256' both
	is 143 "$("$PODMAN" inspect --format '{{.State.ExitCode}}' rental)"
	is '"GPU_UNAVAILABLE"' "$(value code volume/kd-preflight/*.json)"
}

@test "typed: slurm/README.md" {
	mkdir bin && printf '#!/bin/sh\necho "scontrol $*" >>typed\n' >bin/scontrol && chmod +x bin/scontrol
	blocks "$ENTRY/slurm/README.md" >commands
	is 2 "$(wc -l <commands)"
	ln -s "$ENTRY" entrypoint
	PATH=$T/bin:$PATH DESTDIR=$T/root bash -eux commands
	is 'scontrol reconfigure' "$(<typed)"
	local script
	# slurm.conf on the page names what was installed
	for script in $(grep -o '/etc/slurm/kd-preflight/[a-z-]*\.sh' "$ENTRY/slurm/README.md" | sort -u); do
		[[ -x root$script ]]
	done
	is 3 "$(find root -name '*.sh' -perm 0755 | wc -l)"
}

@test "typed: node-problem-detector/README.md" {
	mkdir bin && ln -s "$KD" bin/kd-preflight && ln -s "$ENTRY" entrypoint
	blocks "$ENTRY/node-problem-detector/README.md" >commands
	is 1 "$(wc -l <commands)"
	PATH=$T/bin:$PATH LD_LIBRARY_PATH=$DOUBLE bash -eu commands >out
	is $'the GPUs compute\nexit 0' "$(<out)"
	PATH=$T/bin:$PATH bash -eu commands >out
	is 'exit 1' "$(tail -n 1 out)"
}

# There is no cluster here: kubectl is a stand-in that checks names, files and manifests, and plays what the page expects.
@test "typed: kubernetes/README.md" {
	mkdir bin && ln -s "$ENTRY" entrypoint
	cat >bin/kubectl <<-'S'
		#!/usr/bin/python3
		import glob, re, sys, yaml
		arguments = sys.argv[1:]
		open('typed', 'a').write(' '.join(arguments) + '\n')
		known = [d for f in glob.glob('entrypoint/kubernetes/*.yaml') for d in yaml.safe_load_all(open(f))]
		if arguments[0] in ('apply', 'create'):
		    assert arguments[1] == '-f'
		    text = sys.stdin.read() if arguments[2] == '-' else open(arguments[2]).read()
		    for d in yaml.safe_load_all(text):
		        assert d['kind'] and (d['metadata'].get('name') or arguments[0] == 'create'), 'apply needs a name'
		        if d['kind'] == 'Job':
		            open('jobs.txt', 'a').write(d['spec']['template']['spec']['nodeSelector']['kubernetes.io/hostname'] + '\n')
		elif arguments[:2] == ['get', 'nodes']:
		    assert arguments[2:] == ['-l', 'nvidia.com/gpu.present=true', '-o', 'name']
		    print('node/gpu-a\nnode/gpu-b')
		elif arguments[0] == 'logs':
		    pods = [d for d in known if d['kind'] == 'Pod' and d['metadata']['name'] == arguments[1]]
		    assert pods
		    if len(arguments) > 2:
		        assert arguments[2] == '-c'
		        assert arguments[3] in [c['name'] for p in pods for c in p['spec'].get('initContainers', [])]
		elif arguments[:2] == ['get', 'pod']:
		    assert any(d['metadata'].get('name') == arguments[2] for d in known)
		elif arguments[:2] == ['get', 'jobs']:
		    label = arguments[arguments.index('-l') + 1].split('=')
		    assert any(d['kind'] == 'Job' and d['metadata'].get('labels', {}).get(label[0]) == label[1] for d in known)
		else:
		    sys.exit('not known: ' + arguments[0])
	S
	chmod +x bin/kubectl
	blocks "$ENTRY/kubernetes/README.md" >commands
	is 8 "$(wc -l <commands)"
	PATH=$T/bin:$PATH bash -eux commands >out 2>err || { cat out err; return 1; }
	is $'gpu-a\ngpu-b' "$(<jobs.txt)"
	is 10 "$(wc -l <typed)"
}
