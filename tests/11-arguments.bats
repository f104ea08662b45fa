#!/usr/bin/env bats
# The command line and the environment, through the real program. The option table itself: tests/unit/test_options.c.

load helper

@test "bad input: exit 2, one line that names it and the accepted range" {
	local words want failures=0
	while IFS='|' read -r words want; do
		local -a arguments=()
		read -ra arguments <<<"$words"
		arguments=("${arguments[@]/#EMPTY/}")
		kd "${arguments[@]}" || true
		if ! is 2 "$status" "$words" || ! is 1 "$(wc -l <err)" lines || ! grep -qF -- "$want" err || ! grep -q USAGE_ERROR err; then
			echo "row: $words: wanted $want"; cat err; failures=$((failures + 1))
		fi
		if [[ $words != *workload* ]]; then
			valid && is '"USAGE_ERROR"' "$(value code)" code && is '"arguments"' "$(value stage)" stage || failures=$((failures + 1))
		fi
	done <<-ROWS
		--bogus|--bogus
		--timeout 4|from 5 to 120
		--timeout 121|from 5 to 120
		--timeout abc|from 5 to 120
		--timeout EMPTY|from 5 to 120
		--output EMPTY|--output
		--device EMPTY|gpu or cpu
		--device-index -1|from 0 to 65535, or all
		--device-index 99999999999|from 0 to 65535, or all
		--|PROGRAM must follow
		--device cpu -- $T/workload|--device cpu
		--device cpu --host-check|--host-check
	ROWS
	is 0 "$failures" failures
	not_started
}

@test "an unknown KD_PREFLIGHT_ variable is named" {
	KD_PREFLIGHT_TIMEOUTS=5 kd --device cpu --framework none
	expect 2 USAGE_ERROR arguments
	grep -q KD_PREFLIGHT_TIMEOUTS err
}

@test "a Kubernetes Service's variables and KD_PREFLIGHT_VERSION change nothing" {
	export KD_PREFLIGHT_SERVICE_HOST=10.0.0.7 KD_PREFLIGHT_SERVICE_PORT=80 KD_PREFLIGHT_SERVICE_PORT_HTTP=80
	export KD_PREFLIGHT_PORT=tcp://10.0.0.7:80 KD_PREFLIGHT_PORT_80_TCP=tcp://10.0.0.7:80 KD_PREFLIGHT_VERSION=1.2
	kd --device cpu --framework none
	expect 0 CPU_CHECK_PASSED complete
	"$TOP/tests/validate-report" --forbid 10.0.0.7 out
}

@test "no variable makes the program print and exit 0 unchecked" {
	local name
	for name in HELP VERSION LIST_CODES SUMMARIZE; do
		status=0
		env "KD_PREFLIGHT_$name=1" "$KD" -- "$T/workload" >out 2>err || status=$?
		[[ $name == VERSION ]] && is 5 "$status" "$name" || is 2 "$status" "$name"
		[[ ! -s out ]]
	done
	not_started
}

@test "--help, --version and --list-codes print and exit 0, whatever the environment; a full disk is told" {
	local action
	for action in help version list-codes; do
		KD_PREFLIGHT_BOGUS=1 kd "--$action"
		is 0 "$status" "$action"
		[[ -s out && ! -s err ]]
		status=0
		"$KD" "--$action" >/dev/full 2>err || status=$?
		is 12 "$status" "$action on a full disk"
	done
	kd --version
	grep -qxE 'kd-preflight [0-9]+\.[0-9]+\.[0-9]+' out
}

@test "every option of --help has its twin, and the twin works" {
	kd --help
	local name value
	while read -r name value; do
		case $name in help | version | list-codes | summarize) continue ;; esac
		case $value in
		'gpu|cpu') value=cpu ;; 'N|all' | N) continue ;; SECONDS) value=7 ;; PATH) value=$T/new.json ;; 'PATH|none') value=none ;;
		'auto|torch|none') value=none ;; 'require|'*) value=best-effort ;; 'text|json') value=json ;; 'en|'*) value=fr ;; *) value=0 ;;
		esac
		[[ $name != python ]] || value=$PYTHON
		name=KD_PREFLIGHT_$(tr a-z- A-Z_ <<<"$name")
		rm -f new.json
		status=0
		env KD_PREFLIGHT_DEVICE=cpu KD_PREFLIGHT_FRAMEWORK=none "$name=$value" "$KD" >out 2>err || status=$?
		is 0 "$status" "$name=$value"
	done < <(sed -n 's/^  --\([a-z-]*\) *\([^ ]*\).*/\1 \2/p' out)
}

@test "the language: option, variable, locale; codes, stages, keys and ids stay" {
	kd --device cpu --framework none --lang de
	grep -q 'nächster Schritt: .*CUDA oder ROCm' err
	grep -q 'next_action.*CUDA oder ROCm' out
	is '"CPU_CHECK_PASSED"' "$(value code)"
	LANG=es_ES.UTF-8 kd --device cpu --framework none
	grep -q 'siguiente paso' err
	LC_ALL=C LANG=es_ES.UTF-8 kd --device cpu --framework none
	grep -q 'next:' err
	LC_ALL=fr_FR.UTF-8 KD_PREFLIGHT_LANG=pt kd --device cpu --framework none
	grep -q 'próximo passo' err
	valid
}

@test "--format json: one line, on stdout without PROGRAM and on stderr with it; no human lines" {
	kd --device cpu --framework none --format json
	expect 0 CPU_CHECK_PASSED complete
	is 1 "$(wc -l <out)" lines
	[[ ! -s err ]]
	kd --format json -- "$T/workload"
	is 5 "$status"
	[[ ! -s out ]]
	is 1 "$(wc -l <err)" lines
	valid err
	not_started
}

@test "colour only on a terminal, and none with NO_COLOR" {
	kd --device cpu --framework none
	refute grep -q $'\033' err
	TERM=xterm script -qec "$KD --device cpu --framework none --termination-log none" tty >/dev/null </dev/null
	grep -q $'\033\\[32m' tty
	NO_COLOR=1 TERM=xterm script -qec "$KD --device cpu --framework none" tty >/dev/null </dev/null
	refute grep -q $'\033' tty
}

@test "--verbose shows what a worker printed, marked, bounded and without control bytes; the report never holds it" {
	export PYTHONPATH=$STUBS KD_STUB=prints
	kd --verbose --output r.json -- "$PYTHON" "$T/none.py"
	grep -q '^| ' err
	[[ $(wc -c <err) -lt 24000 ]]
	LC_ALL=C refute grep -q $'[\001-\010\016-\037]' err
	kd -- "$PYTHON" "$T/none.py"
	refute grep -q '^| ' err
}

@test "closed standard descriptors, a full or stuck stderr: the verdict stays" {
	status=0; "$KD" --device cpu --framework none >&- 2>&- <&- || status=$?
	is 0 "$status" 'all closed'
	status=0; "$KD" --device cpu --framework none >/dev/full 2>/dev/full || status=$?
	is 0 "$status" 'a full disk'
	mkfifo stuck
	sleep 30 3<>stuck & local holder=$!
	head -c 65536 /dev/zero >stuck & wait $!
	status=0; timeout 20 "$KD" --device cpu --framework none 2>stuck >out || status=$?
	kill "$holder"
	is 0 "$status" 'a pipe that nobody reads'
	valid
}
