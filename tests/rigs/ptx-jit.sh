#!/bin/sh
# ptx-jit.sh PTX [FOLDER]
# Puts the shipped PTX through the PTX compilers of the NVIDIA drivers that Debian's suites carry. Nothing is installed:
# packages are unpacked below FOLDER (build/rigs/drivers) and kept there. Takes the network and about 300 MB, so it is a
# target beside CI's. Exits 1 when a driver refused the PTX for a chip that it knows, or compiled it for none.
set -eu

ptx=$1
folder=${2:-build/rigs/drivers}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
here=$(cd "$(dirname "$0")" && pwd)

# suite  components  package
drivers='
sid           non-free  libnvidia-legacy-390xx-ptxjitcompiler1
sid           non-free  libnvidia-tesla-450-ptxjitcompiler1
sid           non-free  libnvidia-tesla-460-ptxjitcompiler1
bookworm      non-free  libnvidia-tesla-470-ptxjitcompiler1
bookworm      non-free  libnvidia-ptxjitcompiler1
trixie        non-free  libnvidia-ptxjitcompiler1
sid           non-free  libnvidia-ptxjitcompiler1
experimental  non-free  libnvidia-ptxjitcompiler1
'
architectures='sm_30 sm_35 sm_50 sm_52 sm_60 sm_61 sm_70 sm_75 sm_80 sm_86 sm_87 sm_89 sm_90 sm_90a sm_100 sm_103 sm_110
sm_120 sm_121'

# fetch SUITE COMPONENTS PACKAGE DESTINATION
fetch() {
	COMPONENTS=$2 "$here/../../ci/unpack.sh" "$(dpkg --print-architecture)" "$1" "$4" "$3"
}

mkdir -p "$folder/bin"
${CC:-cc} -std=c11 -D_GNU_SOURCE -O2 -o "$folder/bin/ptx-jit" "$here/ptx-jit.c" -ldl

failed=0
echo "$drivers" | {
	while read -r suite components package; do
		[ -n "$suite" ] || continue
		root=$folder/$suite-$package
		if [ ! -d "$root" ] && ! fetch "$suite" "$components" "$package" "$root"; then
			echo "$suite $package: cannot be had"
			continue
		fi
		library=$(find "$root" -name 'libnvidia-ptxjitcompiler.so.[0-9]*.[0-9]*' -type f | sort -V | tail -n 1)
		version=${library##*.so.}
		status=0
		# shellcheck disable=SC2086 # a list of words
		results=$("$folder/bin/ptx-jit" "$library" "$ptx" $architectures) || status=$?
		echo "driver $version ($suite): $(echo "$results" | awk 'NF == 2 { printf "%s ", $1 }')"
		# Chips that this driver does not know yet or no more, or older than the PTX's target, are no fault.
		refused=$(echo "$results" | awk 'NF != 2' |
			grep -v -e 'is not defined for option' -e 'specified by .target is higher than' || :)
		[ -z "$refused" ] || { echo "$refused"; failed=1; }
		[ "$status" -eq 0 ] || failed=1
	done
	exit $failed
}
