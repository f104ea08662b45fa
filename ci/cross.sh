#!/bin/sh
# ci/cross.sh aarch64 [ARGUMENT]...: make, with these arguments, for another architecture: by the same rules in
# build/aarch64, where the sources are links, with Debian's cross compiler (ci/deps.sh cross) and Debian's musl of that
# architecture, unpacked in build/aarch64/root. The program becomes build/aarch64/build/kd-preflight.
set -eu

[ "${1:-}" = aarch64 ] || { echo "usage: ci/cross.sh aarch64 [ARGUMENT]..." >&2; exit 2; }
arch=$1 debian=arm64 cc=$1-linux-gnu-gcc
shift
top=$(cd "$(dirname "$0")/.." && pwd)
tree=$top/build/$arch
root=$tree/root
musl=usr/lib/$arch-linux-musl
command -v "$cc" >/dev/null || { echo "cross: no $cc; see ci/deps.sh cross" >&2; exit 1; }

if [ ! -e "$root/versions" ]; then
	# shellcheck source=/dev/null
	"$top/ci/unpack.sh" "$debian" "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root.new" musl-dev
	# a compiler for musl is Debian's for glibc with these words; they name folders of the root
	sed "s,/usr/\(include\|lib\)/$arch-linux-musl,$root&,g" "$root.new/$musl/musl-gcc.specs" >"$root.new/musl-gcc.specs"
	mv "$root.new" "$root"
fi

# What does not differ is taken over: the archives of the libraries, the kernels.
for name in Makefile LICENSE NOTICE ci kernels src tests; do
	rm -rf "${tree:?}/$name"
	cp -as "$top/$name" "$tree/$name"
done
mkdir -p "$tree/build"
[ ! -d "$top/build/kernels" ] || cp -a "$top/build/kernels" "$tree/build/"
export KD_SOURCE_MIRROR="${KD_SOURCE_MIRROR:-$top/build/deps/src}"
[ -e "$top/build/deps/src/.fetched" ] || make -C "$top" build/deps/src/.fetched

exec make --no-print-directory -C "$tree" HOST_CC="$cc" MUSL_CC="$cc -specs=$root/musl-gcc.specs" MUSL_LIB="$root/$musl" \
	MUSL_VERSION="$(sed -n 's/^musl-dev //p' "$root/versions")" "$@"
