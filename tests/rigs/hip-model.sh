#!/bin/sh
# hip-model.sh [FOLDER]
# Puts the shipped AMD code objects through the real HIP 7.2 runtime on modelled devices: loading, symbol lookup, argument
# layout, launch and synchronisation are the runtime's, the arithmetic is the host's (hip-model-gpu.c). Nothing is
# installed: the runtime is unpacked below FOLDER (build/rigs/hip) from Debian's sid and experimental, about 300 MB, and run
# by that root's own loader. Needs mmdebstrap and root (for an empty /dev/dri/renderD128 in a private mount namespace), so
# it is a target beside CI's. Exits 1 when a result is not exact.
#
# gfx900, 906, 908, 90a and 1030 are not run: the model mode does not support them.
set -eu

folder=${1:-build/rigs/hip}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
repository=$here/../..
mirror=$(awk '/^URIs:/ { print $2; exit }' /etc/apt/sources.list.d/debian.sources)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
root=$folder/root
libraries=$root/usr/lib/$(uname -m)-linux-gnu

if [ ! -e "$libraries/libamdhip64.so.7" ]; then
	rm -rf "$root"
	# Check-Valid-Until: a frozen mirror serves Release files past their date; they are signed all the same.
	mmdebstrap --quiet --variant=extract --aptopt='APT::Install-Recommends "false"' \
		--aptopt='Acquire::Check-Valid-Until "false"' \
		--include='libc6,libstdc++6,libamdhip64-7=7.2*,libhsa-runtime64-1=7.2*,libamd-comgr3=7.2*' \
		sid "$root" "deb [signed-by=$keyring] $mirror sid main" \
		"deb [signed-by=$keyring] $mirror experimental main"
fi

flags='-std=c11 -D_GNU_SOURCE -O2 -ffp-contract=off'
# shellcheck disable=SC2086 # lists of words
{
	${CC:-cc} $flags -shared -fPIC -o "$folder/model.so" "$here/hip-model-gpu.c" "$repository/kernels/check.c" -pthread
	${CC:-cc} $flags -shared -fPIC -o "$folder/drm.so" "$here/hip-model-drm.c"
	${CC:-cc} $flags -o "$folder/client" "$here/hip-model-client.c" -ldl
}

# architecture  gfx_target_version  PCI device  wavefront  generic image  amdgpu family (RDNA only)
devices='
gfx942   90402  29857 64 -               -
gfx950   90500  30112 64 gfx9-4-generic  -
gfx1100  110000 29772 32 gfx11-generic   145
gfx1151  110501 5510  32 gfx11-generic   145
gfx1200  120000 30016 32 gfx12-generic   145
gfx1201  120001 30032 32 gfx12-generic   145
'

# run ARCHITECTURE FAMILY [IMAGE]
run() {
	export HSA_MODEL_TOPOLOGY="$folder/$1" HSA_MODEL_LIB="$folder/model.so" TMPDIR="$folder/tmp" AMD_COMGR_CACHE=0
	preload=
	[ "$2" = - ] || preload=$folder/drm.so
	export HIP_MODEL_FAMILY="$2"
	# shellcheck disable=SC2016 # expanded by the inner shell
	timeout 120 unshare --mount sh -c '
		mount -t tmpfs none /mnt && mkdir /mnt/dri && touch /mnt/dri/renderD128
		for node in null zero urandom; do touch "/mnt/$node" && mount --bind "/dev/$node" "/mnt/$node"; done
		mount --move /mnt /dev
		preload=$1
		shift
		exec "$0/ld-linux-x86-64.so.2" --library-path "$0" ${preload:+--preload "$preload"} "$@"
	' "$libraries" "$preload" "$folder/client" libamdhip64.so.7 ${3:+"$3"}
}

mkdir -p "$folder/tmp"
failed=0
echo "$devices" | {
	while read -r architecture version device wave generic family; do
		[ -n "$architecture" ] || continue
		"$here/hip-model-topology.sh" "$folder/$architecture" "$version" "$device" "$wave"
		run "$architecture" "$family" 2>"$folder/$architecture.log" ||
			{ failed=1; echo "$architecture: failed, see $folder/$architecture.log"; }
		[ "$generic" = - ] || run "$architecture" "$family" "$generic" 2>"$folder/$architecture-generic.log" ||
			{ failed=1; echo "$architecture: $generic failed, see $folder/$architecture-generic.log"; }
	done
	# The control: another chip's object is refused by the runtime (hipErrorNoBinaryForGpu).
	control=$(run gfx942 - gfx1100 2>/dev/null || :)
	echo "control, gfx942 with the image of gfx1100: $control"
	[ "$control" = 'hipModuleLoadData: 209' ] || failed=1
	exit $failed
}
