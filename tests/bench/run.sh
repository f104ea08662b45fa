#!/bin/sh
# tests/bench/run.sh [NATIVE_RUNS [TORCH_RUNS [ROUNDS]]]: what a check costs beside the nearest things without it, as ratios (what
# carries over to another machine) of median wall times. The commands take turns in rounds, so that a busy moment of the
# machine falls on all of them.
set -eu

native_runs=${1:-60} torch_runs=${2:-3} rounds=${3:-5}
python=${PYTHON:-/usr/bin/python3}
preflight='build/kd-preflight --termination-log none --device cpu'
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

measure() { # WARMUPS RUNS FILE NAME COMMAND...
	warmups=$1 runs=$2 file=$3
	shift 3
	hyperfine -N --style none --warmup "$warmups" --runs "$runs" --export-json "$file" "$@" 2>/dev/null
}

for round in $(seq "$rounds"); do
	measure 10 "$native_runs" "$scratch/native-$round.json" \
		-n 'static no-op' build/noop \
		-n 'kd-preflight --device cpu --framework none' "$preflight --framework none" \
		-n 'python3 -c pass' "$python -c pass"
	measure 1 "$torch_runs" "$scratch/torch-$round.json" \
		-n 'Python script, same check (tests/bench/check.py)' "$python tests/bench/check.py" \
		-n 'kd-preflight --device cpu' "$preflight --python $python"
done

# A fleet's folder: 10,000 reports, one in a hundred of another kind.
build/kd-preflight --device cpu --framework none --output "$scratch/pass.json" >/dev/null 2>&1
build/kd-preflight --output "$scratch/fail.json" -- build/noop 2>/dev/null || true
mkdir "$scratch/fleet"
"$python" - "$scratch" <<'EOF'
import pathlib, sys
scratch = pathlib.Path(sys.argv[1])
texts = [(scratch / name).read_bytes() for name in ("pass.json", "fail.json")]
for number in range(10000):
    (scratch / "fleet" / f"node-{number:05}.json").write_bytes(texts[number % 100 == 0])
EOF
measure 1 5 "$scratch/fleet.json" -i -n 'kd-preflight --summarize, 10,000 reports' "build/kd-preflight --summarize $scratch/fleet"

echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sort -u | head -n 1), $(nproc) cores, Linux $(uname -r)," \
	"$("$python" -V), PyTorch $("$python" -c 'import torch; print(torch.__version__)')"
"$python" - "$scratch" <<'EOF'
import collections, json, pathlib, statistics, sys

medians = {}
for kind in "native", "torch":
    times = collections.defaultdict(list)
    for file in pathlib.Path(sys.argv[1]).glob(kind + "-*.json"):
        for result in json.loads(file.read_text())["results"]:
            times[result["command"]] += result["times"]
    medians[kind] = [(name, statistics.median(values) * 1000) for name, values in times.items()]
    base = medians[kind][0][1]
    print(f"\n| {kind} | median | ratio | more |\n|---|---|---|---|")
    for name, ms in medians[kind]:
        print(f"| {name} | {ms:.2f} ms | {ms / base:.2f} | {ms - base:+.2f} ms |")
fleet = json.loads((pathlib.Path(sys.argv[1]) / "fleet.json").read_text())["results"][0]
print(f"\n{fleet['command']}: {fleet['median'] * 1000:.0f} ms")
script, native = medians["torch"][0][1], medians["native"][1][1]
print(f"\nThe native check takes 1/{script / native:.0f} of the script's time.")
EOF
