#!/usr/bin/env bash
# tests/run.sh PRODUCER...: run test files (*.bats, or programs that print TAP, an argument may hold theirs) one after the
# other; show what failed or was skipped, keep the whole TAP in build/tap, and end with one line of counts. Exit 1 when
# anything failed.
set -euo pipefail

mkdir -p build/tap
passed=0 failed=0 skipped=0

for producer; do
	read -ra command <<<"$producer"
	producer=${command[0]}
	tap=build/tap/$(sed 's,^build/,,; s,[/.],-,g' <<<"$producer").tap
	[[ $producer != *.bats ]] || command=(bats --tap --print-output-on-failure "$producer")
	status=0
	timeout --kill-after=10 900 "${command[@]}" >"$tap" 2>&1 </dev/null || status=$?

	# A producer that dies or stops short of its plan has failed, whatever it printed before. One that skips all of its
	# tests counts as one.
	sed -i 's/^1\.\.0 *\(# *[Ss][Kk][Ii][Pp]\)/1..1\nok 1 - all \1/' "$tap"
	points=$(grep -cE '^(not )?ok ' "$tap" || true)
	if ! grep -qx "1\.\.$points" "$tap"; then
		echo "not ok - $producer: no plan that fits (exit status $status, $points tests)" >>"$tap"
	elif [[ $status -ne 0 ]] && ! grep -q '^not ok ' "$tap"; then
		echo "not ok - $producer: exit status $status" >>"$tap"
	fi

	bad=$(grep -c '^not ok ' "$tap" || true)
	skip=$(grep -ciE '^ok .*# skip' "$tap" || true)
	good=$(($(grep -c '^ok ' "$tap" || true) - skip))
	printf '%-34s %4d ok, %d failed, %d skipped\n' "$producer" "$good" "$bad" "$skip"
	grep -iE '^ok .*# skip' "$tap" || true
	# Programs print their diagnostics before a point, bats after it: both belong to what failed.
	[[ $bad -eq 0 ]] || grep -vE '^(ok |1\.\.)' "$tap" | tail -n 60
	passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + skip))
done

echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
