#!/usr/bin/env bash
# aarch64.sh: the cross build (build/aarch64, made by ci/cross.sh), run in two ways; prints TAP. A target beside CI's: takes
# three minutes and the network (a kernel, 28 MB, once).
#
# qemu's user emulation knows neither seccomp nor execveat, and starts no second program of that architecture: there run
# the unit tests that need none of these, and kd-probe by itself. Everything else needs an aarch64 kernel, so one of
# Debian's is booted on an emulated machine: all unit tests, and whole checks in the real sandbox.
set -uo pipefail

cd "$(dirname "$0")/../../build/aarch64" || exit 2
vm=$PWD/vm
points=$(mktemp)
trap 'rm -f "$points"' EXIT
units=()
for source in tests/unit/test_*.c; do
	units+=("$(basename "$source" .c)")
done

point() { # NAME COMMAND...: a point of its own
	local name=$1
	shift
	if "$@" >"$points.log" 2>&1; then
		echo "ok - $name"
	else
		sed 's/^/# /' "$points.log"
		echo "not ok - $name"
	fi >>"$points"
	rm -f "$points.log"
}

# points_of NAME <TAP: its points, that they are as many as planned, and that it exited 0 (which is its last line). The
# generator makes filters for aarch64 on x86-64, never the other way round.
points_of() {
	awk -v name="$1" '
		/^1\.\.[0-9]+$/ { plan = substr($0, 4) }
		/^(not )?ok / { count++ }
		/^not ok .* - x86_64, run / { sub("^not ", ""); $0 = $0 " # SKIP filters for x86-64 are made on x86-64 only" }
		/^(not )?ok / { sub("ok [0-9]+ - ", "ok - " name ": "); print }
		/^#/
		/^== / { status = $3 }
		END { print (count == plan && status != "" ? "" : "not ") "ok - " name " runs to its end (status " status ")" }' >>"$points"
}

status_is() { # STATUS COMMAND...
	local wanted=$1 got=0
	shift
	"$@" || got=$?
	[[ $got -eq $wanted ]] || { echo "exit status $got, not $wanted"; return 1; }
}

# --- the emulator of user programs

sysroot=/usr/aarch64-linux-gnu
user() { timeout 120 qemu-aarch64-static -L "$sysroot" "$@"; }

for unit in interpreter messages options result sandbox_filters summarize verdict; do
	{ user build/unit/test_$unit 2>&1; echo "== status $?"; } </dev/null | points_of "user test_$unit"
done
point 'user: --version' grep -q '^kd-preflight [0-9]' <(user build/kd-preflight --version)
point 'user: a wrong option is a usage error' status_is 2 user build/kd-preflight --no-such-option
# What happens there, kept to be noticed when the emulator learns more.
point 'user: a CPU check is refused, for want of seccomp' status_is 14 user build/kd-preflight --device cpu --framework none
point 'user: best effort gets no further than execveat' status_is 11 user build/kd-preflight --device cpu --framework none \
	--sandbox best-effort
computed() { grep -q '^end pass$' <(user "$@" device=cpu result=1); }
point 'user: kd-probe computes, started by the loader of glibc' computed "$sysroot/lib/ld-linux-aarch64.so.1" build/kd-probe
point 'user: kd-probe computes, started without a loader' computed build/kd-probe

# --- a machine

[[ -e $vm/files/versions ]] || {
	rm -rf "$vm" && mkdir -p "$vm" && ci/unpack.sh arm64 trixie "$vm/new" linux-image-cloud-arm64 && ci/unpack.sh arm64 bookworm "$vm/new" \
		busybox-static && rm -rf "$vm/new"/{usr/,}lib/modules && mv "$vm/new" "$vm/files"
} || exit 1

rm -rf "$vm/disk"
mkdir -p "$vm/disk"/{bin,lib,t/build/unit,t/build/sandbox}
cp "$vm/files/bin/busybox" build/kd-preflight "$vm/disk/bin/"
cp -L "$sysroot"/lib/{ld-linux-aarch64.so.1,libc.so.6,libdl.so.2} "$vm/disk/lib/"
cp "${units[@]/#/build/unit/}" "$vm/disk/t/build/unit/"
cp -r build/doubles "$vm/disk/t/build/"
cat >"$vm/disk/init" <<'EOF'
#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox --install -s /bin
export PATH=/bin HOME=/ NO_COLOR=1
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mkdir /dev/shm
mount -t tmpfs -o mode=1777 shm /dev/shm
ln -s /proc/self/fd /dev/fd
ln -s fd/0 /dev/stdin; ln -s fd/1 /dev/stdout; ln -s fd/2 /dev/stderr
cd /t
run() { # NAME COMMAND...
	name=$1
	shift
	echo "== begin $name"
	"$@" 2>&1
	echo "== status $?"
}
uname -srvm
for unit in $(cd build/unit && ls); do
	case $unit in
	test_sandbox_filters) continue ;; # computes only, which the user emulation did
	test_doubles) run $unit build/unit/$unit build/doubles/cuda/libcuda.so.1 build/doubles/hip/libamdhip64.so.6 ;;
	*) run $unit build/unit/$unit ;;
	esac
done
run cpu kd-preflight --device cpu --framework none
run cuda env LD_LIBRARY_PATH=/t/build/doubles/cuda kd-preflight --framework none -- busybox echo the workload
run hip env LD_LIBRARY_PATH=/t/build/doubles/hip kd-preflight --framework none -- busybox echo the workload
run none kd-preflight --framework none -- busybox echo the workload
mv /lib /lib.gone
run scratch kd-preflight --device cpu --framework none
poweroff -f
EOF
chmod +x "$vm/disk/init"
(cd "$vm/disk" && find . | cpio --create --format newc --quiet | gzip -1) >"$vm/disk.gz"
kernel=$(find "$vm/files/boot" -name 'vmlinuz-*' -print -quit)
timeout --kill-after=5 600 qemu-system-aarch64 -M virt,gic-version=3 -cpu neoverse-n1 -smp 2 -m 1024 -nic none -nographic -no-reboot \
	-kernel "$kernel" -initrd "$vm/disk.gz" -append 'console=ttyAMA0 quiet panic=-1 rdinit=/init' </dev/null 2>&1 |
	tr -d '\r' >"$vm/console"

said() { # NAME: what the machine printed for it
	sed -n "/^== begin $1\$/,/^== status /p" "$vm/console"
}
says() { # NAME PATTERN...: each in a line of it
	local pattern text
	text=$(said "$1")
	for pattern in "${@:2}"; do
		grep -qE "$pattern" <<<"$text" || { printf 'no line %s in\n%s\n' "$pattern" "$text"; return 1; }
	done
}
says_no() {
	! says "$@" >/dev/null
}

point 'the machine booted and went down' grep -q 'reboot: Power down' "$vm/console"
for unit in "${units[@]}"; do
	[[ $unit == test_sandbox_filters ]] || said "$unit" | points_of "machine $unit"
done
sandboxed=('"no_new_privs":.true' '"seccomp":.true' '"landlock_abi":.[1-9]' '"machine":.*"aarch64"')
point 'machine: a CPU check passes in the sandbox' says cpu '"CPU_CHECK_PASSED"' '"loss":.196' "${sandboxed[@]}" '^== status 0'
point 'machine: over the CUDA double the workload starts' says cuda 'GPU_CHECK_PASSED' '^the workload$' '^== status 0'
point 'machine: over the HIP double the workload starts' says hip 'GPU_CHECK_PASSED' '^the workload$' '^== status 0'
point 'machine: without a driver it does not' says none 'GPU_BACKEND_ABSENT' '^== status 5'
point 'machine: not at all' says_no none '^the workload$'
point 'machine: a CPU check passes where there is no loader' says scratch '"CPU_CHECK_PASSED"' "${sandboxed[@]}" '^== status 0'

awk '/^(not )?ok / { sub("ok - ", "ok " ++n " - ") } { print } END { print "1.." n }' "$points"
