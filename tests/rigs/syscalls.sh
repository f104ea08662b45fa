#!/usr/bin/env bash
# tests/rigs/syscalls.sh [PYTHON]... : which system calls do real parts make, and does the allow-list hold them? Each worker
# runs without the sandbox under strace; the calls that the policy does not allow are printed with what came of them, and
# the same check must pass or fail alike inside the sandbox. A target beside CI's (`make syscalls`): PyTorch from Debian,
# further interpreters given as arguments, the CUDA libraries of `make real-drivers` where they are there.
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
kd=$top/build/kd-preflight
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# As root an NVIDIA library makes device nodes where there are none; not on this machine.
# shellcheck disable=SC2016 # the inner shell's own
[[ -n ${IN_PRIVATE_DEV-} || $EUID -ne 0 ]] || IN_PRIVATE_DEV=1 exec unshare --mount sh -c '
	mkdir "$0/dev" && mount --bind /dev "$0/dev" && mount -t tmpfs none /dev && cp -a "$0"/dev/null "$0"/dev/zero "$0"/dev/full \
		"$0"/dev/random "$0"/dev/urandom "$0"/dev/tty /dev/ && mkdir /dev/shm && umount "$0/dev" && rmdir "$0/dev" "$0" && exec "$@"' \
	"$scratch" "$0" "$@"
# shellcheck disable=SC2016 # the backticks are Markdown
"$top/build/programs/sandbox-attacker" --policy | awk -F'|' '$3 ~ /allow/ { print $6 }' | grep -oE '`[a-z0-9_]+`' | tr -d '`' |
	sort -u >"$scratch/allowed"

failed=0
compare() { # NAME COMMAND...: the worker of a check
	local name=$1 inside=0 outside=0
	shift
	"$@" --sandbox require >"$scratch/in.json" 2>/dev/null || inside=$?
	strace -ff -qq -o "$scratch/trace" "$@" --sandbox off >"$scratch/out.json" 2>/dev/null || outside=$?
	# The supervisor's own trace is the one that forks the workers.
	grep -L 'PR_SET_PDEATHSIG' "$scratch"/trace.* | xargs rm -f
	# What a forked child does before it becomes the worker is ours, not the worker's.
	for trace in "$scratch"/trace.*; do
		sed -n '/^execveat(/,$p' "$trace"
	done | sed -n 's/^\([a-z0-9_]*\)(.*/\1/p' | sort | uniq -c | awk '{ print $2, $1 }' | sort >"$scratch/made"
	printf '%-34s exit %s inside, %s outside; %s kinds of call, not allowed:' "$name" "$inside" "$outside" \
		"$(wc -l <"$scratch/made")"
	join -v 1 "$scratch/made" "$scratch/allowed" | awk '{ printf " %s(%s)", $1, $2 } END { print "" }'
	[[ $inside -eq $outside ]] || failed=1
	rm -f "$scratch"/trace.*
}

compare 'native, CPU' "$kd" --device cpu --framework none
for python in /usr/bin/python3 "$@"; do
	compare "PyTorch on the CPU, $("$python" -c 'import torch; print(torch.__version__)')" "$kd" --device cpu --python "$python"
	compare 'the same in GPU mode' "$kd" --python "$python"
done
for library in "$top"/build/rigs/real/*/lib/libcuda.so.*.*; do
	[[ -e $library ]] || continue
	compare "native, ${library##*/}" env LD_LIBRARY_PATH="${library%/*}" "$kd" --framework none
done
exit "$failed"
