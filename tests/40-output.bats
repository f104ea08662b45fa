#!/usr/bin/env bats
# Report files and termination logs, through the real program. The writer itself, over many file systems, forced errors
# and kills at every system call: tests/unit/test_output.c.

load helper

check() { kd --device cpu --framework none "$@"; }

@test "a new file, a directory, a directory to be made: each gets one whole report" {
	check --output one.json
	expect 0 CPU_CHECK_PASSED complete one.json
	cmp one.json out || "$PYTHON" -c 'import json; a, b = json.load(open("one.json")), json.load(open("out")); a["duration_ms"] = b["duration_ms"] = 0; assert a == b'
	mkdir reports
	check --output reports
	check --output reports/
	check --output made/
	is 2 "$(ls reports | wc -l)" 'reports in the directory'
	is 1 "$(ls made | wc -l)"
	valid reports/*.json
	valid made/*.json
	grep -q "report saved as made/kd-preflight-.*\.json" err
	[[ $(stat -c %a one.json) == 644 ]]
}

@test "never over anything that is there: file, link, dangling link, fifo, device" {
	local target
	echo precious >file
	ln -s file link
	ln -s nowhere dangling
	mkfifo fifo
	for target in file link dangling fifo /dev/null /dev/stdout; do
		check --output "$target"
		expect 12 OUTPUT_WRITE_FAILED output
	done
	is precious "$(<file)"
	[[ ! -e nowhere && -L dangling ]]
	# Control: a fresh name in the same place works.
	check --output fresh
	expect 0 CPU_CHECK_PASSED complete fresh
}

@test "an existing target is refused before anything runs" {
	export PYTHONPATH=$STUBS KD_STUB=hang-import
	touch there
	SECONDS=0
	kd --output there --timeout 60 -- "$PYTHON" x.py
	is 12 "$status"
	[[ $SECONDS -lt 5 ]]
}

@test "no directory, no permission, a file as directory, a name too long: 12, with the way out" {
	local target
	touch plain
	for target in missing/report.json plain/report.json "$(printf 'x%.0s' {1..300})"; do
		check --output "$target"
		expect 12 OUTPUT_WRITE_FAILED output
		grep -q 'OUTPUT_WRITE_FAILED (exit 12): unable to' err
	done
	need_root
	mkdir locked && chmod 555 locked && chmod 755 "$T" .
	status=0
	setpriv --reuid 12345 --regid 12345 --clear-groups "$KD" --device cpu --framework none --output locked/r.json >out 2>err || status=$?
	expect 12 OUTPUT_WRITE_FAILED output
	is 0 "$(ls -A locked | wc -l)"
}

@test "a full file system: 12 for a pass, the check's own code for a failure, nothing partial" {
	need_root
	mkdir full
	unshare --mount bash -euc '
		mount -t tmpfs -o size=4k none full
		head -c 4096 /dev/zero >full/ballast
		"$0" --device cpu --framework none --output full/r.json >out 2>err || echo $? >pass-status
		"$0" --output full/r.json -- "$1" >out2 2>err2 || echo $? >fail-status
		ls -A full >left' "$KD" "$T/workload"
	is 12 "$(<pass-status)"
	is '"OUTPUT_WRITE_FAILED"' "$(value code out)"
	has_hint report-not-saved out
	is 5 "$(<fail-status)"
	grep -q 'GPU_BACKEND_ABSENT (exit 5)' err2
	grep -q report-not-saved err2
	is ballast "$(<left)"
	not_started
}

@test "RLIMIT_FSIZE: no SIGXFSZ, no partial file" {
	# So low a limit stops the native program as well (it is written to memory): the pass is the stub PyTorch's.
	export PYTHONPATH=$STUBS
	status=0
	bash -c 'ulimit -f 1; exec "$@"' - "$KD" --python "$PYTHON" --output r.json >/dev/null 2>err || status=$?
	is 12 "$status"
	is '' "$(compgen -G '*json*' || true)"
	grep -q 'OUTPUT_WRITE_FAILED (exit 12)' err
}

@test "two runs into one name: exactly one wins, the other exits 12" {
	local round
	for round in {1..20}; do
		"$KD" --device cpu --framework none --output race.json >a 2>a.err & local first=$!
		"$KD" --device cpu --framework none --output race.json >b 2>b.err & local second=$!
		local one=0 two=0
		wait $first || one=$?
		wait $second || two=$?
		[[ $one$two == 012 || $one$two == 120 ]] || { echo "round $round: $one and $two"; return 1; }
		valid race.json
		rm race.json
	done
	is '' "$(compgen -G '.*.tmp' || true)" 'temporary files'
}

@test "each way of writing: O_TMPFILE without /proc's link, named temporary with link, with rename, the last" {
	need_root
	local without=$TOP/build/programs/without-syscall way
	for way in '' 'linkat=2' 'linkat=1' 'linkat=38'; do
		rm -f r.json
		status=0
		# shellcheck disable=SC2086
		"$without" $way getrandom=38 -- "$KD" --sandbox best-effort --device cpu --framework none --output r.json >out 2>err || status=$?
		is 0 "$status" "$way"
		valid r.json
		status=0
		# shellcheck disable=SC2086
		"$without" $way getrandom=38 -- "$KD" --sandbox best-effort --device cpu --framework none --output r.json >out 2>err || status=$?
		is 12 "$status" "again: $way"
	done
	"$without" linkat=1 renameat2=22 -- "$KD" --sandbox best-effort --device cpu --framework none --output last.json >out 2>err
	valid last.json
	grep -q 'kd-preflight: .*crash' err
	is '' "$(compgen -G '.*.tmp' || true)" 'temporary files'
}

@test "fsync that is not supported is told and saved; one that fails is not saved" {
	need_root
	local without=$TOP/build/programs/without-syscall
	"$without" fsync=22 -- "$KD" --sandbox best-effort --device cpu --framework none --output a.json >out 2>err
	valid a.json
	[[ $(grep -vcE '\[|exit|hint|saved as' err) -ge 1 ]]
	status=0
	"$without" fsync=5 -- "$KD" --sandbox best-effort --device cpu --framework none --output b.json >out 2>err || status=$?
	is 12 "$status"
	[[ ! -e b.json ]]
}

@test "the termination log: one line of JSON where the file exists; not on a pass with PROGRAM; never truncated" {
	export KD_PREFLIGHT_TERMINATION_LOG=$T/log
	touch log
	kd -- "$T/workload"
	is 5 "$status"
	is 1 "$(wc -l <log)"
	"$PYTHON" -c 'import json; d = json.load(open("log")); assert d["code"] == "GPU_BACKEND_ABSENT" and d["exit_code"] == 5 and d["stage"] == "backend", d'
	[[ $(wc -c <log) -le 1024 ]]
	echo 'precious' >log
	kd --timeout 1
	is 'precious' "$(head -n 1 log)"
	is 2 "$(wc -l <log)"
	: >log
	PYTHONPATH=$STUBS kd -- "$PYTHON" -c pass
	is 0 "$status"
	[[ ! -s log ]]
	kd --device cpu --framework none
	is 1 "$(wc -l <log)"
}

@test "a termination log that is missing, read-only, a directory, a link or 'none' changes nothing" {
	local log
	mkdir directory
	touch target && ln -s target link
	for log in "$T/missing" /proc/version directory link none; do
		check --termination-log "$log"
		is 0 "$status" "$log"
	done
	[[ ! -e missing && ! -s target ]]
	mkfifo fifo
	check --termination-log fifo
	is 0 "$status" 'a fifo nobody reads'
}

@test "nothing private in a report: no path, no environment, no host name, no UUID unless asked" {
	export SECRET_TOKEN=s3cr3t-in-the-environment HOME=$T PYTHONPATH=$STUBS KD_STUB=missing-so
	kd --output r.json -- "$PYTHON" "$T/train-s3cr3t.py" argument-s3cr3t
	is 4 "$status"
	"$TOP/tests/validate-report" --forbid s3cr3t --forbid "$T" --forbid "$(uname -n)" --forbid /usr/ r.json
	unset KD_STUB
	LD_LIBRARY_PATH=$TOP/build/doubles/cuda kd --framework none --output d.json
	"$TOP/tests/validate-report" --forbid GPU-d00b d.json
	LD_LIBRARY_PATH=$TOP/build/doubles/cuda kd --framework none --device-uuid --output u.json
	grep -q GPU-d00b u.json
}
