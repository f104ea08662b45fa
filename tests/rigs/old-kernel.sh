#!/usr/bin/env bash
# old-kernel.sh [SUITE[:LANDLOCK_ABI]]...: whole checks, as PID 1 and as its child, on a machine booted from an older kernel of
# Debian; prints TAP. A target beside CI's: takes three minutes (two of them the hostile acts of test_sandbox) and the network
# (kernel and busybox, once). Needs qemu-system-x86 and cpio, on x86-64; aarch64.sh is the like for the other machine.
#
# The default is Linux 5.10 of bullseye, which has no Landlock; bookworm:2 is Linux 6.1 with its second ABI. The kernel runs
# emulated, without KVM, and from memory: static busybox, kd-preflight, and this machine's loader and C library.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 2
[[ $# -gt 0 ]] || set -- bullseye:0
[[ $(uname -m) == x86_64 ]] || { echo '1..0 # SKIP not x86-64 here'; exit 0; }
for tool in qemu-system-x86_64 cpio; do
	command -v "$tool" >/dev/null || { echo "1..0 # SKIP no $tool here"; exit 0; }
done

vm=$PWD/build/old-kernel count=0 suite='' boot=''
mkdir -p "$vm"
log=$vm/log

point() { # NAME COMMAND...: a point of its own
	local name=$1 said='not ok'
	shift
	! "$@" >"$log" 2>&1 || said=ok
	[[ $said == ok ]] || sed 's/^/# /' "$log"
	echo "$said $((++count)) - $suite: $name"
}

unpack() { # SUITE PACKAGE...: below $vm/SUITE, once
	[[ -e $vm/$1/versions ]] || { rm -rf "$vm/new" && ci/unpack.sh amd64 "$1" "$vm/new" "${@:2}" && rm -rf "$vm/new/lib/modules" \
		"$vm/new/usr/lib/modules" && mv "$vm/new" "$vm/$1"; }
}

# --- the machine's files: all that it has is in memory

make_disk() {
	local d=$vm/disk
	rm -rf "$d" && mkdir -p "$d"/{bin,lib64,lib/x86_64-linux-gnu,t/build/unit,t/build/sandbox}
	cp "$vm/tools/bin/busybox" build/kd-preflight "$d/bin/"
	cp -L /lib64/ld-linux-x86-64.so.2 "$d/lib64/"
	cp -L /lib/x86_64-linux-gnu/{libc.so.6,libdl.so.2} "$d/lib/x86_64-linux-gnu/"
	cp build/unit/test_{sandbox,sandbox_roads,output,workload} "$d/t/build/unit/"
	cp build/sandbox/generate "$d/t/build/sandbox/"
	cp -r build/doubles "$d/t/build/"
	cat >"$d/init" <<'EOF'
#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /etc /tmp /out /full
/bin/busybox --install -s /bin
export PATH=/bin HOME=/ NO_COLOR=1
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t tmpfs out /out
mount -t tmpfs -o size=4k full /full
mkdir /dev/shm
mount -t tmpfs -o mode=1777 shm /dev/shm
ln -s /proc/self/fd /dev/fd
ln -s fd/0 /dev/stdin; ln -s fd/1 /dev/stdout; ln -s fd/2 /dev/stderr
ip link set lo up
cd /t
run() { # NAME COMMAND...
	name=$1
	shift
	echo "== begin $name"
	"$@" 2>&1
	echo "== status $?"
}
files() { # of a folder: mode, size, name
	(cd "$1" && stat -c '== file %a %s %n' -- *)
}
printf 'root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n' >/etc/passwd
cuda=LD_LIBRARY_PATH=/t/build/doubles/cuda
busybox uname -srvm
case $(cat /proc/cmdline) in
*kd=exec-cpu*)
	echo '== begin exec-cpu'
	exec kd-preflight --device cpu --framework none --format json
	;;
*kd=exec-none*)
	echo '== begin exec-none'
	exec kd-preflight --framework none --format json -- busybox echo the workload
	;;
*kd=exec-cuda*)
	echo '== begin exec-cuda'
	export "$cuda"
	# shellcheck disable=SC2016 # for that shell
	exec kd-preflight --framework none --output /out -- busybox sh -c \
		'echo "the workload is PID $$, $(readlink /proc/$$/exe)"; grep -E "^(NoNewPrivs|Seccomp):" /proc/$$/status; cat /out/*; echo; poweroff -f'
	;;
esac
run text kd-preflight --device cpu --framework none
run cpu kd-preflight --device cpu --framework none --format json
run output kd-preflight --device cpu --framework none --output /out
run files files /out
run saved cat /out/*
dd if=/dev/zero of=/full/zero bs=4k count=1 2>/dev/null
run full kd-preflight --device cpu --framework none --output /full
run left files /full
run user su nobody -c 'id -u; kd-preflight --device cpu --framework none --format json'
run usage kd-preflight --device cpu --framework none --timeout 4
run none kd-preflight --framework none --format json -- busybox echo the workload
run cuda env "$cuda" kd-preflight --framework none --format json -- busybox echo the workload
run hip env LD_LIBRARY_PATH=/t/build/doubles/hip kd-preflight --framework none --format json -- busybox echo the workload
run off kd-preflight --device cpu --framework none --format json --sandbox off
for unit in $(cd build/unit && ls); do
	run "$unit" build/unit/"$unit"
done
mv /lib64 /lib64.gone
mv /lib /lib.gone
run scratch kd-preflight --device cpu --framework none --format json
run scratch-none kd-preflight --framework none --format json -- busybox echo the workload
run processes ps -o pid,stat,args
poweroff -f
EOF
	chmod +x "$d/init"
	(cd "$d" && find . | cpio --create --format newc --owner 0:0 --quiet | gzip -1) >"$vm/disk.gz"
}

# start BOOT: what the machine prints goes to $vm/SUITE/console-BOOT. One whose PID 1 ends panics, which ends qemu, and tells its
# wait status.
start() {
	local kernel began=$SECONDS
	boot=$1
	kernel=$(find "$vm/$suite/boot" -name 'vmlinuz-*' -print -quit)
	timeout --kill-after=5 480 qemu-system-x86_64 -accel tcg -cpu max -smp 2 -m 512 -nic none -nographic -no-reboot \
		-kernel "$kernel" -initrd "$vm/disk.gz" -append "console=ttyS0 loglevel=1 panic=-1 rdinit=/init kd=$boot" \
		</dev/null 2>&1 | tr -d '\r' >"$vm/$suite/console-$boot"
	echo "# $suite, $boot: $(grep -m 1 -ao 'Linux [0-9].*' "$vm/$suite/console-$boot"), $((SECONDS - began)) s"
}

# --- what it said

said() { # NAME: to its status, or to the end where it is PID 1
	sed -n "/^== begin $1\$/,/^== status /p" "$vm/$suite/console-$boot"
}
says() { # NAME PATTERN...: each in a line of it
	local pattern text
	text=$(said "$1")
	for pattern in "${@:2}"; do
		grep -qE -- "$pattern" <<<"$text" || { printf 'no line %s in\n%s\n' "$pattern" "$text"; return 1; }
	done
}
says_no() {
	! says "$@" >/dev/null || { said "$1"; return 1; }
}
console_says() { # PATTERN: that boot's console
	grep -aqE -- "$1" "$vm/$suite/console-$boot" || { tail -n 20 "$vm/$suite/console-$boot"; return 1; }
}

# report NAME FIELD=JSON...: the one report it printed is valid, says nothing of the machine, and holds these.
report() {
	local file=$vm/$suite/$boot-$1.json
	said "$1" >"$file.text"
	python3 - "$file.text" >"$file" <<-'E' || { cat "$file.text"; return 1; }
		import json, re, sys
		text = open(sys.argv[1]).read()
		starts = [found.start() for found in re.finditer(r"^\{", text, re.M)]
		if len(starts) != 1:
		    sys.exit(f"{len(starts)} reports in")
		sys.stdout.write(text[starts[0] : json.JSONDecoder().raw_decode(text, starts[0])[1]])
	E
	tests/validate-report --forbid /t/ --forbid /out --forbid busybox "$file" || return 1
	python3 - "$file" "${@:2}" <<-'E'
		import json, sys
		report, bad = json.load(open(sys.argv[1])), 0
		for wanted in sys.argv[2:]:
		    path, _, value = wanted.partition("=")
		    got = report
		    for key in path.split("."):
		        got = got[key]
		    if got != json.loads(value):
		        print(f"{path} is {json.dumps(got)}, not {value}")
		        bad = 1
		sys.exit(bad)
	E
}
tell() { # NAME: its report in a line
	python3 - "$vm/$suite/$boot-$1.json" "$suite $boot $1" <<-'E'
		import json, sys
		r = json.load(open(sys.argv[1]))
		print("#", sys.argv[2] + ":", r["exit_code"], r["code"], r["stage"], json.dumps(r["sandbox"]), r["duration_ms"], "ms", json.dumps(r["timing_ms"]))
	E
}
is_report() { # NAME STATUS CODE STAGE FIELD=JSON...: a point for the report, and a line of it
	local wanted=$2 code=$3 stage=$4
	point "${boot/%$1/PID 1,} $1: $code" report "$1" "exit_code=$wanted" "code=\"$code\"" "stage=\"$stage\"" "${@:5}"
	[[ ! -s $vm/$suite/$boot-$1.json ]] || tell "$1"
	[[ $boot == exec-* ]] || point "$boot $1: exits $wanted" says "$1" "^== status $wanted\$"
}
unit() { # NAME: it ran to its end, and nothing failed
	local text plan points
	text=$(said "$1")
	plan=$(sed -n 's/^1\.\.\([0-9]*\).*/\1/p' <<<"$text")
	points=$(grep -cE '^(not )?ok ' <<<"$text")
	echo "plan $plan, points $points"
	[[ $plan == "$points" ]] && ! grep -A 8 '^not ok' <<<"$text" && says "$1" '^== status 0$'
}
same() { # TEXT TEXT
	[[ $1 == "$2" ]] || { printf '%s\nis not\n%s\n' "$1" "$2"; return 1; }
}

checks() { # LANDLOCK_ABI
	local abi=$1 cpu gpu name
	cpu=(sandbox="{\"mode\":\"require\",\"no_new_privs\":true,\"seccomp\":true,\"landlock_abi\":$abi,\"writes_confined\":true}")
	gpu=("${cpu[@]}")
	[[ $abi -gt 0 ]] || gpu=("${cpu[0]/\"writes_confined\":true/\"writes_confined\":false}")

	start main
	point 'the machine booted and went down' console_says 'reboot: Power down'
	point 'main text: CPU_CHECK_PASSED, exits 0' says text 'CPU_CHECK_PASSED' '^== status 0$'
	is_report cpu 0 CPU_CHECK_PASSED complete execution.loss=196 'runtime.machine="x86_64"' "${cpu[@]}"
	point 'main output: exits 0' says output '^== status 0$'
	point 'main output: one file, with the umask' same "$(said files | sed -n 's/^== file \([0-9]*\) [0-9]* .*\.json$/\1/p')" 644
	is_report saved 0 CPU_CHECK_PASSED complete execution.loss=196 "${cpu[@]}"
	point 'main full: OUTPUT_WRITE_FAILED, exits 12' says full OUTPUT_WRITE_FAILED '^== status 12$'
	point 'main full: and leaves nothing' same "$(said left | grep '^== file')" '== file 644 4096 zero'
	is_report user 0 CPU_CHECK_PASSED complete execution.loss=196 "${cpu[@]}"
	point 'main user: which is not root' says user '^65534$'
	point 'main usage: exits 2' says usage USAGE_ERROR '^== status 2$'
	is_report none 5 GPU_BACKEND_ABSENT backend "${gpu[@]}"
	point 'main none: no workload' says_no none '^the workload$'
	for name in cuda hip; do
		is_report "$name" 0 GPU_CHECK_PASSED complete "${gpu[@]}" workload.starting=true
		point "main $name: the workload starts" says "$name" '^the workload$'
	done
	is_report off 0 CPU_CHECK_PASSED complete \
		'sandbox={"mode":"off","no_new_privs":false,"seccomp":false,"landlock_abi":0,"writes_confined":null}'
	for name in build/unit/test_{sandbox,sandbox_roads,output,workload}; do
		name=${name##*/}
		point "$name" unit "$name"
		echo "# $name: $(said "$name" | grep -cE '^ok ') ok, of which $(said "$name" | grep -cE '^ok .*# SKIP') skipped"
	done
	is_report scratch 0 CPU_CHECK_PASSED complete execution.loss=196 runtime.libc=null "${cpu[@]}"
	is_report scratch-none 5 GPU_BACKEND_ABSENT backend
	point 'main: no worker is left' says_no processes 'kd-p|ld-linux'
	point 'main: as the list of processes says' says processes ' /init' '^== status 0$'

	start exec-cpu
	is_report exec-cpu 0 CPU_CHECK_PASSED complete execution.loss=196 "${cpu[@]}"
	point 'exec-cpu: PID 1 ends with 0' console_says 'Attempted to kill init! exitcode=0x00000000'
	start exec-none
	is_report exec-none 5 GPU_BACKEND_ABSENT backend "${gpu[@]}"
	point 'exec-none: PID 1 ends with 5' console_says 'Attempted to kill init! exitcode=0x00000500'
	start exec-cuda
	point 'exec-cuda: the workload is PID 1' console_says '^the workload is PID 1, /bin/busybox$'
	point 'exec-cuda: without no_new_privs' console_says '^NoNewPrivs:.0$'
	point 'exec-cuda: without a filter' console_says '^Seccomp:.0$'
	is_report exec-cuda 0 GPU_CHECK_PASSED complete "${gpu[@]}" workload.given=true
	point 'exec-cuda: and takes the machine down' console_says 'reboot: Power down'
}

[[ -e $vm/tools ]] || { unpack bookworm busybox-static && mv "$vm/bookworm" "$vm/tools"; } || exit 1
make_disk
for argument; do
	suite=${argument%%:*}
	unpack "$suite" linux-image-cloud-amd64 || exit 1
	echo "# $suite: $(grep ^linux-image "$vm/$suite/versions"), on $(qemu-system-x86_64 --version | head -n 1)"
	checks "${argument#*:}"
done
echo "1..$count"
