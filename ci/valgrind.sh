#!/usr/bin/env bash
# ci/valgrind.sh: the supervisor under valgrind, as TAP: no error, no leak and no descriptor left open in a passing run, in
# failing ones and in the actions. A static program cannot be looked into, so this is a dynamic build for the C library
# here. Workers are not followed: they become other programs. Run from the top after `make`.
set -uo pipefail

where=build/valgrind
mkdir -p "$where"
count=0
[[ -e $where/deps/lib/libcjson.a ]] || ci/libs.sh build/deps/src "$where/deps" gcc -O1 -w -std=gnu11 || exit 1
mapfile -t sources < <(printf '%s\n' src/*.c | grep -v '/sandbox_generate\.c$') # a program of the build
gcc -std=c11 -D_GNU_SOURCE '-DKD_VERSION="0.1.0"' -Isrc -I. -isystem "$where/deps/include" -g -O1 -o "$where/kd-preflight" \
	"${sources[@]}" build/obj/embed.o "$where/deps/lib/libseccomp.a" "$where/deps/lib/libcjson.a" || exit 1

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

clean() { # STATUS NAME ARG...: one point: that exit status, and nothing to complain about
	local want=$1 name=$2 status=0 log=$scratch/log
	shift 2
	count=$((count + 1))
	timeout 120 valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=all \
		--errors-for-leak-kinds=definite,possible,indirect --track-fds=yes --child-silent-after-fork=yes --log-file="$log" \
		"$where/kd-preflight" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || status=$?
	# valgrind counts what it was started with, too.
	if grep -A 1 'Open file descriptor' "$log" | grep -v '^--' | paste - - | grep -qv 'inherited from parent'; then
		status="$status with a descriptor left open"
	fi
	if [[ $status == "$want" ]]; then
		echo "ok $count - $name"
	else
		sed 's/^/# /' "$log" | head -n 60
		echo "not ok $count - $name: exit status $status, wanted $want"
	fi
}

# The sandbox cannot be put up by a child of valgrind, whose address space is not the kernel's; it is that child's alone.
export PYTHONPATH=$PWD/tests/stubs TMPDIR=$scratch KD_PREFLIGHT_SANDBOX=off
python=/usr/bin/python3
clean 0 'a native check of the CPU that passes' --device cpu --framework none --output "$scratch/reports/"
clean 0 'a check with PyTorch that passes' --framework torch --python "$python" --host-check --output "$scratch/reports/"
clean 0 'a pass that becomes the workload' --python "$python" --output "$scratch/reports/" -- /bin/true
KD_STUB=zeros clean 8 'wrong numbers' --framework torch --python "$python" --output "$scratch/reports/"
KD_STUB=garbage clean 11 'a worker that writes garbage' --framework torch --python "$python" --verbose
KD_STUB=hang-import clean 10 'a worker that hangs' --timeout 5 --framework torch --python "$python"
clean 12 'a report that exists' --device cpu --output "$scratch"/reports/../err
clean 2 'a usage error' --timeout 4 --nonsense
clean 2 'a lone dash' -
clean 127 'no such workload' -- /nowhere/program
clean 0 'help' --help
clean 0 'the list of codes' --list-codes
clean 8 'a summary' --summarize "$scratch/reports"
clean 8 'a summary as JSON' --summarize "$scratch/reports" --format json
echo "1..$count"
