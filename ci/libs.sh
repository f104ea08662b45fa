#!/bin/sh
# ci/libs.sh SOURCES DEST CC [FLAG]...: compile libseccomp and cJSON, unpacked in SOURCES by ci/fetch.sh, as static
# libraries: DEST/lib and DEST/include. Upstream's build systems are left out: both are plain C, configured by one define.
set -eu

sources=$(cd "$1" && pwd)
mkdir -p "$2/lib" "$2/include"
dest=$(cd "$2" && pwd)
shift 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# musl brings no kernel headers. Only these three folders, so that no header of another C library is found by accident.
# Debian has those of another architecture below a folder of its own (linux-libc-dev-ARCH-cross).
machine=$("$1" -print-multiarch)
asm=/usr/include/$machine/asm
[ -d "$asm" ] || asm=/usr/$machine/include/asm
for headers in /usr/include/linux /usr/include/asm-generic "$asm"; do
	[ -d "$headers" ] || { echo "libs: no $headers: install linux-libc-dev" >&2; exit 1; }
	ln -sfn "$headers" "$dest/include/${headers##*/}"
done
cp "$sources"/libseccomp/include/*.h "$sources/cjson/cJSON.h" "$dest/include/"
echo '#define HAVE_LINUX_SECCOMP_H 1' >"$scratch/configure.h"

set -- "$@" -isystem "$dest/include" "-I$scratch" "-I$sources/libseccomp/include" "-ffile-prefix-map=$sources=deps"

archive() { # NAME COMPILER...: the C files named on stdin, one a line, become DEST/lib/libNAME.a
	name=$1
	shift
	mkdir "$scratch/$name"
	(cd "$scratch/$name" && xargs -d '\n' -n 1 -P "$(nproc)" "$@" -c)
	rm -f "$dest/lib/lib$name.a"
	ar Dcr "$dest/lib/lib$name.a" "$scratch/$name"/*.o
}

find "$sources/libseccomp/src" -maxdepth 1 -name '*.c' ! -name arch-syscall-dump.c | archive seccomp "$@"
echo "$sources/cjson/cJSON.c" | archive cjson "$@"
