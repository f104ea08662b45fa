#!/usr/bin/env bats
# --host-check: asked beside the check, reported, and never deciding.

load helper


host() { # with a fake nvidia-smi on PATH, over the CUDA double
	mkdir -p bin && cp "$TOP/build/programs/say" bin/nvidia-smi
	PATH=$T/bin:$PATH LD_LIBRARY_PATH=$TOP/build/doubles/cuda kd --framework none --host-check
	expect 0 GPU_CHECK_PASSED complete
}

@test "nvidia-smi: driver version and memory of each card" {
	SAY=$'535.183.01, 81559\n535.183.01, 24576\n' host
	is '"nvidia-smi"' "$(value host_check.source)"
	is '"535.183.01"' "$(value host_check.driver_version)"
	is '[85520809984, 25769803776]' "$(value host_check.memory_total_bytes)"
	is null "$(value host_check.problem)"
}

@test "one that fails, hangs, babbles or is missing is a problem in the report and no more" {
	SAY_EXIT=9 host
	is '"failed"' "$(value host_check.problem)"
	SECONDS=0
	SAY_SLEEP=60 host
	[[ $SECONDS -lt 10 ]]
	is '"timeout"' "$(value host_check.problem)"
	SAY=$'No devices were found\n\033[31m/etc/passwd' host
	is '"unreadable-answer"' "$(value host_check.problem)"
	"$TOP/tests/validate-report" --forbid passwd out
	SAY=$(printf '%070000d' 1) host
	is '"unreadable-answer"' "$(value host_check.problem)"
	LD_LIBRARY_PATH=$TOP/build/doubles/cuda kd --framework none --host-check
	expect 0 GPU_CHECK_PASSED complete
	is '"not-found"' "$(value host_check.problem)"
}

@test "not asked: null" {
	LD_LIBRARY_PATH=$TOP/build/doubles/cuda kd --framework none
	is null "$(value host_check)"
}
