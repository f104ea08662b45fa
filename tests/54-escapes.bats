#!/usr/bin/env bats
# Hostile code inside a worker, once as a stub of PyTorch and once as a double of the driver library, tries every way out
# that we can think of, through the real program: each act must be refused under `--sandbox require`, and its control,
# the same act under `--sandbox off`, must succeed or at least get as far as the kernel's own code behind the call. The
# verdict must be right both times. tests/doubles/escape.c performs the acts; the table below says what each comes to.
# tests/unit/test_sandbox.c holds the policy itself against all worker kinds, with and without Landlock.

# Each test is a process of its own, and so are its exports.
# shellcheck disable=SC2030,SC2031

load helper

DOUBLE=$TOP/build/doubles/cuda/libcuda.so.1

# NAME  UNDER-REQUIRE  UNDER-OFF  [root]
#   UNDER-OFF any: whatever shows that the kernel was reached; EPERM or ENOSYS there means that this kernel, or what it
#   runs in, has no such thing for anybody, and the act counts as one without a control.
#   root: an ordinary user may not do this anyway (or the supervisor is not dumpable); it has a control as root only.
# The lines `may_` are the documented exceptions, SECURITY.md "What is left", and what a worker needs: allowed in both.
# posix_spawn, system and popen: what glibc makes of the EPERM that its clone got (escape.c says ECHILD for status 127).
# `inherited` has another control: the workload, which does get the descriptor, both times.
table() {
	cat <<-'T'
		socket_high EPERM OK
		engine EPERM OK
		engine_dgram EPERM OK
		execve EPERM OK
		execveat EPERM OK
		fexecve EPERM OK
		memfd_exec EPERM OK
		road_dup2 EBADF OK
		road_dup3 EBADF OK
		road_fcntl EBADF OK
		road_scm EBADF OK
		road_seal EBADF EFAULT
		road_path EPERM OK
		posix_spawn EPERM OK
		system ECHILD OK
		popen ENOMEM OK
		fork EPERM OK
		vfork EPERM OK
		clone EPERM OK
		clone_high EPERM OK
		clone_newuser EPERM any
		clone3 ENOSYS OK
		kill EPERM OK
		kill_high EPERM OK
		kill_all EPERM OK
		kill_group EPERM OK
		tgkill EPERM OK
		tkill EPERM OK
		sigqueue EPERM EFAULT
		pidfd_open EPERM OK
		pidfd_signal EPERM EBADF
		pidfd_getfd EPERM EBADF
		setown EPERM OK
		ptrace_seize EPERM OK root
		ptrace_traceme EPERM OK
		vm_readv EPERM EFAULT root
		vm_writev EPERM EFAULT root
		kcmp EPERM any root
		proc_mem EACCES OK root
		proc_mem_read EACCES OK root
		proc_environ EACCES OK root
		proc_fd EACCES OK root
		proc_comm EACCES OK root
		proc_oom EACCES OK root
		prlimit EPERM OK
		affinity EPERM OK
		setpriority EPERM OK
		scheduler EPERM OK
		setrlimit EPERM OK
		prlimit_own EPERM OK
		dumpable EPERM OK
		pdeathsig EPERM OK
		subreaper EPERM OK
		prctl_filter EPERM EFAULT
		seccomp EPERM EFAULT
		personality EPERM OK
		setuid EPERM OK
		setgid EPERM OK
		setresuid EPERM OK
		setgroups EPERM OK root
		capset EPERM OK
		setsid EPERM OK
		setpgid EPERM OK
		unshare_user EPERM any
		unshare_mount EPERM any root
		unshare_net EPERM any root
		setns EPERM any root
		chroot EPERM OK root
		mount EPERM any root
		umount EPERM any root
		pivot_root EPERM any root
		fsopen EPERM any root
		open_tree EPERM any root
		move_mount EPERM any root
		by_handle EPERM any root
		finit_module EPERM any root
		hostname EPERM any root
		settime EPERM any root
		syslog EPERM any root
		fanotify EPERM any root
		io_uring EPERM any
		io_uring_enter EPERM any
		bpf EPERM any root
		perf EPERM any root
		userfaultfd EPERM any root
		add_key EPERM any
		request_key EPERM any
		keyctl EPERM any
		shm EPERM any
		msg EPERM any
		sem EPERM any
		mq EPERM any
		tiocsti EPERM EBADF
		tiocsti_high EPERM EBADF
		tioclinux EPERM EBADF
		tiocsctty EPERM EBADF
		ptmx EACCES OK
		x32 EPERM any
		x32_socket EPERM any
		int80 EPERM any
		int80_execve EPERM any
		int80_fork EPERM any
		create EACCES OK
		creat EACCES OK
		tmpfile EACCES any
		overwrite EACCES OK
		append EACCES OK
		open_truncate EACCES OK
		read_truncate EPERM OK
		odd_truncate EPERM OK
		through_fd EACCES OK
		truncate EPERM OK
		rename EACCES OK
		rename_over EACCES OK
		rename_out EACCES OK
		link EPERM OK
		link_fd EPERM OK
		symlink EPERM OK
		mkdir EACCES OK
		rmdir EACCES OK
		unlink EACCES OK
		mkfifo EPERM OK
		mknod EPERM OK root
		chmod EPERM OK
		fchmod EPERM OK
		chown EPERM OK
		utimes EPERM OK
		setxattr EPERM EFAULT
		openat2 ENOSYS OK
		dev_shm EACCES OK
		tmp EACCES OK
		report EACCES OK
		report_link EPERM OK
		termination EACCES OK
		termination_truncate EPERM OK
		workload EACCES OK
		workload_chmod EPERM OK
		workload_move EACCES OK
		inherited EBADF EBADF
		may_packet OK OK
		may_read OK OK
		may_flock OK OK
		may_ioctl OK OK
		may_gpu_ioctl EBADF EBADF
		may_pair OK OK
		may_thread OK OK
		may_signal_self OK OK
		may_device OK OK
		may_name OK OK
		may_jit OK OK
		may_scratch OK OK
		end OK OK
	T
	local family
	for family in {0..45}; do # every type but AF_UNIX SOCK_SEQPACKET; the kernel's own answer may be EAFNOSUPPORT
		echo "family_$family EPERM any"
	done
}

setup_file() {
	[[ $(uname -m) == x86_64 ]] || skip 'the acts and their table are for x86-64'
	local made=$BATS_FILE_TMPDIR
	gcc -O1 -Wall -Wextra -shared -fPIC -pthread -o "$made/escape.so" "$BATS_TEST_DIRNAME/doubles/escape.c"
	# As libcuda.so.1 it needs the real double by its full name, so that the loader takes it for another library.
	mkdir "$made/driver"
	echo 'int unused;' >"$made/empty.c"
	gcc -shared -fPIC -Wl,-soname,"$DOUBLE" -o "$made/named.so" "$made/empty.c"
	gcc -O1 -shared -fPIC -pthread -o "$made/driver/libcuda.so.1" "$BATS_TEST_DIRNAME/doubles/escape.c" -Wl,--no-as-needed \
		"$made/named.so"
}

teardown() {
	[[ -z ${server-} ]] || kill "$server" || :
	[[ -z ${D-} ]] || rm -rf "$D"
}

# lay_out [COMMAND...]: the folder D that the hostile code is shown, of the user whom COMMAND makes; and its servers.
lay_out() {
	D=$(mktemp -d /tmp/kd-escapes.XXXXXX)
	cd "$D" || return
	mkdir victim victim/dir tmp lib lib/torch driver
	echo data | tee victim/file >victim/other
	echo 'kept private' >secret
	echo 'said before' >termination # a pass with PROGRAM adds no line
	# The starter's descriptor 9 reaches the workload, and it alone.
	printf '#!/bin/sh\ncat <&9 >%s/marker\n' "$D" >workload
	chmod +x workload
	printf 'import os\nopen("%s/marker", "wb").write(os.read(9, 99))\n' "$D" >program.py
	cp "$BATS_FILE_TMPDIR/escape.so" lib/
	cp "$BATS_FILE_TMPDIR/driver/libcuda.so.1" driver/
	cat >lib/torch/__init__.py <<-P
		import ctypes
		ctypes.CDLL('$D/lib/escape.so')
		__path__.append('$STUBS/torch')
		__file__ = '$STUBS/torch/__init__.py'
		exec(compile(open(__file__).read(), __file__, 'exec'))
	P
	chmod 755 .
	[[ $# -eq 0 ]] || chown -R 12345:12345 .
	# shellcheck disable=SC2153 # helper.bash
	"$@" "$PYTHON" -I - >contacts 2>server.err 3>&- <<-'P' &
		import select, socket
		servers = {}
		for name, kind in (('engine', socket.SOCK_STREAM), ('engine.dgram', socket.SOCK_DGRAM), ('packet', socket.SOCK_SEQPACKET)):
		    server = socket.socket(socket.AF_UNIX, kind)
		    server.bind(name)
		    if kind != socket.SOCK_DGRAM:
		        server.listen(9)
		    servers[server] = name
		print('listening', flush=True)
		while True:
		    for server in select.select(list(servers), [], [])[0]:
		        server.recv(9) if server.type == socket.SOCK_DGRAM else server.accept()[0].close()
		        print(servers[server], flush=True)
	P
	server=$!
	for _ in {1..100}; do
		[[ ! -s contacts ]] || return 0
		sleep 0.05
	done
	echo 'no server'
	return 1
}

# What must not change: names, types, modes, owners, sizes, times and contents.
state() {
	find victim workload termination program.py secret lib driver -printf '%p %y %m %u %g %s %T@ %C@ %n\n' | sort
	find victim workload termination program.py secret -type f -exec sha256sum {} + | sort
	ls /tmp/kd-escape /dev/shm/kd-escape 2>&1
	ls tmp
}

# left: processes with our environment.
left() {
	local environ
	for environ in /proc/[0-9]*/environ; do
		! grep -qsF "KD_ESCAPE=$D" "$environ" || echo "${environ%/environ}"
	done
}

# attack AS MODE [COMMAND...]: one run, its acts in MODE.acts as "NAME ERRNO".
attack() {
	local as=$1 mode=$2 path=$D/driver
	local what=(--framework none -- ./workload) stub=()
	shift 2
	if [[ $as == torch ]]; then
		what=(-- "$PYTHON" program.py) path=${DOUBLE%/*} stub=("PYTHONPATH=$D/lib" KD_STUB=)
	fi
	rm -f marker report.json
	status=0
	"$@" env KD_ESCAPE="$D" TMPDIR="$D/tmp" LD_LIBRARY_PATH="$path" "${stub[@]}" timeout --kill-after=5 100 "$KD" --verbose \
		--sandbox "$mode" --output report.json --termination-log termination "${what[@]}" \
		9<secret >"$T/out" 2>"$T/err" </dev/null || status=$?
	grep -o 'kd-escape .*' "$T/err" | cut -d' ' -f2- >"$T/$mode.acts"
	sed -i '/kd-escape/d' "$T/err"
	expect 0 GPU_CHECK_PASSED complete report.json
	is "\"$mode\"" "$(value sandbox.mode report.json)" mode
	is 'kept private' "$(cat marker)" 'what the workload read from descriptor 9'
	is '' "$(left)" 'processes left'
}

# judge ROOT: holds both runs against the table.
judge() {
	local root=$1 name denied control only under off bad=0 refused=0 controlled=0 without='' allowed=0 succeeded=0
	declare -A require_acts off_acts
	while read -r name under; do require_acts[$name]=$under; done <"$T/require.acts"
	while read -r name under; do off_acts[$name]=$under; done <"$T/off.acts"
	is "$(table | cut -d' ' -f1 | sort)" "$(cut -d' ' -f1 "$T/require.acts" | sort)" 'acts under require'
	is "$(table | cut -d' ' -f1 | sort)" "$(cut -d' ' -f1 "$T/off.acts" | sort)" 'acts under off'
	while read -r name denied control only; do
		under=${require_acts[$name]} off=${off_acts[$name]}
		[[ $name != end ]] || continue
		if [[ $under != "$denied" ]]; then
			echo "$name: wanted $denied, got $under"
			bad=1
		fi
		if [[ $name == may_* ]]; then
			allowed=$((allowed + 1))
		else
			refused=$((refused + 1))
		fi
		if [[ $only == root && $root == no ]] || [[ $control == any && $off =~ ^(EPERM|ENOSYS)$ ]]; then
			without+=" $name"
		elif [[ $control == any && $off =~ ^(odd|killed|EACCES)$ ]] || [[ $control != any && $off != "$control" ]]; then
			echo "control of $name: wanted $control, got $off"
			bad=1
		elif [[ $name != may_* ]]; then
			controlled=$((controlled + 1))
			[[ $off != OK ]] || succeeded=$((succeeded + 1))
		fi
	done < <(table)
	echo "# $2: $refused acts refused; controls: $succeeded succeed, $((controlled - succeeded)) reach the kernel's own refusal;" \
		"$allowed documented exceptions allowed" >&3
	[[ -z $without ]] || echo "# $2: no control here:$without" >&3
	((refused >= 60 && succeeded >= 60 && !bad))
}

# escapes AS ROOT [COMMAND...]
escapes() {
	local as=$1 root=$2 before
	shift 2
	lay_out "$@"
	before=$(state)
	attack "$as" require "$@"
	is "$before" "$(state)" 'files after the acts'
	[[ $(value sandbox report.json) == *'"seccomp": true'* && $(value sandbox.writes_confined report.json) == true ]]
	is "$(printf 'listening\npacket')" "$(cat contacts)" 'servers that were reached'
	attack "$as" off "$@"
	is 'engine engine.dgram packet' "$(tail -n +3 contacts | sort | xargs)" 'servers that were reached without a sandbox'
	judge "$root" "$as, root $root"
}

@test "a hostile driver library as root: every act is refused, every control gets through, the verdict is right" {
	need_root
	escapes driver yes
}

@test "a hostile PyTorch as root: every act is refused, every control gets through, the verdict is right" {
	need_root
	escapes torch yes
}

as_user=(setpriv --reuid 12345 --regid 12345 --clear-groups)

@test "a hostile driver library as an ordinary user" {
	need_root
	"${as_user[@]}" test -x "$KD" || skip 'the program is closed to other users'
	escapes driver no "${as_user[@]}"
}

@test "a hostile PyTorch as an ordinary user" {
	need_root
	"${as_user[@]}" test -x "$KD" || skip 'the program is closed to other users'
	escapes torch no "${as_user[@]}"
}
