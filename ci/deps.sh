#!/bin/sh
# ci/deps.sh GROUP...: install the Debian packages of the groups that are missing here. As root it installs them;
# else it says what to install. Groups: build (make all), run (a real PyTorch to check), test (make test, ci/), cross (make
# aarch64, dist-aarch64, check-aarch64).
set -eu

packages() { # Debian 12 has clang-22 in its security updates
	case $1 in
	build) echo binutils clang-19 clang-22 gcc libc6-dev linux-libc-dev lld-19 lld-22 make musl-tools ;;
	run) echo python3 python3-torch ;;
	test) echo bats btrfs-progs buildah ca-certificates catatonit clang clang-format clang-tidy cppcheck e2fsprogs git hyperfine libclang-rt-14-dev man-db \
		mmdebstrap mount munge podman procps python3-jsonschema python3-torch python3-venv runc shellcheck slurm-client slurmctld \
		slurmd strace util-linux valgrind xfsprogs ;;
	cross) echo cpio gcc-aarch64-linux-gnu libc6-dev-arm64-cross linux-libc-dev-arm64-cross qemu-system-arm qemu-user-static ;;
	rigs) echo cpio mmdebstrap qemu-system-x86 strace ;; # of the targets beside CI's
	*) echo "deps: unknown group '$1' (build, run, test, cross, rigs)" >&2 && return 2 ;;
	esac
}

installed() {
	[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

wanted=''
for group; do
	wanted="$wanted $(packages "$group")"
done
missing=''
for package in $wanted; do
	installed "$package" || missing="$missing $package"
done
if [ -n "$missing" ] && [ "$(id -u)" -ne 0 ]; then
	echo "deps: missing here; as root: apt-get install --no-install-recommends$missing" >&2
	exit 1
fi
if [ -n "$missing" ]; then
	export DEBIAN_FRONTEND=noninteractive
	apt-get -qq -o Acquire::Retries=3 update
	# shellcheck disable=SC2086 # a list of words
	apt-get -qq -y -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 install --no-install-recommends $missing >/dev/null
fi

# The schemas of Kubernetes, for the manifests; a Python package, so in a virtual environment of its own.
case " $* " in *' test '*)
	venv=build/containers/venv
	"$venv/bin/python" -c 'import kubernetes_validate' 2>/dev/null || {
		/usr/bin/python3 -m venv "$venv"
		"$venv/bin/python" -m pip install --quiet --disable-pip-version-check kubernetes-validate==1.37.0
	}
	;;
esac
