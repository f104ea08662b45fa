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
for headers in linux asm-generic "$(gcc -print-multiarch)/asm"; do
	[ -d "/usr/include/$headers" ] || { echo "libs: no /usr/include/$headers: install linux-libc-dev" >&2; exit 1; }
	ln -sfn "/usr/include/$headers" "$dest/include/${headers##*/}"
done
cp "$sources"/libseccomp/include/*.h "$sources/cjson/cJSON.h" "$dest/include/"
echo '#define HAVE_LINUX_SECCOMP_H 1' >"$scratch/configure.h"

cc="$* -isystem $dest/include -I$scratch -I$sources/libseccomp/include -ffile-prefix-map=$sources=deps"

archive() { # NAME: the C files named on stdin become DEST/lib/libNAME.a
	mkdir "$scratch/$1"
	# shellcheck disable=SC2086 # a command in words
	(cd "$scratch/$1" && xargs -n 1 -P "$(nproc)" $cc -c)
	rm -f "$dest/lib/lib$1.a"
	ar Dcr "$dest/lib/lib$1.a" "$scratch/$1"/*.o
}

find "$sources/libseccomp/src" -maxdepth 1 -name '*.c' ! -name arch-syscall-dump.c | archive seccomp
echo "$sources/cjson/cJSON.c" | archive cjson
