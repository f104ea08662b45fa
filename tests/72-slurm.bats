#!/usr/bin/env bats
# The scripts of entrypoint/slurm under a real slurmctld, slurmd and munged, on loopback. The node has two "GPUs" that are
# terminals to Slurm; the CUDA double computes in their place, and fails as the file $FAULT tells.

load helper

setup_file() {
	[[ $EUID -eq 0 ]] || skip 'needs root'
	local tool
	for tool in slurmctld slurmd srun munged; do
		PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null || skip "$tool is not installed (ci/deps.sh test)"
	done
	top=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
	S=$BATS_FILE_TMPDIR
	export S SLURM_CONF=$S/slurm.conf FAULT=$S/fault PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
	mkdir "$S/state" "$S/spool" "$S/reports"
	: >"$FAULT"
	: >"$FAULT.health"

	# A socket's path has at most 107 bytes.
	munge=$(mktemp -d)
	echo "$munge" >"$S/munge"
	head -c 1024 /dev/urandom >"$munge/key"
	chmod 600 "$munge/key"
	munged --foreground --force --key-file="$munge/key" --socket="$munge/socket" --pid-file="$munge/pid" \
		--log-file="$S/munged.log" --seed-file="$munge/seed" >"$S/munged.out" 2>&1 3>&- &
	echo $! >"$S/pids"

	# What a site would write into the scripts' settings.
	for script in prolog health-check task-prolog; do
		cat >"$S/$script" <<-P
			#!/bin/sh
			export KD='$top/build/kd-preflight' KD_REPORTS=$S/reports/ LD_LIBRARY_PATH='$top/build/doubles/cuda'
			export KD_DOUBLE_DEVICES=2 KD_DOUBLE_FAULT=\$(cat $FAULT$([[ $script != health-check ]] || echo .health))
			[ -n "\$KD_DOUBLE_FAULT" ] || unset KD_DOUBLE_FAULT
			echo "\${SLURM_JOB_GPUS-}" >>$S/$script.ran
			export SLURM_CONF=$SLURM_CONF # not in a HealthCheckProgram's environment
			exec '$top/entrypoint/slurm/$script.sh'
		P
		chmod +x "$S/$script"
	done

	# Free ports, as far as one can know.
	port=$((20000 + RANDOM % 10000))
	cat >"$SLURM_CONF" <<-C
		ClusterName=kd
		SlurmctldHost=localhost(127.0.0.1)
		SlurmctldPort=$port
		SlurmdPort=$((port + 1))
		AuthType=auth/munge
		AuthInfo=socket=$munge/socket
		SlurmUser=root
		SlurmctldPidFile=$S/ctld.pid
		SlurmdPidFile=$S/d.pid
		StateSaveLocation=$S/state
		SlurmdSpoolDir=$S/spool
		SlurmctldLogFile=$S/ctld.log
		SlurmdLogFile=$S/d.log
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		MpiDefault=none
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		ReturnToService=2
		GresTypes=gpu
		MailProg=/bin/true
		Prolog=$S/prolog
		PrologFlags=Alloc
		PrologEpilogTimeout=60
		HealthCheckProgram=$S/health-check
		HealthCheckInterval=1
		HealthCheckNodeState=IDLE
		NodeName=kdnode NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 CPUs=$(nproc) Gres=gpu:2 State=UNKNOWN
		PartitionName=p Nodes=ALL Default=YES State=UP
	C
	echo 'NodeName=kdnode Name=gpu File=/dev/tty[0-1]' >"$S/gres.conf"
	tries=50
	while ((tries-- > 0)) && [[ ! -S $munge/socket ]]; do sleep 0.1; done
	slurmctld -D >"$S/ctld.out" 2>&1 3>&- &
	echo $! >>"$S/pids"
	slurmd -D -N kdnode >"$S/d.out" 2>&1 3>&- &
	echo $! >>"$S/pids"
	until_node idle || { cat "$S"/*.out "$S"/*.log >&2; return 1; }
}

teardown_file() {
	[[ -f $S/pids ]] || return 0
	# slurmd first, munged last
	for pid in $(tac "$S/pids"); do
		kill "$pid" 2>/dev/null || continue
		tries=50
		while ((tries-- > 0)) && kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
		kill -KILL "$pid" 2>/dev/null || true
	done
	rm -rf "$(<"$S/munge")"
}

# Every test begins with a sound, idle node.
good() {
	: >"$FAULT"
	: >"$FAULT.health"
	scancel --user root --full 2>/dev/null || true
	scontrol update NodeName=kdnode State=RESUME 2>/dev/null || true
	until_node idle
	cd "$T" || return
}

until_node() { # STATE
	local tries=100
	while ((tries-- > 0)); do
		[[ $(sinfo -h -o %T 2>/dev/null) != "$1" ]] || return 0
		sleep 0.1
	done
	echo "node never $1:"
	sinfo -N -l
	return 1
}

reason() {
	sinfo -h -R -o %E
}

# job OPTION... COMMAND: srun, output in out and err, sets status
job() {
	status=0
	timeout --kill-after=5 40 srun --partition=p --ntasks=1 --chdir="$T" "$@" >out 2>err </dev/null || status=$?
}

@test "a job runs after a passing Prolog, which saved its report" {
	good
	local before
	before=$(find "$S/reports" -name '*.json' | wc -l)
	job --gres=gpu:1 sh -c 'echo the job ran'
	is 0 "$status"
	is 'the job ran' "$(<out)"
	is 0 "$(tail -n 1 "$S/prolog.ran")" 'SLURM_JOB_GPUS'
	is $((before + 1)) "$(find "$S/reports" -name '*.json' | wc -l)" reports
	local report
	for report in "$S"/reports/*.json; do valid "$report"; done
	is idle "$(sinfo -h -o %T)"
}

@test "every card of the job is checked, and only those" {
	good
	job --gres=gpu:2 true
	is 0 "$status"
	is 0,1 "$(tail -n 1 "$S/prolog.ran")"
	echo 'cuLaunchKernel@1=zeros' >"$FAULT"
	job --gres=gpu:1 true
	is 0 "$status"
	job --gres=gpu:2 true
	[[ $status -ne 0 ]]
	is 'kd-preflight: CHECK_FAILED (exit 8), stage product' "$(reason)" reason
}

@test "a job without a card is none of ours" {
	good
	echo 'cuInit=error:999' >"$FAULT"
	job sh -c 'echo the job ran'
	is 0 "$status"
	is 'the job ran' "$(<out)"
}

@test "after a failing Prolog the node is drained with our reason, the job is requeued and held, and nothing ran" {
	good
	echo 'cuInit=error:802' >"$FAULT"
	printf '#!/bin/sh\necho the job ran | tee ran\n' >batch.sh
	local id
	id=$(sbatch --parsable --gres=gpu:1 --chdir="$T" --output="$T/batch.out" batch.sh)
	until_node drained
	is 'kd-preflight: GPU_UNAVAILABLE (exit 6), stage device' "$(reason)" reason
	local tries=50
	while ((tries-- > 0)) && [[ $(squeue -h -j "$id" -o '%T %r') != PENDING* ]]; do sleep 0.1; done
	[[ $(squeue -h -j "$id" -o '%T %r') == 'PENDING '*held* ]] || { squeue -j "$id"; return 1; }
	[[ ! -e ran ]]
	# Mended and resumed, the held job runs.
	: >"$FAULT"
	scontrol update NodeName=kdnode State=RESUME
	scontrol release "$id"
	scontrol update JobId="$id" StartTime=now # Slurm would wait two minutes after a requeue
	tries=150
	while ((tries-- > 0)) && [[ ! -e ran ]]; do sleep 0.1; done
	is 'the job ran' "$(<ran)"
}

@test "the health check drains an idle node, keeps a reason that is there, and never resumes" {
	good
	local runs
	runs=$(wc -l <"$S/health-check.ran")
	local tries=100
	while ((tries-- > 0)) && (($(wc -l <"$S/health-check.ran") < runs + 2)); do sleep 0.1; done
	is idle "$(sinfo -h -o %T)"
	echo 'cuLaunchKernel=zeros' >"$FAULT.health"
	until_node drained
	is 'kd-preflight: CHECK_FAILED (exit 8), stage product' "$(reason)" reason
	scontrol update NodeName=kdnode State=DRAIN Reason='a human was here'
	: >"$FAULT.health"
	runs=$(wc -l <"$S/health-check.ran")
	sleep 3
	is drained "$(sinfo -h -o %T)"
	is 'a human was here' "$(reason)"
}

@test "TaskProlog: the verdict is in the job's output, and a failure stops the task before its program" {
	good
	export PYTHONPATH=$STUBS # the first python3 of PATH is checked, too, if it has torch
	job --gres=gpu:1 --task-prolog="$S/task-prolog" sh -c 'echo the job ran'
	is 0 "$status"
	grep -q '^kd-preflight: GPU_CHECK_PASSED (exit 0)' out
	is 'the job ran' "$(tail -n 1 out)"
	# Once a node, by the first task.
	job --ntasks=2 --overcommit --gres=gpu:1 --task-prolog="$S/task-prolog" sh -c 'echo the job ran'
	is 0 "$status"
	is 1 "$(grep -c 'GPU_CHECK_PASSED' out)"
	is 2 "$(grep -c 'the job ran' out)"

	printf '#!/bin/sh\nexport KD_DOUBLE_FAULT=cuLaunchKernel=zeros LD_LIBRARY_PATH="%s" KD="%s"\nexec "%s"\n' \
		"$TOP/build/doubles/cuda" "$KD" "$TOP/entrypoint/slurm/task-prolog.sh" >bad-prolog
	chmod +x bad-prolog
	job --gres=gpu:1 --task-prolog="$T/bad-prolog" sh -c 'echo the job ran'
	is 8 "$status"
	grep -q '^kd-preflight: CHECK_FAILED (exit 8), stage product' out
	[[ $(<out) != *'the job ran'* ]]
}
