#!/bin/sh
# check-ptx.sh PTX [PTXAS]...
# Assembles PTX with every ptxas found (those named, the one on PATH, those of /usr/local/cuda*) for every architecture
# that it lists. Exits 1 when one refuses it, 0 with a line that says so when no toolkit is here.
set -u

ptx=$1
shift
on_path=$(command -v ptxas || :)
found=
failed=0
out=$(mktemp)
trap 'rm -f "$out" "$out.log"' EXIT

for candidate in "$@" "$on_path" /usr/local/cuda*/bin/ptxas; do
	[ -x "$candidate" ] || continue
	ptxas=$(readlink -f "$candidate")
	case " $found " in *" $ptxas "*) continue ;; esac
	found="$found $ptxas"

	version=$("$ptxas" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
	architectures=$("$ptxas" --help | grep -o "'sm_[0-9]*[a-z]*'" | tr -d "'" | sort -u -V)
	[ -n "$architectures" ] || { echo "ptxas $version: lists no architecture"; failed=1; }
	passed=
	for architecture in $architectures; do
		# The target of the PTX is the least one; ptxas says so of older chips, and that is no fault of it.
		if "$ptxas" --gpu-name "$architecture" --output-file "$out" "$ptx" >"$out.log" 2>&1; then
			passed="$passed $architecture"
		elif [ "${architecture#sm_}" -lt 50 ] 2>/dev/null; then
			passed="$passed ($architecture: too old)"
		else
			failed=1
			echo "ptxas $version: $architecture: $(head -n 1 "$out.log")"
		fi
	done
	echo "ptxas $version:$passed"
done
[ -n "$found" ] || echo "check-ptx: no CUDA toolkit found, nothing checked"
exit $failed
