#!/usr/bin/env bats
# The schema and its validator, held against reports that are right and the same reports with one thing wrong.

bats_require_minimum_version 1.5.0

setup_file() {
	export top=$BATS_TEST_DIRNAME/.. work=$BATS_FILE_TMPDIR
	# Reads cases from stdin, "FROM | CODE | PART" a line: the report FROM, changed by CODE, must be refused with PART in
	# the message, or accepted where PART is "ok". One process for all, since importing jsonschema takes its time.
	cat >"$work/cases.py" <<-'PYTHON'
		import copy, importlib.machinery, importlib.util, json, os, sys

		def load(path):
		    loader = importlib.machinery.SourceFileLoader("validate_report", path)
		    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("validate_report", loader))
		    sys.dont_write_bytecode = True
		    loader.exec_module(module)
		    return module

		validate = load(os.environ["top"] + "/tests/validate-report")
		validator = validate.jsonschema.Draft202012Validator(json.loads(validate.SCHEMA.read_text()))
		reports = {name: json.load(open(f"{os.environ['work']}/{name}.json")) for name in ("gpu", "cpu", "failed")}

		def keys(value, place=""):
		    for key, item in value.items():
		        yield place, key
		        if isinstance(item, dict) and key != "timing_ms":
		            yield from keys(item, f"{place}['{key}']")

		def every_key():
		    for place, key in keys(reports["gpu"]):
		        yield "gpu", f"del r{place}['{key}']", f"'{key}' is a required property"
		    for place in {place for place, _ in keys(reports["gpu"])} | {"['hints'][0]", "['driver']['devices'][0]", "['timing_ms']"}:
		        yield "gpu", f"r{place}['extra'] = 1", "'extra' was unexpected"

		def table():
		    for line in sys.stdin:
		        yield [part.strip() for part in line.split(" | ")]

		bad = count = 0
		for name, code, part in every_key() if sys.argv[1:] == ["keys"] else table():
		    r = copy.deepcopy(reports[name])
		    exec(code)
		    found = list(validate.faults(validator, r, []))
		    count += 1
		    if bool(found) == (part == "ok") or (found and not any(part in line for line in found)):
		        bad += 1
		        print(f"{name}, {code}: wanted {part}, got {found}")
		print(f"{count} cases, {bad} bad")
		sys.exit(bad > 0 or count == 0)
	PYTHON
	cat >"$work/gpu.json" <<-'JSON'
		{
		  "status": "passed", "code": "GPU_CHECK_PASSED", "exit_code": 0, "stage": "complete",
		  "next_action": "go on to a small input of the application",
		  "hints": [{"id": "native-disagrees", "text": "see driver; /dev/nvidia-uvm is missing"}],
		  "detail": null, "schema_version": 1, "tool": {"name": "kd-preflight", "version": "0.1.0"},
		  "started_at": "2026-11-30T04:54:48Z", "duration_ms": 812.25,
		  "requested": {"device": "gpu", "device_index": 0, "expect_devices": null, "timeout_s": 30,
		                "framework": "auto", "sandbox": "require"},
		  "runtime": {"python_version": "3.11.2", "python_implementation": "cpython", "system": "Linux",
		              "machine": "x86_64", "libc": "glibc 2.36"},
		  "pytorch": {"version": "2.6.0+cu124", "cuda": "12.4", "hip": null, "backend": "cuda", "gpu_available": true,
		              "visible_device_count": 1, "arch_list": ["sm_80", "sm_90"]},
		  "driver": {"backend": "cuda", "library_origin": "system", "driver_version": "12.4", "runtime_version": null,
		             "visible_device_count": 1,
		             "devices": [{"index": 0, "name": "NVIDIA A / B", "architecture": "8.0",
		                          "memory_total_bytes": 85899345920, "memory_free_bytes": 85000000000,
		                          "code": "GPU_CHECK_PASSED"}]},
		  "execution": {"device": "cuda:0", "by": "torch", "product_verified": true, "gradient_verified": true,
		                "loss": 196},
		  "host_check": {"source": "nvidia-smi", "driver_version": "550.54.15", "memory_total_bytes": [85899345920],
		                 "problem": null},
		  "sandbox": {"mode": "require", "no_new_privs": true, "seccomp": true, "landlock_abi": 7,
		              "writes_confined": true},
		  "timing_ms": {"import": 640.5, "device": 3, "product": 0.25},
		  "workload": {"given": true, "starting": true}
		}
	JSON
	# The same run on the CPU, and one that failed.
	python3 - <<-'PYTHON'
		import json, os

		def write(name, r):
		    json.dump(r, open(f"{os.environ['work']}/{name}.json", "w"))

		def read():
		    return json.load(open(os.environ["work"] + "/gpu.json"))

		r = read()
		r.update(code="CPU_CHECK_PASSED", driver=None, host_check=None, workload={"given": False, "starting": False})
		r["requested"]["device"] = r["execution"]["device"] = "cpu"
		r["pytorch"].update(gpu_available=None, visible_device_count=None)
		write("cpu", r)
		r = read()
		r.update(status="failed", code="GPU_UNAVAILABLE", exit_code=6, stage="device", pytorch=None)
		r["detail"] = {"call": "cuInit", "error_number": 100, "error_name": "CUDA_ERROR_NO_DEVICE", "elapsed_ms": 2}
		r["execution"] = dict.fromkeys(r["execution"]) | {"product_verified": False, "gradient_verified": False}
		r["workload"]["starting"] = False
		write("failed", r)
	PYTHON
}

validate() {
	run --separate-stderr "$top/tests/validate-report" "$@"
}

@test "the reports are right as they are (the control)" {
	validate "$work"/{gpu,cpu,failed}.json
	# shellcheck disable=SC2154 # bats sets stderr
	[ "$status" -eq 0 ] || { echo "$stderr" && false; }
	[ -z "$stderr" ]
	run "$top/tests/validate-report" - <"$work/gpu.json"
	[ "$status" -eq 0 ]
}

@test "every key is needed, and no other is allowed, at every level" {
	python3 "$work/cases.py" keys
	python3 "$work/cases.py" <<-'CASES'
		failed | r['detail']['stack'] = 'x' | 'stack' was unexpected
		failed | r['detail'] = {} | detail
		failed | del r['detail']['elapsed_ms'] | ok
		gpu | del r['timing_ms']['import'] | ok
		gpu | r['driver']['devices'][0]['uuid'] = 'GPU-1' | ok
	CASES
}

@test "status, code, stage and exit status agree" {
	python3 "$work/cases.py" <<-'CASES'
		gpu | r['status'] = 'failed' | code
		gpu | r['exit_code'] = 6 | exit_code
		gpu | r['stage'] = 'device' | stage
		gpu | r['code'] = 'GPU_UNAVAILABLE' | code
		gpu | r['code'] = 'CPU_CHECK_PASSED' | requested
		cpu | r['code'] = 'GPU_CHECK_PASSED' | requested
		failed | r['status'] = 'passed' | code
		failed | r['exit_code'] = 0 | exit_code
		failed | r['exit_code'] = 9 | exit_code
		failed | r['exit_code'] = 256 | exit_code
		failed | r['code'] = 'SOMETHING' | code
		failed | r['stage'] = 'somewhere' | stage
		failed | r['workload']['starting'] = True | starting
		gpu | r['workload']['given'] = False | given
		cpu | r['workload'] = {'given': True, 'starting': False} | given
		gpu | r['execution']['loss'] = 195.99 | loss
		gpu | r['execution']['gradient_verified'] = False | gradient_verified
		failed | r['execution']['by'] = 'torch' | execution
	CASES
}

@test "the CPU mode asks the GPU nothing" {
	python3 "$work/cases.py" <<-'CASES'
		cpu | r['pytorch']['gpu_available'] = False | gpu_available
		cpu | r['pytorch']['visible_device_count'] = 0 | visible_device_count
		cpu | r['driver'] = {'backend': 'cuda', 'library_origin': None, 'driver_version': None, 'runtime_version': None, 'visible_device_count': None, 'devices': []} | driver
	CASES
}

@test "types and nulls" {
	python3 "$work/cases.py" <<-'CASES'
		gpu | r['duration_ms'] = '812' | duration_ms
		gpu | r['duration_ms'] = None | duration_ms
		gpu | r['duration_ms'] = -1 | duration_ms
		gpu | r['hints'] = None | hints
		gpu | r['hints'][0]['id'] = 'Not An Id' | hints.0.id
		gpu | r['runtime'] = None | runtime
		gpu | r['runtime']['libc'] = '' | runtime.libc
		gpu | r['sandbox']['landlock_abi'] = -1 | landlock_abi
		gpu | r['sandbox']['seccomp'] = 'yes' | seccomp
		gpu | r['requested']['timeout_s'] = 121 | timeout_s
		gpu | r['requested']['device_index'] = 'some' | device_index
		gpu | r['driver']['library_origin'] = 'elsewhere' | library_origin
		gpu | r['execution']['device'] = 'gpu0' | device
		gpu | r['started_at'] = '2026-11-30 04:54:48' | started_at
		gpu | r['schema_version'] = 2 | schema_version
		failed | r['detail']['signal'] = '11' | signal
		gpu | r['sandbox'].update(no_new_privs=None, seccomp=None, landlock_abi=None, writes_confined=None) | ok
		gpu | r['requested']['device_index'] = 'all'; r['execution'].update(by='native', device='hip:all') | ok
		gpu | r['pytorch'] = r['host_check'] = None | ok
	CASES
}

@test "no string holds a path or a control character" {
	python3 "$work/cases.py" <<-'CASES'
		failed | r['detail']['missing'] = r"""/etc/passwd """ | detail.missing
		gpu | r['hints'][0]['text'] = r"""/etc/passwd """ | hints.0.text
		failed | r['detail']['missing'] = r"""in '/home/u/x' """ | detail.missing
		gpu | r['hints'][0]['text'] = r"""in '/home/u/x' """ | hints.0.text
		failed | r['detail']['missing'] = r"""file=/tmp/x """ | detail.missing
		gpu | r['hints'][0]['text'] = r"""file=/tmp/x """ | hints.0.text
		failed | r['detail']['missing'] = r"""(/opt/x) """ | detail.missing
		gpu | r['hints'][0]['text'] = r"""(/opt/x) """ | hints.0.text
		failed | r['detail']['missing'] = r"""~/x """ | detail.missing
		gpu | r['hints'][0]['text'] = r"""~/x """ | hints.0.text
		failed | r['detail']['missing'] = r"""../x """ | detail.missing
		gpu | r['hints'][0]['text'] = r"""../x """ | hints.0.text
		failed | r['detail']['missing'] = r"""a:/b """ | detail.missing
		gpu | r['hints'][0]['text'] = r"""a:/b """ | hints.0.text
		failed | r['detail']['missing'] = r""""/x" """ | detail.missing
		gpu | r['hints'][0]['text'] = r""""/x" """ | hints.0.text
		failed | r['detail']['missing'] = r"""file:///x """ | detail.missing
		gpu | r['hints'][0]['text'] = r"""file:///x """ | hints.0.text
		failed | r['detail']['call'] = 'CUDA/ROCm' | ok
		failed | r['detail']['call'] = 'and / or' | ok
		failed | r['detail']['call'] = 'n/a' | ok
		failed | r['detail']['call'] = '2.1.0+cu121' | ok
		failed | r['detail']['call'] = 'libcudnn.so.8' | ok
		failed | r['detail']['call'] = '1/2' | ok
		failed | r['detail']['missing'] = '/dev/nvidia0' | detail.missing
		gpu | r['runtime']['libc'] = 'a\x1b[31m' | libc
		gpu | r['hints'][0]['id'] += '\n' | control character
	CASES
}

@test "the order of the keys is part of the contract" {
	python3 "$work/cases.py" <<-'CASES'
		gpu | s = r.pop('status'); r['status'] = s | report: keys in the order code,
		gpu | s = r['sandbox'].pop('mode'); r['sandbox']['mode'] = s | sandbox: keys in the order no_new_privs,
		gpu | d = r['driver']['devices'][0]; s = d.pop('index'); d['index'] = s | driver.devices[0]: keys in the order name,
		failed | r['detail'] = dict(reversed(r['detail'].items())) | detail: keys in the order
		gpu | r['timing_ms'] = dict(reversed(r['timing_ms'].items())) | timing_ms: keys in the order
	CASES
}

@test "forbidden texts are found wherever they stand" {
	validate --forbid hostname.example --forbid A100 "$work/gpu.json"
	[ "$status" -eq 0 ]
	validate --forbid hostname.example --forbid 'NVIDIA A' "$work/gpu.json"
	[ "$status" -eq 1 ]
	[[ $stderr == *"driver.devices[0].name: 'NVIDIA A' must not be in a report"* ]]
	validate --forbid "" "$work/gpu.json"
	[ "$status" -eq 2 ]
}

@test "what is no JSON is no report" {
	local text
	for text in '' '{' '[]' '{"status": NaN}' '{"status": 1, "status": 2}' $'"\xff"' '{} {}'; do
		printf '%s' "$text" >"$BATS_TEST_TMPDIR/bad.json"
		validate "$BATS_TEST_TMPDIR/bad.json"
		[ "$status" -eq 1 ] || { echo "accepted: $text" && false; }
	done
	validate "$BATS_TEST_TMPDIR/missing.json"
	[ "$status" -eq 1 ]
}
