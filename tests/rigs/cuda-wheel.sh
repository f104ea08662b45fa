#!/usr/bin/env bash
# tests/rigs/cuda-wheel.sh [REQUIREMENT [DIR]]: PyTorch's own CUDA wheel, in a virtual environment, on a machine without a
# card (several GB to fetch: a target beside CI's, `make cuda-wheel`). GPU mode must say GPU_UNAVAILABLE, CPU mode must
# pass without asking for a GPU, and the sandbox must change neither.
set -euo pipefail

requirement=${1:-torch} dir=${2:-build/cuda-wheel}
top=$(cd "$(dirname "$0")/../.." && pwd)
kd=$top/build/kd-preflight
python=$dir/bin/python

[[ -x $python ]] || python3 -m venv "$dir"
"$python" -c 'import torch' 2>/dev/null || "$python" -m pip install --quiet --no-cache-dir "$requirement"

failed=0
row() { # WANTED-STATUS WANTED-CODE ARGUMENT...
	local want=$1 code=$2 status=0
	shift 2
	"$kd" --format json --timeout 120 --termination-log none "$@" >"$dir/report.json" 2>"$dir/stderr" </dev/null || status=$?
	[[ -s $dir/report.json ]] || cp "$dir/stderr" "$dir/report.json"
	"$top/tests/validate-report" "$dir/report.json" || failed=1
	python3 - "$dir/report.json" "$@" <<-'E'
		import json, sys
		r = json.load(open(sys.argv[1]))
		t = r["pytorch"] or {}
		print(r["exit_code"], r["code"], r["stage"], "torch", t.get("version"), "cuda", t.get("cuda"), "gpu_available", t.get("gpu_available"),
		      "import_ms", r["timing_ms"].get("import"), " ".join(sys.argv[2:]), [h["id"] for h in r["hints"]])
	E
	if [[ $status -ne $want ]] || ! grep -q "\"code\":\"$code\"" "$dir/report.json"; then
		echo "wanted $want $code, got $status"
		failed=1
	fi
}

# Fills the page cache, so that the first import is not the disk's time.
"$python" -c 'import torch; print("torch", torch.__version__)'
for sandbox in require off; do
	row 6 GPU_UNAVAILABLE --sandbox "$sandbox" -- "$python" train.py
	row 0 CPU_CHECK_PASSED --sandbox "$sandbox" --device cpu --python "$python"
done
exit "$failed"
