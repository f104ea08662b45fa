#!/usr/bin/env bats
# Contract, --help, README, man page, schema and CHANGELOG say the same as the code.

load helper

MAN=$TOP/src/kd-preflight.1

options() { "$KD" --help | sed -n 's/^  --\([a-z-]*\).*/\1/p' | sort; }
codes() { "$KD" --list-codes | awk '{ print $2 }' | sort; }

@test "options: --help, README and man page name the same" {
	diff <(options) <(sed -n '/^## Options/,/^## Codes/p' "$TOP/README.md" | grep '^|' | grep -oE '`--[a-z-]+' | sed 's/`--//' | sort -u)
	diff <(options) <(grep -oE '^\.B[IR]? *\\-\\-[a-z\\-]+|^\.TP|^\\fB\\-\\-[a-z\\-]+' "$MAN" | sed -n 's/\\-/-/g; s/.*--\([a-z-]*\).*/\1/p' | sort -u)
	is 18 "$(options | wc -l)"
}

@test "codes and exit statuses: --list-codes, README, man page and schema name the same" {
	diff <(codes) <(sed -n '/^## Codes/,/^## /p' "$TOP/README.md" | sed -n 's/^| `\([A-Z_]*\)` .*/\1/p' | sort)
	diff <(codes) <("$PYTHON" -c 'import json,sys; print(*sorted(json.load(open(sys.argv[1]))["$defs"]["code"]["enum"]), sep="\n")' "$TOP/src/report.schema.json")
	local code exit
	while read -r exit code _; do
		grep -qF "| \`$code\` | $exit" "$TOP/README.md" || { echo "README: $code $exit"; return 1; }
		grep -q "$code" "$MAN" || { echo "man page: $code"; return 1; }
	done < <("$KD" --list-codes)
}

@test "stages: the schema and the man page have those of the code" {
	local stage
	for stage in $(sed -n 's/.*\[STAGE_[A-Z]*\] = "\([a-z]*\)".*/\1/p' "$TOP/src/codes.c"); do
		grep -q "\"$stage\"" "$TOP/src/report.schema.json" && grep -q "$stage" "$MAN" || { echo "$stage"; return 1; }
	done
}

@test "hints: every id of the table is in the man page, and the workers give no other" {
	local id
	for id in $(sed -n 's/.*X(HINT_[A-Z_]*, "\([a-z-]*\)").*/\1/p' "$TOP/src/messages.h"); do
		grep -q "${id//-/\\\\-}\|$id" "$MAN" || { echo "man page: $id"; return 1; }
	done
	for id in $(sed -n 's/.*\[HINT_[A-Z_]*\] = "\([a-z-]\+\)".*/\1/p' "$TOP/src/worker/native_hints.c"); do
		grep -q "\"$id\"" "$TOP/src/messages.h" || { echo "not in the table: $id"; return 1; }
	done
}

@test "the man page is clean and names the version" {
	man --warnings -E UTF-8 -l -Tutf8 -Z "$MAN" 2>warnings >/dev/null || true
	[[ ! -s warnings ]] || { cat warnings; return 1; }
	local version
	version=$("$KD" --version | awk '{ print $2 }')
	grep -q "^## $version" "$TOP/CHANGELOG.md"
	grep -q "kd-preflight $version" "$MAN"
}

@test "the policy table of SECURITY.md is the code's" {
	diff <("$TOP/build/programs/sandbox-attacker" --policy | grep '^|') <(sed -n '/^### The list/,/^`\*`/p' "$TOP/SECURITY.md" | grep '^|')
}

@test "the first command of the README does what it says" {
	local command
	command=$(sed -n 's/^ *\(sh ci\/deps\.sh build run .*\)/\1/p' "$TOP/README.md")
	[[ -n $command ]]
	(cd "$TOP" && bash -c "$command" >"$T/out" 2>"$T/err")
	grep -q CPU_CHECK_PASSED out
	grep -q 'loss 196, by torch' err
}

@test "the program is static, small, and holds no path of the machine it was built on" {
	LC_ALL=C readelf -Wld "$KD" >elf
	refute grep -E 'INTERP|\(NEEDED\)' elf
	[[ $(stat -c %s "$KD") -le 409600 ]] || { stat -c %s "$KD"; return 1; }
	refute grep -qaF "$TOP" "$KD"
}
