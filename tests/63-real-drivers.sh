#!/usr/bin/env bash
# 63-real-drivers.sh [FOLDER]
# Runs build/kd-preflight against real driver libraries, without a card: the CUDA drivers and HIP runtimes that Debian's
# suites carry, a CUDA toolkit's stub library, and musl's loader. Prints one line for each: version, code, what the driver
# said. Nothing is installed: packages are unpacked below FOLDER (build/rigs/real) and kept there. It takes the network,
# root, mmdebstrap and about 3 GB, so it is a target beside CI's. Exits 1 when a result is not what it has to be.
#
# A driver of CUDA binds to old symbol versions and runs on this machine's own C library. A HIP runtime needs that of its
# suite, so it gets a root of its own, entered in a private mount namespace with an empty /dev.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
preflight=$top/build/kd-preflight
folder=${1:-$top/build/rigs/real}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
mirror=$(awk '/^URIs:/ { print $2; exit }' /etc/apt/sources.list.d/debian.sources)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
failed=0

# suite | component | packages | error that a machine without a card gives
cuda_drivers='
sid          | non-free | libnvidia-legacy-390xx-cuda1 libnvidia-legacy-390xx-fatbinaryloader | 999 CUDA_ERROR_UNKNOWN
sid          | non-free | libnvidia-tesla-450-cuda1    | 100 CUDA_ERROR_NO_DEVICE
sid          | non-free | libnvidia-tesla-460-cuda1    | 100 CUDA_ERROR_NO_DEVICE
bookworm     | non-free | libnvidia-tesla-470-cuda1    | 100 CUDA_ERROR_NO_DEVICE
bookworm     | non-free | libcuda1                     | 100 CUDA_ERROR_NO_DEVICE
trixie       | non-free | libcuda1                     | 100 CUDA_ERROR_NO_DEVICE
sid          | non-free | libcuda1                     | 100 CUDA_ERROR_NO_DEVICE
experimental | non-free | libcuda1                     | 100 CUDA_ERROR_NO_DEVICE
'

# suite | package | further packages (with versions, where two suites are mixed) | error
hip_runtimes='
bookworm     | libamdhip64-5 |                                                       | 101 hipErrorInvalidDevice
trixie       | libamdhip64-5 |                                                       | 101 hipErrorInvalidDevice
sid          | libamdhip64-6 |                                                       | 100 hipErrorNoDevice
experimental | libamdhip64-7 | libamdhip64-7=7.2*,libhsa-runtime64-1=7.2*,libamd-comgr3=7.2* | 100 hipErrorNoDevice
'

# fetch SUITE COMPONENT PACKAGES DESTINATION
fetch() {
	# shellcheck disable=SC2086 # a list of packages
	COMPONENTS=$2 "$top/ci/unpack.sh" "$(dpkg --print-architecture)" "$1" "$4" $3 2>&1 | tail -n 1
}

# root SUITE PACKAGES DESTINATION
root() {
	local base=$1 more=()
	if [[ $1 == experimental ]]; then
		base=sid
		more=("deb [signed-by=$keyring] $mirror experimental main")
	fi
	# Check-Valid-Until: a frozen mirror serves Release files past their date; they are signed all the same.
	mmdebstrap --quiet --variant=extract --aptopt='APT::Install-Recommends "false"' \
		--aptopt='Acquire::Check-Valid-Until "false"' --include="libc6,$2" "$base" "$3" \
		"deb [signed-by=$keyring] $mirror $base main" "${more[@]}" >"$3.log" 2>&1 ||
		{ tail -n 2 "$3.log"; rm -rf "$3"; return 1; }
}

# in_namespace COMMAND...: with a /dev of its own. As root a driver would make the nodes that it misses; the sandbox
# must keep it from that, and this machine must not keep what it made.
in_namespace() {
	# shellcheck disable=SC2016 # expanded in the namespace
	timeout 120 unshare --mount --propagation private bash -euc '
		mount -t tmpfs -o mode=755 none /mnt
		for usual in "null 3" "zero 5" "full 7" "random 8" "urandom 9"; do
			mknod -m 666 "/mnt/${usual% *}" c 1 "${usual#* }"
		done
		mkdir /mnt/shm
		ln -s /proc/self/fd /mnt/fd
		mount --move /mnt /dev
		status=0
		"$@" || status=$?
		if compgen -G "/dev/nvidia*" >&2; then
			echo "the driver made a device node" >&2
			exit 99
		fi
		exit $status
	' _ "$@"
}

# in_root ROOT ARG...: kd-preflight inside that root.
in_root() {
	local root=$1 name
	shift
	mkdir -p "$root/proc" "$root/dev" "$root/tmp"
	# Unpacked only: the links of a merged /usr, which newer suites leave to an installation's set-up.
	for name in lib lib64; do
		[[ -e $root/$name || ! -e $root/usr/$name ]] || ln -s "usr/$name" "$root/$name"
	done
	cp "$preflight" "$root/kd-preflight"
	# shellcheck disable=SC2016 # expanded in the namespace
	in_namespace bash -euc 'root=$1; shift; mount --rbind /dev "$root/dev"; mount -t proc proc "$root/proc"
		exec chroot "$root" /kd-preflight "$@"' _ "$root" "$@"
}

# tell NAME STATUS REPORT WANTED: one line of the table; WANTED is "EXIT CODE STAGE [NUMBER NAME]" or "... hint ID".
tell() {
	local name=$1 status=$2 report=$3 wanted=$4 got hints
	"$top/tests/validate-report" "$report" || failed=1
	got=$(/usr/bin/python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))
d, v = r["detail"] or {}, r["driver"] or {}
print(r["code"], r["stage"], d.get("error_number", "-"), d.get("error_name", "-"), d.get("call", d.get("missing", "-")),
      v.get("driver_version") or v.get("runtime_version") or "-", v.get("library_origin", "-"), r["sandbox"]["seccomp"],
      ",".join(hint["id"] for hint in r["hints"]) or "-")' "$report")
	hints=${got##* }
	printf '%-48s %s %s\n' "$name" "$status" "$got"
	case $wanted in
	*' hint '*) [[ "$status $got" == "${wanted% hint *} "* && ,$hints, == *",${wanted##* },"* ]] || wrong "$name" "$wanted" ;;
	*) [[ "$status $got" == "$wanted "* ]] || wrong "$name" "$wanted" ;;
	esac
}

wrong() {
	echo "WRONG: $1: wanted $2"
	failed=1
}

trim() { sed 's/^ *//; s/ *$//' <<<"$1"; }

run_cuda() {
	local suite component package error name library status
	while IFS='|' read -r suite component package error; do
		[[ -n $suite ]] || continue
		suite=$(trim "$suite") component=$(trim "$component") package=$(trim "$package") error=$(trim "$error")
		name=$suite-${package%% *}
		if [[ ! -d $folder/$name ]] && ! fetch "$suite" "$component" "$package" "$folder/$name"; then
			echo "$name: cannot be had"
			continue
		fi
		library=$(find "$folder/$name" -name 'libcuda.so.[0-9]*.[0-9]*' -type f -print -quit)
		mkdir -p "$folder/$name/lib"
		# With its own parts beside it, which not all packages keep in one folder.
		find "$folder/$name/usr" -name '*.so.*' -type f -exec ln -sft "$folder/$name/lib" {} +
		ln -sf "$library" "$folder/$name/lib/libcuda.so.1"
		status=0
		LD_LIBRARY_PATH=$folder/$name/lib in_namespace "$preflight" --framework none --timeout 30 \
			>"$folder/$name.json" 2>"$folder/$name.err" || status=$?
		tell "libcuda ${library##*.so.} ($suite)" "$status" "$folder/$name.json" "6 GPU_UNAVAILABLE device $error"
	done <<<"$cuda_drivers"
}

run_hip() {
	local suite package more error name version status
	while IFS='|' read -r suite package more error; do
		[[ -n $suite ]] || continue
		suite=$(trim "$suite") package=$(trim "$package") more=$(trim "$more") error=$(trim "$error")
		name=$suite-$package
		if [[ ! -d $folder/$name ]] && ! root "$suite" "${more:-$package}" "$folder/$name"; then
			echo "$name: cannot be had"
			continue
		fi
		version=$(find "$folder/$name" -name 'libamdhip64.so.*.*' -type f -printf '%f' -quit)
		version=${version#libamdhip64.so.}
		status=0
		in_root "$folder/$name" --framework none --timeout 30 >"$folder/$name.json" 2>"$folder/$name.err" || status=$?
		tell "HIP $version ($suite)" "$status" "$folder/$name.json" "6 GPU_UNAVAILABLE device $error"
	done <<<"$hip_runtimes"
}

run_stub() {
	local stub status=0
	stub=$(find /usr/local/cuda*/ -path '*/stubs/libcuda.so' -print -quit 2>/dev/null || true)
	[[ -n $stub ]] || { echo 'no CUDA toolkit here: its stub library is not run'; return; }
	mkdir -p "$folder/stubs"
	ln -sf "$stub" "$folder/stubs/libcuda.so.1"
	LD_LIBRARY_PATH=$folder/stubs "$preflight" --framework none >"$folder/stub.json" 2>"$folder/stub.err" || status=$?
	tell 'toolkit stub' "$status" "$folder/stub.json" '5 GPU_BACKEND_ABSENT backend 34 CUDA_ERROR_STUB_LIBRARY'
	tell 'toolkit stub, its hint' "$status" "$folder/stub.json" '5 GPU_BACKEND_ABSENT backend hint library-stub'
}

# A root that has no other loader, with a real driver of glibc in musl's path.
run_musl() {
	local name=bookworm-musl status=0 driver=$folder/bookworm-libcuda1/lib/libcuda.so.1
	if [[ ! -d $folder/$name ]] && ! fetch bookworm main musl "$folder/$name"; then
		echo "musl: cannot be had"
		return
	fi
	[[ ! -e $driver ]] || cp -L "$driver" "$folder/$name/lib/libcuda.so.1"
	in_root "$folder/$name" --framework none >"$folder/$name.json" 2>"$folder/$name.err" || status=$?
	tell 'musl loader, a real libcuda beside it' "$status" "$folder/$name.json" '5 GPU_BACKEND_ABSENT backend hint musl-image'
}

printf '%-48s %s\n' driver 'exit code stage number name call|missing version origin seccomp hints'
run_cuda
run_stub
run_musl
[[ ${KD_REAL_HIP:-1} == 0 ]] || run_hip
exit "$failed"
