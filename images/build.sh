#!/bin/sh
# images/build.sh [IMAGE...]: build the images (default: all) and print their sizes. IMAGE: kd-preflight, init, pytorch,
# cpu-ci; all but the first are built on it. Run it from the top, after `make`.
#
#   ENGINE       the builder and its options: podman, buildah or docker (default: the first of them on PATH)
#   BASE_INIT    base image with glibc and nothing else that is needed, such as debian:stable-slim or a distroless one
#   BASE_PYTORCH, BASE_CPU_CI
#                base images with a python3 that imports torch
#   TAG          tag of all of them (default: the version of the binary)
#   BINARY       the program to ship (default: build/kd-preflight)
#   SOURCE_DATE_EPOCH
#                time stamp of every layer (default: of the commit), so that two builds of one commit give one image
#
# An image whose base is not given is left out, unless it was asked for by name. Exit 0, 1 (a build failed) or 2 (usage).
set -eu

BINARY=${BINARY:-build/kd-preflight}
VERSION=$("$BINARY" --version | sed 's/.* //')
TAG=${TAG:-$VERSION}
REVISION=$(git rev-parse HEAD 2>/dev/null || echo unknown)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH # docker's builder takes it from the environment

ENGINE=${ENGINE:-$(for e in podman buildah docker; do command -v $e && break; done)} ||
	{ echo 'build.sh: none of podman, buildah, docker is here; name one in ENGINE' >&2; exit 2; }

# The context holds what goes into images, and nothing else of the tree.
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
mkdir "$context/licenses"
cp "$BINARY" "$context/kd-preflight"
cp images/train.py "$context/"
for file in LICENSE* NOTICE*; do
	[ ! -f "$file" ] || cp "$file" "$context/licenses/"
done
chmod -R u=rwX,go=rX "$context"
chmod 0755 "$context/kd-preflight"

# The layers' time stamps: podman and buildah by option; docker's by SOURCE_DATE_EPOCH.
case $ENGINE in
*docker*) stamp='' ;;
*) stamp="--timestamp $SOURCE_DATE_EPOCH" ;;
esac

build() { # NAME FILE [ARG...]
	name=$1 file=$2
	shift 2
	# shellcheck disable=SC2086 # lists of words
	$ENGINE build $stamp --build-arg "VERSION=$VERSION" --build-arg "REVISION=$REVISION" "$@" -t "$name:$TAG" \
		-f "$file" "$context" >"$context/log" 2>&1 || { cat "$context/log" >&2; echo "build.sh: $name failed" >&2; exit 1; }
	built="${built:+$built }$name:$TAG"
}

on_base() { # NAME FILE BASE ASKED
	[ -n "$3" ] || [ -z "$4" ] || { echo "build.sh: $1: no base: set BASE_* (see the head of this script)" >&2; exit 2; }
	[ -n "$3" ] || return 0
	build "$1" "$2" --build-arg "BASE=$3" --build-arg "KD_PREFLIGHT=localhost/kd-preflight:$TAG"
}

built=''
build localhost/kd-preflight images/Containerfile
asked=$*
[ $# -gt 0 ] || set -- kd-preflight init pytorch cpu-ci
for image; do
	case $image in
	kd-preflight) ;;
	init) on_base localhost/kd-preflight-init images/Containerfile.init "${BASE_INIT:-}" "$asked" ;;
	pytorch) on_base localhost/kd-preflight-pytorch images/Containerfile.pytorch "${BASE_PYTORCH:-}" "$asked" ;;
	cpu-ci) on_base localhost/kd-preflight-cpu-ci images/Containerfile.cpu-ci "${BASE_CPU_CI:-}" "$asked" ;;
	*) echo "build.sh: $image: no such image: kd-preflight, init, pytorch, cpu-ci" >&2; exit 2 ;;
	esac
done

# buildah lists sizes, the others tell bytes.
for name in $built; do
	case $ENGINE in
	*buildah*) size=$($ENGINE images --format '{{.Size}}' "$name") ;;
	*) size="$($ENGINE image inspect --format '{{.Size}}' "$name") bytes" ;;
	esac
	printf '%-42s %s\n' "$name" "$size"
done
