#!/usr/bin/env bats
# The fuzzers of tests/fuzz, each from its seeds, for FUZZ_SECONDS (20) seconds. What they once found is among the seeds.

load helper

fuzz() {
	local binary=$TOP/build/fuzz/$1
	[[ -x $binary ]] || skip 'the fuzzers are not built (clang with libFuzzer: make fuzz)'
	mkdir found corpus
	timeout $((${FUZZ_SECONDS:-20} + 60)) "$binary" -max_total_time="${FUZZ_SECONDS:-20}" -timeout=5 -rss_limit_mb=2048 \
		-max_len="${2:-4096}" -artifact_prefix=found/ -print_final_stats=1 corpus "$TOP/tests/fuzz/corpus/$1" >log 2>&1 ||
		{ tail -n 40 log; base64 found/* || true; return 1; }
	[[ -z $(ls found) ]]
	echo "# $1: $(sed -n 's/^stat::number_of_executed_units: *//p' log) runs," \
		"$(grep -c . <(ls corpus)) inputs kept, $(grep -o 'cov: [0-9]*' log | tail -n 1)" >&3
}

@test "the result channel" { fuzz result 8192; }
@test "the command line and its environment" { fuzz options; }
@test "shebangs, ELF headers and the interpreter behind them" { fuzz executable; }
@test "the report writer" { fuzz report; }
@test "the reader of --summarize" { fuzz summarize 8192; }
