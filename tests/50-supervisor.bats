#!/usr/bin/env bats
# The supervisor against workers that do not want to be supervised. They are hostile PyTorch stubs and driver doubles in
# the real program; what is measured is what a user sees: exit status, report, time, and what is left behind.

# shellcheck disable=SC2030,SC2031 # each test is a subshell of its own: that is meant

load helper

DOUBLES=$TOP/build/doubles

teardown() {
	[[ ! -f $T/frozen ]] || { fsfreeze --unfreeze "$T/mount" || true; sleep 0.3; }
	if mountpoint -q "$T/mount"; then umount "$T/mount" || umount --lazy "$T/mount"; fi
	if [[ -f $T/cgroup ]]; then rmdir "$(<"$T/cgroup")" || true; fi
	chmod -R u+rwX "$T"
}

# evil WHERE: stdin becomes Python that the worker runs: `site`, before anything of ours; `torch`, instead of torch's own
# start, after which the stub goes on and computes.
evil() {
	mkdir -p evil
	case $1 in
	site) cat >evil/sitecustomize.py ;;
	torch)
		mkdir -p evil/torch
		{
			cat
			printf '\nimport sys\nsys.path.remove("%s")\ndel sys.modules["torch"]\n' "$T/evil"
			printf 'import torch\nsys.modules["torch"] = torch\n'
		} >evil/torch/__init__.py
		;;
	esac
	export PYTHONPATH=$T/evil:$STUBS
}

# timed LEAST MOST COMMAND...: it takes that many milliseconds (CLOCK_BOOTTIME, 10 ms fine).
timed() {
	local least=$1 most=$2 from to took
	shift 2
	read -r from _ </proc/uptime
	"$@"
	read -r to _ </proc/uptime
	took=$((${to/./} * 10 - ${from/./} * 10))
	[[ $took -ge $least && $took -le $most ]] || { echo "took $took ms, wanted $least to $most"; return 1; }
}

# ends PID: waits for a child of ours; sets status.
ends() {
	status=0
	wait "$1" || status=$?
}

# left_of MARK: processes with that word in their environment.
left_of() {
	grep -slz "^KD_MARK=$1\$" /proc/[0-9]*/environ | cut -d/ -f3
}

no_process_left() {
	local tries
	for tries in {1..20}; do
		[[ -n $(left_of "$1") ]] || return 0
		sleep 0.05
	done
	echo "left after $tries looks:"
	ps -o pid,ppid,stat,args -p "$(left_of "$1" | paste -sd,)"
	return 1
}

# --- fork

# The workload tells whether the daemon lives; the daemon has left its group, its session and its parent.
daemon_case() { # LAUNCHER...
	cat >workload <<-E
		#!/bin/sh
		if kill -0 "\$(cat "$T/daemon")" 2>/dev/null; then echo alive; else echo gone; fi >"$MARKER"
	E
	evil torch <<-E
		import os, time
		try:
		    if os.fork() == 0:
		        os.setsid()
		        if os.fork() == 0:
		            with open('$T/daemon.tmp', 'w') as f: f.write(str(os.getpid()))
		            os.rename('$T/daemon.tmp', '$T/daemon')
		            time.sleep(60)
		        os._exit(0)
		    while not os.path.exists('$T/daemon'): time.sleep(0.01)
		except OSError as error:
		    print('fork:', error.strerror, flush=True)
	E
	status=0
	KD_MARK=$BATS_TEST_NUMBER timeout 60 "$@" >out 2>err || status=$?
}

@test "a worker that forks is refused it by the sandbox, and passes" {
	daemon_case "$KD" --verbose --python "$PYTHON" -- ./workload
	is 0 "$status" 'exit status'
	grep -q 'fork: Operation not permitted' err
	[[ ! -e daemon ]]
	[[ -e $MARKER ]]
}

@test "--sandbox off: a worker's daemon is gone when the workload starts" {
	daemon_case "$KD" --sandbox off --python "$PYTHON" -- ./workload
	is 0 "$status" 'exit status'
	[[ -s daemon ]] # the control: it forked
	is gone "$(<"$MARKER")" daemon
	no_process_left "$BATS_TEST_NUMBER"
}

@test "--sandbox off: likewise as PID 1, and where the environment is gone" {
	need_root
	daemon_case unshare --pid --fork --mount-proc --kill-child "$KD" --sandbox off --python "$PYTHON" -- ./workload
	is 0 "$status" 'exit status'
	is gone "$(<"$MARKER")" daemon
}

@test "--sandbox off: a failure leaves no daemon either" {
	KD_STUB=zeros daemon_case "$KD" --sandbox off --python "$PYTHON" -- ./workload
	is 8 "$status" 'exit status'
	[[ -s daemon ]]
	not_started
	no_process_left "$BATS_TEST_NUMBER"
}

@test "the starter's own children are not reaped, not killed, and their status is the workload's to read" {
	export PYTHONPATH=$STUBS
	cat >program.py <<-'E'
		import os, sys
		dead, alive = int(sys.argv[1]), int(sys.argv[2])
		print(os.WEXITSTATUS(os.waitpid(dead, 0)[1]), os.waitpid(alive, os.WNOHANG), flush=True)
		os.kill(alive, 9)
	E
	cat >starter.py <<-'E'
		import os, subprocess, sys, time
		dead, alive = subprocess.Popen(["/bin/sh", "-c", "exit 7"]), subprocess.Popen(["sleep", "60"])
		time.sleep(0.2)
		os.execv(sys.argv[1], sys.argv[1:] + [str(dead.pid), str(alive.pid)])
	E
	local mode
	for mode in require off; do
		"$PYTHON" starter.py \
			"$KD" --sandbox "$mode" -- "$PYTHON" program.py >out 2>err
		is '7 (0, 0)' "$(<out)" "children under --sandbox $mode"
	done
}

@test "as PID 1 orphans of others are reaped during the check; elsewhere they are not ours" {
	need_root
	evil torch <<<'import time; time.sleep(3)'
	unshare --pid --fork --mount-proc --kill-child "$KD" --python "$PYTHON" -- /bin/true >out 2>err 3>&- &
	local outer=$! first='' tries
	for tries in {1..50}; do
		first=$(pgrep -P "$outer" || true)
		[[ -z $first || ! -e /proc/$first/root/proc/1/exe || $(readlink "/proc/$first/exe") != "$KD" ]] || break
		sleep 0.02
	done
	sleep 0.3
	# Three orphans that end at once, as a `docker exec` leaves them.
	nsenter -t "$first" -p -m sh -c 'for i in 1 2 3; do (sleep 0.7 &) ; done'
	sleep 0.2
	is 4 "$(wc -w <"/proc/$first/task/$first/children")" 'the control: children, the orphans among them'
	sleep 1
	is 1 "$(wc -w <"/proc/$first/task/$first/children")" 'children left, the worker'
	wait "$outer"
}

# --- pipes

@test "a worker that floods stdout with 100 MB passes" {
	evil torch <<<'import os; [os.write(1, b"x" * 65536) for i in range(1600)]'
	timed 0 20000 kd --python "$PYTHON" -- ./workload
	is 0 "$status" 'exit status'
	[[ -e $MARKER && ! -s out ]]
}

@test "a flood keeps no signal out: TERM stops it at once" {
	evil torch <<-'E'
		import os
		while True: os.write(1, b'x' * 65536)
	E
	KD_MARK=$BATS_TEST_NUMBER "$KD" --output r.json -- "$PYTHON" x.py >out 2>err 3>&- &
	local pid=$!
	sleep 1.5
	kill -0 "$pid" # the control: still at it
	kill -TERM "$pid"
	timed 0 2000 ends "$pid"
	is 143 "$status" 'exit status'
	is '"INTERRUPTED"' "$(value code r.json)" code
	is '"import"' "$(value stage r.json)" stage
	no_process_left "$BATS_TEST_NUMBER"
	nothing_left
}

RESULT_FD='import os
fd = int(dict(w.split("=", 1) for w in open("/proc/self/cmdline").read().split("\0") if "=" in w)["result"])
'

@test "100 MB of garbage in the result channel: WORKER_FAILED, and not before long" {
	evil torch <<<"$RESULT_FD
import signal
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
for i in range(1600):
    os.write(fd, b'\\0\\xff garbage' * 6000)"
	timed 0 4000 kd --timeout 60 -- "$PYTHON" x.py
	is 11 "$status" 'exit status'
	grep -q 'WORKER_FAILED' err
}

@test "100 MB of well-formed lines, byte by byte too: WORKER_FAILED" {
	evil torch <<<"$RESULT_FD
for i in range(300000):
    os.write(fd, b'stage import\\n')"
	timed 0 9000 kd --timeout 60 -- "$PYTHON" x.py
	is 11 "$status" 'exit status'
	evil torch <<<"$RESULT_FD
for byte in b'stage import\\n' * 6000:
    os.write(fd, bytes([byte]))"
	timed 0 9000 kd --timeout 60 -- "$PYTHON" x.py
	is 11 "$status" 'exit status'
}

@test "a pass said by the worker's foreign code, ahead of the probe, is none" {
	evil torch <<<"$RESULT_FD
os.write(fd, b'end pass\\n')
os._exit(0)"
	kd --output r.json -- "$PYTHON" x.py
	is 11 "$status" 'exit status'
	not_started
}

@test "a worker that closes its descriptors and hangs: TIMEOUT at the limit; that exits: WORKER_FAILED at once" {
	evil torch <<-'E'
		import os, time
		os.closerange(0, 5000)
		time.sleep(60)
	E
	timed 5000 7000 kd --timeout 5 --output r.json -- "$PYTHON" x.py
	is 10 "$status" 'exit status'
	is '"TIMEOUT"' "$(value code r.json)" code
	is '"import"' "$(value stage r.json)" stage
	evil torch <<-'E'
		import os
		os.closerange(0, 5000)
		os._exit(0)
	E
	timed 0 3000 kd --timeout 60 -- "$PYTHON" x.py
	is 11 "$status" 'exit status'
}

@test "a worker's descendant holds the pipes open (--sandbox off): not waited for" {
	evil torch <<-'E'
		import os, time
		if os.fork() == 0:
		    os.setsid()
		    time.sleep(60)
	E
	KD_MARK=$BATS_TEST_NUMBER timed 0 4000 kd --sandbox off --python "$PYTHON" -- ./workload
	is 0 "$status" 'exit status'
	[[ -e $MARKER ]]
	no_process_left "$BATS_TEST_NUMBER"
}

# --- deadlines

# hang CODE STAGE [VARIABLE=VALUE]...: in the background, into a folder of its own; told_at looks at it later.
hang_in() {
	local name=$1
	shift
	mkdir "$name" "$name/tmp"
	(
		cd "$name" || exit
		read -r from _ </proc/uptime
		status=0
		env TMPDIR="$PWD/tmp" KD_MARK="$BATS_TEST_NUMBER" "$@" >out 2>err </dev/null || status=$?
		read -r to _ </proc/uptime
		echo "$status $((${to/./} * 10 - ${from/./} * 10))" >ended
	) 3>&- &
}

told_at() { # NAME STAGE [LEAST MOST]
	local least=${3:-5000} most=${4:-7000} took
	read -r status took <"$1/ended"
	cp "$1/err" err
	expect 10 TIMEOUT "$2" "$1/r.json" || { echo "$1"; return 1; }
	[[ $took -ge $least && $took -le $most ]] || { echo "$1 took $took ms"; return 1; }
	[[ -z $(ls -A "$1/tmp") ]] || { echo "$1 left a scratch directory"; return 1; }
	[[ ! -e $MARKER ]] || { echo "$1 started its workload"; return 1; }
}

@test "each stage's hang is told with its stage, at the limit and no later than 2 s after it" {
	export PYTHONPATH=$STUBS
	local ask=(--timeout 5 --output r.json --termination-log none) word
	for word in import device product sync; do
		hang_in "torch-$word" KD_STUB=hang-$word "$KD" "${ask[@]}" --python "$PYTHON" -- "$T/workload"
	done
	wait
	told_at torch-import import
	told_at torch-device device
	told_at torch-product product
	told_at torch-sync synchronization

	local native=(LD_LIBRARY_PATH="$DOUBLES/cuda")
	while read -r word fault; do
		hang_in "native-$word" "${native[@]}" KD_DOUBLE_FAULT="$fault" "$KD" "${ask[@]}" --framework none
	done <<-'E'
		device cuInit=hang
		allocation cuMemAlloc_v2=hang
		product cuLaunchKernel=hang
		gradient cuLaunchKernel#2=hang
		synchronization cuCtxSynchronize=hang
	E
	wait
	for word in device allocation product gradient synchronization; do
		told_at "native-$word" "$word"
	done
	no_process_left "$BATS_TEST_NUMBER"
}

@test "a worker that stops itself, changes its group, blocks every signal: TIMEOUT at the limit, and it is gone" {
	local ask=(--timeout 5 --output r.json --python "$PYTHON") name
	mkdir stop group mask
	echo 'import os, signal; os.kill(os.getpid(), signal.SIGSTOP)' >stop/sitecustomize.py
	cat >group/sitecustomize.py <<-'E'
		import os, time
		for act in (lambda: os.setpgid(0, 0), lambda: os.setsid(), lambda: os.setpgid(0, os.getppid())):
		    try: act()
		    except OSError: pass
		time.sleep(60)
	E
	cat >mask/sitecustomize.py <<-'E'
		import signal, time
		signal.pthread_sigmask(signal.SIG_SETMASK, range(1, 65))
		for number in range(1, 65):
		    try: signal.signal(number, signal.SIG_IGN)
		    except (OSError, ValueError): pass
		time.sleep(60)
	E
	for name in stop group mask; do
		hang_in "run-$name" PYTHONPATH="$T/$name:$STUBS" "$KD" "${ask[@]}" -- "$T/workload"
		hang_in "off-$name" PYTHONPATH="$T/$name:$STUBS" "$KD" "${ask[@]}" --sandbox off -- "$T/workload"
	done
	wait
	for name in stop group mask; do
		told_at "run-$name" interpreter
		told_at "off-$name" interpreter
	done
	no_process_left "$BATS_TEST_NUMBER"
}

# A stub whose is_available() takes SECONDS of its own.
slow_device() {
	evil site <<-E
		import sys, time
		sys.path.append('$STUBS')
		import torch
		quick = torch.cuda.is_available
		torch.cuda.is_available = lambda: (time.sleep($1), quick())[1]
	E
}

@test "the clock of a worker that waits for its turn stands still" {
	export LD_LIBRARY_PATH=$DOUBLES/cuda KD_DOUBLE_FAULT='cuInit=sleep:4000'
	slow_device 3
	timed 7000 12000 kd --timeout 5 --output r.json --python "$PYTHON" -- ./workload
	is 0 "$status" 'exit status'
	is true "$("$PYTHON" -c 'import json; print(json.load(open("r.json"))["timing_ms"]["device"] < 4500)' | tr TF tf)" \
		'the wait is not in the time of the stage'
	# Control: the same clock runs while it works.
	rm "$MARKER"
	slow_device 6
	timed 8500 13000 kd --timeout 5 --output r2.json --python "$PYTHON" -- ./workload
	expect 10 TIMEOUT device r2.json
	not_started
}

@test "a liar that waits for a turn over and over is still bounded" {
	evil torch <<<"$RESULT_FD
import time
while True:
    os.write(fd, b'wait turn\\n')
    time.sleep(0.01)"
	timed 0 8000 kd --timeout 5 --output r.json -- "$PYTHON" x.py
	[[ $status -eq 10 || $status -eq 11 ]]
	not_started
}

@test "--host-check: an nvidia-smi that hangs costs its own limit and decides nothing" {
	export PYTHONPATH=$STUBS PATH=$T/bin:$PATH
	mkdir bin && cp "$TOP/build/programs/hang" bin/nvidia-smi
	timed 2900 6000 kd --host-check --output r.json --python "$PYTHON" -- ./workload
	is 0 "$status" 'exit status'
	is '"timeout"' "$(value host_check.problem r.json)"
	[[ -e $MARKER ]]
}

# --- where nobody reads

@test "stdout and stderr that nobody reads: saved and ended all the same" {
	cat >full.py <<-'E'
		import os, subprocess, sys, time
		ends = [os.pipe(), os.pipe()]
		for read, write in ends:
		    os.set_blocking(write, False)
		    try:
		        while True: os.write(write, b'x' * 4096)
		    except BlockingIOError: pass
		    os.set_blocking(write, True)
		began = time.monotonic()
		status = subprocess.call(sys.argv[1:], stdout=ends[0][1], stderr=ends[1][1], stdin=subprocess.DEVNULL)
		print(status, time.monotonic() - began < 15)
	E
	export PYTHONPATH=$STUBS KD_STUB=zeros
	is '8 True' "$("$PYTHON" full.py "$KD" --verbose --output r.json --framework torch --python "$PYTHON")"
	is '"CHECK_FAILED"' "$(value code r.json)"
	is '8 True' "$("$PYTHON" full.py "$KD" --format json --output r2.json --python "$PYTHON" -- ./workload)"
	is '"CHECK_FAILED"' "$(value code r2.json)"
}

@test "standard descriptors closed, or pipes without a reader: the verdict is the exit status" {
	export PYTHONPATH=$STUBS KD_STUB=zeros
	status=0
	"$KD" --output r.json -- "$PYTHON" x.py <&- >&- 2>&- || status=$?
	is 8 "$status" 'exit status'
	status=0
	{ "$KD" --output r2.json --framework torch --python "$PYTHON" 2>&1 || echo $? >status; } | true
	is 8 "$(<status)" 'exit status'
	is '"CHECK_FAILED"' "$(value code r2.json)"
}

# --- memory

# in_cgroup BYTES COMMAND...: in a memory control group with that limit.
in_cgroup() {
	local limit=$1 group
	shift
	if [[ -e /sys/fs/cgroup/memory/memory.limit_in_bytes ]]; then
		group=/sys/fs/cgroup/memory/kd-preflight-$$
		mkdir "$group" && echo "$limit" >"$group/memory.limit_in_bytes"
	elif grep -qw memory /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null; then
		group=/sys/fs/cgroup/kd-preflight-$$
		mkdir "$group" && echo "$limit" >"$group/memory.max" && echo 0 >"$group/memory.swap.max"
	else
		skip 'no memory control group can be made here'
	fi
	echo "$group" >"$T/cgroup"
	status=0
	bash -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' - "$group" timeout 60 "$@" >out 2>err || status=$?
	rmdir "$group" && rm "$T/cgroup"
}

@test "killed for memory: WORKER_FAILED, SIGKILL, and the hint from the control group's counter" {
	need_root
	evil torch <<<'x = bytearray(300 << 20)'
	in_cgroup $((96 << 20)) "$KD" --output r.json -- "$PYTHON" x.py
	expect 11 WORKER_FAILED import r.json
	is '"SIGKILL"' "$(value detail.signal r.json)" signal
	has_hint killed-for-memory r.json
	grep -q killed-for-memory err
	# Control: the same death by another hand.
	evil torch <<<'import os; os.kill(os.getpid(), 9)'
	in_cgroup $((96 << 20)) "$KD" --output r2.json -- "$PYTHON" x.py
	expect 11 WORKER_FAILED import r2.json
	is '"SIGKILL"' "$(value detail.signal r2.json)" signal
	is '[]' "$(value hints r2.json)" hints
}

@test "killed for memory, told by memory.events of version 2 (files in place of the kernel's)" {
	need_root
	evil torch <<<'import os, time; time.sleep(1.5); os.kill(os.getpid(), 9)'
	cat >in-mounts <<-E
		set -e
		mount -t tmpfs none /sys/fs/cgroup
		mkdir -p /sys/fs/cgroup/\$1
		printf 'low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 0\n' >/sys/fs/cgroup/\$1/memory.events
		printf '0::\$2\n' | sed "s,.2,\$2," >own
		mount --bind own /proc/\$\$/cgroup
		(sleep 0.9; sed 's/oom_kill 3/oom_kill 4/' -i /sys/fs/cgroup/\$1/memory.events) 3>&- &
		exec "$KD" --output "\$3" -- "$PYTHON" x.py
	E
	status=0
	unshare --mount bash in-mounts kubepods/pod1 /kubepods/pod1 r.json >out 2>err || status=$?
	expect 11 WORKER_FAILED import r.json
	has_hint killed-for-memory r.json
	# The host's path in a container that sees only its own group.
	status=0
	unshare --mount bash in-mounts . /kubepods/pod1 r2.json >out 2>err || status=$?
	has_hint killed-for-memory r2.json
}

# --- uninterruptible sleep

# frozen_mount: a file system in a file, at $T/mount; freeze stops every writer until teardown.
frozen_mount() {
	need_root
	command -v fsfreeze mkfs.ext4 >/dev/null || skip 'no fsfreeze or mkfs.ext4 here'
	truncate -s 32M image
	mkfs.ext4 -q image
	mkdir mount
	mount -o loop image mount 2>/dev/null || skip 'no ext4 loop mount here'
}

freeze() {
	fsfreeze --freeze "$T/mount"
	touch "$T/frozen"
}

thaw() {
	fsfreeze --unfreeze "$T/mount"
	rm "$T/frozen"
}

@test "a worker in uninterruptible sleep: verdict printed and saved promptly, detail.unkillable" {
	frozen_mount
	evil torch <<<"import os; os.mkdir('$T/mount/x')"
	# Control: with the file system awake it is an ordinary pass (the sandbox refuses the directory, or it is made).
	sed -i 's/^import os; .*/import os\ntry: os.mkdir("'"${T//\//\\/}"'\/mount\/x")\nexcept OSError: pass/' evil/torch/__init__.py
	kd --timeout 5 --output r0.json --python "$PYTHON" -- ./workload
	is 0 "$status" 'exit status'
	rm "$MARKER"
	freeze
	KD_MARK=$BATS_TEST_NUMBER timed 5000 8000 kd --timeout 5 --output r.json --termination-log "$T/log" --python "$PYTHON" -- ./workload
	expect 10 TIMEOUT import r.json
	is true "$(value detail.unkillable r.json)"
	grep -q 'SIGKILL had no effect' err
	[[ -n $(left_of "$BATS_TEST_NUMBER") ]] # it is there, and cannot be helped
	not_started
	nothing_left
	thaw
	no_process_left "$BATS_TEST_NUMBER"
}

@test "a signal is not kept waiting by a worker in uninterruptible sleep" {
	frozen_mount
	evil torch <<<"import os; os.mkdir('$T/mount/x')"
	freeze
	KD_MARK=$BATS_TEST_NUMBER "$KD" --output r.json -- "$PYTHON" x.py >out 2>err 3>&- &
	local pid=$!
	sleep 1
	kill -TERM "$pid"
	timed 0 2000 ends "$pid"
	is 143 "$status" 'exit status'
	is '"INTERRUPTED"' "$(value code r.json)"
	thaw
	no_process_left "$BATS_TEST_NUMBER"
}

@test "a scratch directory on a file system that freezes: not waited for, and removed once it thaws" {
	frozen_mount
	evil torch <<-'E'
		import os, time
		time.sleep(2)
		os.mkdir(os.environ['TMPDIR'] + '/x')
	E
	export TMPDIR=$T/mount
	KD_MARK=$BATS_TEST_NUMBER hang_in run TMPDIR="$T/mount" "$KD" --timeout 5 --output r.json -- "$PYTHON" x.py
	sleep 1
	compgen -G 'mount/kd-preflight-*' # the control: it is in use
	freeze
	wait
	told_at run import 5000 8500
	is true "$(value detail.unkillable run/r.json)"
	thaw
	no_process_left "$BATS_TEST_NUMBER"
	rmdir mount/lost+found
	nothing_left
}

# --- what it leaves in its directory

hostile_files() {
	cat <<-E
		import os
		top = os.environ['TMPDIR']
		assert 'kd-preflight-' in top
		def attempt(act, *arguments):
		    try: act(*arguments)
		    except OSError: pass
		attempt(os.symlink, '$T/precious', top + '/link')
		attempt(os.symlink, '/etc', top + '/etc')
		attempt(os.symlink, '..', top + '/up')
		os.mkdir(top + '/locked')
		attempt(os.symlink, '$T/precious', top + '/locked/link')
		open(top + '/locked/file', 'w').close()
		for name, mode in (('read-only', 0o500), ('nothing', 0)):
		    os.mkdir(top + '/' + name)
		    open(top + '/' + name + '/file', 'w').close()
		    attempt(os.chmod, top + '/' + name, mode)
		for i in range(1500): open(top + '/file%d' % i, 'w').close()
		at = top
		here = os.open(top, os.O_RDONLY)
		for i in range(300):
		    os.mkdir('deep', dir_fd=here)
		    below = os.open('deep', os.O_RDONLY, dir_fd=here)
		    os.close(here)
		    here = below
		    if i % 100 == 0: os.close(os.open('file', os.O_CREAT | os.O_WRONLY, dir_fd=here))
		os.mkdir('.deep-0', dir_fd=here)
		os.mkdir(top + '/.deep-0'); os.mkdir(top + '/.deep-0/x')
		attempt(os.chmod, top + '/locked', 0o500)
		attempt(os.chmod, top, 0o500)
	E
}

# Every ending, over the same mess; as WHO.
scratch_case() { # SANDBOX COMMAND...
	local sandbox=$1
	shift
	mkdir precious && touch precious/file
	hostile_files >files.py
	local word limit count=0
	for word in '' zeros crash hang-device; do
		limit=60
		[[ $word != hang-* ]] || limit=8
		evil torch <files.py
		chmod -R a+rX "$T"
		status=0
		KD_STUB=$word "$@" "$KD" --sandbox "$sandbox" --timeout "$limit" --python "$PYTHON" -- /bin/true >out 2>err || status=$?
		case $word in '') is 0 "$status" ;; zeros) is 8 "$status" ;; crash) is 11 "$status" ;; *) is 10 "$status" ;; esac
		nothing_left || { echo "after '$word'"; return 1; }
	done
	KD_STUB=hang-device "$@" "$KD" --sandbox "$sandbox" --python "$PYTHON" -- /bin/true >out 2>err 3>&- &
	local pid=$!
	until [[ $count -gt 1800 ]]; do # the control: the mess is there
		sleep 0.2
		kill -0 "$pid" || { echo "the control: $count files"; return 1; }
		count=$(find "$TMPDIR" 2>/dev/null | wc -l)
	done
	kill -TERM "$pid"
	ends "$pid"
	is 143 "$status"
	nothing_left
	[[ -e precious/file && -d /etc && -e /etc/passwd ]]
}

@test "scratch directories are gone after pass, failure, death, timeout and signal, whatever was put into them" {
	scratch_case require env
}

@test "likewise without a sandbox" {
	scratch_case off env
}

@test "likewise as an ordinary user" {
	need_root
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "$T" 2>/dev/null || true
	chown 12345 "$TMPDIR"
	setpriv --reuid 12345 --regid 12345 --clear-groups test -x "$T" -a -x "$KD" || skip 'the test folder is closed to other users'
	scratch_case off setpriv --reuid 12345 --regid 12345 --clear-groups
}

# --- noise

@test "a preloaded library that prints a pass, and one that is missing, change nothing" {
	command -v gcc >/dev/null || skip 'no compiler here'
	gcc -shared -fPIC -o noise.so -xc - <<-'E'
		#include <unistd.h>
		__attribute__((constructor)) static void speak(void)
		{
			for (int fd = 0; fd < 3; fd++)
				(void)!write(fd, "end pass\nTraceback (most recent call last):\n", 44);
		}
	E
	export PYTHONPATH=$STUBS
	local noise=(timeout 60 env LD_PRELOAD="$T/noise.so $T/missing.so")
	status=0
	KD_STUB=zeros "${noise[@]}" "$KD" --output r.json -- "$PYTHON" x.py >out 2>err || status=$?
	expect 8 CHECK_FAILED product r.json
	status=0
	"${noise[@]}" "$KD" --verbose --output r2.json --python "$PYTHON" -- "$T/workload" >out 2>err || status=$?
	is 0 "$status" 'exit status'
	grep -q '| end pass' err # the control: it was loaded
	status=0
	"${noise[@]}" "$KD" --device cpu --framework none --output r3.json >out 2>err || status=$?
	is 0 "$status" 'exit status'
}

@test "63 open files are too few and the message names the limit; 64 suffice, with PyTorch too" {
	status=0
	(ulimit -n 63 && "$KD" --device cpu --framework none >out 2>err) || status=$?
	expect 11 WORKER_FAILED sandbox
	grep -q 'ulimit -n' err
	(ulimit -n 64 && "$KD" --device cpu --framework none >out 2>err)
	(ulimit -n 64 && "$KD" --device cpu --python "$PYTHON" >out 2>err)
	is '"torch"' "$(value execution.by)"
}

@test "time in which we are stopped is not charged to a worker; without the stop the limit holds" {
	export PYTHONPATH=$STUBS:$T/slow
	mkdir slow && printf 'import time\ntime.sleep(1)\n' >slow/sitecustomize.py
	"$KD" --timeout 5 --output r.json --python "$PYTHON" -- "$T/workload" 2>err 3>&- &
	local pid=$!
	sleep 0.5
	kill -STOP "$pid"
	sleep 6
	kill -CONT "$pid"
	status=0
	wait "$pid" || status=$?
	is 0 "$status"
	is '"GPU_CHECK_PASSED"' "$(value code r.json)"
	printf 'import time\ntime.sleep(6)\n' >slow/sitecustomize.py
	kd --timeout 5 --python "$PYTHON" -- "$T/workload"
	is 10 "$status"
}

@test "a stalled peer behind a stderr that is a socket is not waited for without a bound" {
	# shellcheck disable=SC2016 # Python's own
	"$PYTHON" - "$KD" <<-'E'
		import socket, subprocess, sys, time
		server = socket.create_server(("127.0.0.1", 0))
		client = socket.create_connection(server.getsockname())
		client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4608)
		client.setblocking(False)
		try:
		    while True:
		        client.send(b"x" * 1000)
		except BlockingIOError:
		    client.setblocking(True)
		began = time.monotonic()
		status = subprocess.run([sys.argv[1], "--device", "cpu", "--framework", "none"], stderr=client, stdout=subprocess.DEVNULL, timeout=30).returncode
		assert status == 0 and time.monotonic() - began < 15, (status, time.monotonic() - began)
	E
}
