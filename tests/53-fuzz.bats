#!/usr/bin/env bats
# The fuzzers of tests/fuzz, each from its seeds, all at once, for FUZZ_SECONDS (60) seconds. What they once found is among
# the seeds.

load helper

# start NAME [LENGTH]: in its own folder of $BATS_FILE_TMPDIR, where its exit status appears at the end.
start() {
	local top=$BATS_TEST_DIRNAME/.. seconds=${FUZZ_SECONDS:-60}
	local binary=$top/build/fuzz/$1
	[[ -x $binary ]] || return 0
	mkdir -p "$BATS_FILE_TMPDIR/$1/found" "$BATS_FILE_TMPDIR/$1/corpus"
	(
		cd "$BATS_FILE_TMPDIR/$1" || exit
		timeout $((seconds + 60)) "$binary" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
			-max_len="${2:-4096}" -artifact_prefix=found/ -print_final_stats=1 corpus "$top/tests/fuzz/corpus/$1" >log 2>&1
		echo $? >status
	) 3>&- &
}

setup_file() {
	start result 8192
	start options
	start executable
	start report
	start summarize 8192
	wait
}

fuzz() {
	[[ -x $TOP/build/fuzz/$1 ]] || skip 'the fuzzers are not built (clang with libFuzzer: make fuzz)'
	cd "$BATS_FILE_TMPDIR/$1" || return
	if [[ $(<status) -ne 0 || -n $(ls found) ]]; then
		tail -n 40 log
		base64 found/* || true
		return 1
	fi
	echo "# $1: $(sed -n 's/^stat::number_of_executed_units: *//p' log) runs," \
		"$(grep -c . <(ls corpus)) inputs kept, $(grep -o 'cov: [0-9]*' log | tail -n 1)" >&3
}

@test "the result channel" { fuzz result; }
@test "the command line and its environment" { fuzz options; }
@test "shebangs, ELF headers and the interpreter behind them" { fuzz executable; }
@test "the report writer" { fuzz report; }
@test "the reader of --summarize" { fuzz summarize; }
