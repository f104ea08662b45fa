#!/usr/bin/env bash
# tests/container-base.sh: everything that the container tests share, made once below build/containers:
#
#   podman          podman with the options that work on a machine like CI's (root, hybrid cgroups, no network)
#   *.tar           base images of this machine's own Debian release, made with mmdebstrap: nothing can be pulled, and the
#                   driver doubles need a glibc that is not older than the one they were built with
#   storage, run    podman's own
#
# and in that storage: localhost/kd-test-minimal (glibc only: no shell), localhost/kd-test-python (python3, a shell,
# tini, and the stub PyTorch of tests/stubs), the images of images/build.sh on these bases, and of init, pytorch
# and python one more each, :double, in which the CUDA double stands for the driver. Needs the packages podman, buildah,
# runc and mmdebstrap, root, and the first time Debian's packages (about 20 MB, 40 s).
set -euo pipefail
cd "$(dirname "$0")/.."

top=$PWD
here=$top/build/containers
mkdir -p "$here"
exec 9>"$here/.lock"
flock 9

# Limits cannot be raised here, cgroups are of the hybrid layout that crun refuses, and there is no network.
cat >"$here/containers.conf" <<-'C'
	[containers]
	default_ulimits=["nofile=1024:1024","nproc=1024:1024"]
	netns="none"
	[engine]
	cgroup_manager="cgroupfs"
	events_logger="file"
	runtime="runc"
C

# overlay is fast but cannot stand on an overlay: tried, with vfs in reserve.
if [[ ! -s $here/driver ]]; then
	mkdir -p "$here/try/l" "$here/try/u" "$here/try/w" "$here/try/m"
	driver=vfs
	if mount -t overlay overlay -o "lowerdir=$here/try/l,upperdir=$here/try/u,workdir=$here/try/w" "$here/try/m" 2>/dev/null; then
		umount "$here/try/m"
		driver=overlay
	fi
	rm -rf "$here/try"
	echo "$driver" >"$here/driver"
fi
for engine in podman buildah; do
	printf '#!/bin/sh\nexport CONTAINERS_CONF=%s\nexec %s --storage-driver %s --root %s --runroot %s %s"$@"\n' \
		"'$here/containers.conf'" "/usr/bin/$engine" "$(<"$here/driver")" "'$here/storage'" "'$here/run'" \
		"$([[ $engine == buildah ]] || echo "--tmpdir '$here/tmp' ")" >"$here/$engine"
	chmod +x "$here/$engine"
done
podman=$here/podman

# Nothing to do when nothing of this has changed.
inputs=$(find build/kd-preflight build/doubles/cuda/libcuda.so.1 images tests/stubs tests/container-base.sh -type f \
	! -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum | sha256sum)
if [[ -s $here/inputs && $(<"$here/inputs") == "$inputs" ]] && "$podman" image exists localhost/kd-test-python:double; then
	exit 0
fi

base() { # NAME PACKAGES: build/containers/NAME.tar
	[[ -s $here/$1.tar ]] && return
	(
		# mmdebstrap hands apt a descriptor by number in a command for sh, and dash knows only one digit: free the low ones.
		for fd in /proc/"$BASHPID"/fd/*; do
			fd=${fd##*/}
			((fd <= 2 || fd == 255)) || eval "exec $fd>&-"
		done
		# shellcheck disable=SC1091,SC2016 # the hook is a script of mmdebstrap's
		mmdebstrap --quiet --variant=extract --include="$2" \
			--customize-hook='cd "$1" && rm -rf usr/share/doc usr/share/man usr/share/locale usr/share/info usr/share/perl* \
				usr/lib/*/perl* usr/lib/*/gconv usr/lib/python3*/test usr/lib/valgrind var/cache/apt var/lib/apt' \
			"$(. /etc/os-release && echo "$VERSION_CODENAME")" "$here/$1.new.tar" >"$here/$1.log" 2>&1
	) || { cat "$here/$1.log" >&2; return 1; }
	mv "$here/$1.new.tar" "$here/$1.tar"
}

import() { # NAME: the tar as localhost/kd-test-NAME, once
	"$podman" image exists "localhost/kd-test-$1" || "$podman" import --quiet "$here/$1.tar" "localhost/kd-test-$1" >/dev/null
}

base minimal base-files,libc6 &
minimal=$!
base stubless base-files,libc6,dash,coreutils,python3-minimal,libpython3-stdlib,tini
wait "$minimal"
import minimal
import stubless

# derived NAME CONTEXT LINE...: an image of a few lines.
derived() {
	local name=$1 context=$2
	shift 2
	printf '%s\n' "$@" | "$podman" build --quiet --timestamp 0 -t "$name" -f - "$context" >/dev/null
}

derived localhost/kd-test-python tests/stubs 'FROM localhost/kd-test-stubless' 'COPY torch /usr/lib/python3/dist-packages/torch'
PATH=$here:$PATH ENGINE=podman BASE_INIT=localhost/kd-test-minimal BASE_PYTORCH=localhost/kd-test-python \
	BASE_CPU_CI=localhost/kd-test-python images/build.sh >"$here/sizes"

with_double=('COPY cuda/libcuda.so.1 /opt/double/libcuda.so.1' 'ENV LD_LIBRARY_PATH=/opt/double')
version=$(build/kd-preflight --version | sed 's/.* //')
for name in kd-preflight-init kd-preflight-pytorch kd-preflight-cpu-ci; do
	derived "localhost/$name:double" build/doubles "FROM localhost/$name:$version" "${with_double[@]}"
done
derived localhost/kd-test-python:double build/doubles 'FROM localhost/kd-test-python' "${with_double[@]}" \
	'ENV PATH=/usr/local/bin:/usr/bin:/bin'

"$podman" image prune --force >/dev/null 2>&1 || true
echo "$inputs" >"$here/inputs"
