#!/bin/sh
# tests/bench/run.sh [NATIVE_RUNS [TORCH_RUNS]]: what a check costs beside the nearest things without it, measured in one
# run each and printed as ratios (medians of wall time; the ratio is what carries over to another machine).
set -eu

native_runs=${1:-300} torch_runs=${2:-15}
python=${PYTHON:-/usr/bin/python3}
preflight='build/kd-preflight --termination-log none --device cpu'
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

table() { # REFERENCE CSV: the rows of a hyperfine export, against the one called REFERENCE
	awk -F, -v reference="$1" '
		NR > 1 { name[NR] = $1; median[NR] = $6; if ($1 == reference) base = $6 }
		END { for (i = 2; i <= NR; i++)
			printf "| %s | %.2f ms | %.2f |\n", name[i], median[i] * 1000, median[i] / base }' "$2"
}

echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sort -u | head -n 1), $(nproc) cores, Linux $(uname -r)," \
	"$("$python" -V), PyTorch $("$python" -c 'import torch; print(torch.__version__)')"

hyperfine -N --style none --warmup 20 --runs "$native_runs" --export-csv "$scratch/native.csv" \
	-n 'static no-op' build/noop \
	-n 'kd-preflight --device cpu --framework none' "$preflight --framework none" \
	-n 'python3 -c pass' "$python -c pass"
hyperfine -N --style none --warmup 2 --runs "$torch_runs" --export-csv "$scratch/torch.csv" \
	-n 'Python script, same check' "$python tests/bench/check.py" \
	-n 'kd-preflight --device cpu' "$preflight --python $python"

printf '\n| native | median | ratio |\n|---|---|---|\n'
table 'static no-op' "$scratch/native.csv"
printf '\n| with PyTorch | median | ratio |\n|---|---|---|\n'
table 'Python script, same check' "$scratch/torch.csv"
native=$(awk -F, '/framework none/ { print $6 }' "$scratch/native.csv")
awk -F, -v native="$native" '/same check/ { printf "\nThe native check is %.0f times faster than the script.\n", $6 / native }' \
	"$scratch/torch.csv"
