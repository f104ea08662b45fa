#!/usr/bin/env bash
# ci/coverage.sh [BATS FILE]...: line coverage of src/*.c. Builds the supervisor and the unit tests below build/coverage
# with gcov's counters, runs the unit tests and the bats files against them (default: a quick subset), and prints per
# cent and lines of each file and of all. COVERAGE_MIN: the least of all that is no failure. Run from the top after
# `make test`, whose libraries, doubles and programs are used.
set -euo pipefail

top=$PWD
where=$top/build/coverage
tree=$where/tree
[[ $# -gt 0 ]] || set -- 10-codes 11-arguments 20-interpreter 30-handover 50-supervisor

flags=(-std=c11 -D_GNU_SOURCE '-DKD_VERSION="0.1.0"' "-I$top/src" "-I$top" -isystem "$where/deps/include" -g -O0)
counting=(--coverage -fprofile-update=atomic -fdata-sections)

rm -rf "$where"
mkdir -p "$where/obj" "$where/unit" "$tree/build"

# A worker is a fork that becomes another program behind a sandbox, where no file can be written: what it counted would
# be lost. So all counters lie in pages of their own, and these are shared with every fork.
cat >"$where/counters.ld" <<-'SCRIPT'
	SECTIONS
	{
		.counters ALIGN(0x1000) : {
			counters_begin = .;
			*(.bss.__gcov0.*)
			. = ALIGN(0x1000);
			counters_end = .;
		}
	}
	INSERT AFTER .data;
SCRIPT
cat >"$where/share.c" <<-'SOURCE'
	#include <stdlib.h>
	#include <sys/mman.h>
	extern char counters_begin[], counters_end[];
	__attribute__((constructor)) static void share(void)
	{
		if (mmap(counters_begin, (size_t)(counters_end - counters_begin), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
			abort();
	}
SOURCE
ci/libs.sh build/deps/src "$where/deps" gcc -O1 -w -std=gnu11
libs=("$where/deps/lib/libseccomp.a" "$where/deps/lib/libcjson.a")

gcc -O1 -c -o "$where/share.o" "$where/share.c"
for source in src/*.c; do
	gcc "${flags[@]}" "${counting[@]}" -c -o "$where/obj/$(basename "$source" .c).o" "$top/$source"
done
link=(gcc -static --coverage "-Wl,-T,$where/counters.ld" "$where/share.o")
mapfile -t objects < <(printf '%s\n' "$where"/obj/*.o | grep -v '/main\.o$')
ar Dcr "$where/libkd.a" "${objects[@]}" build/obj/embed.o
"${link[@]}" -o "$tree/build/kd-preflight" "$where/obj/main.o" "$where/libkd.a" "${libs[@]}"

# The tests find the program beside their own folder.
cp -r tests "$tree/tests"
for folder in src README.md SECURITY.md Makefile; do
	[[ ! -e $folder ]] || ln -s "$top/$folder" "$tree/$folder"
done
for folder in doubles programs python kernels obj kd-probe; do
	[[ ! -e build/$folder ]] || ln -s "$top/build/$folder" "$tree/build/$folder"
done

report_failures() { # NAME TAP STATUS
	[[ $3 -eq 0 ]] || echo "$1: $(grep -c '^not ok' "$2" || true) failed with counters on (exit status $3)"
}

for test in tests/unit/test_*.c; do
	[[ $test != */test_doubles.c ]] || continue
	program=$where/unit/$(basename "$test" .c) status=0
	gcc "${flags[@]}" -c -o "$program.o" "$test"
	"${link[@]}" -o "$program" "$program.o" "$where/libkd.a" "${libs[@]}"
	timeout 300 "$program" >"$program.tap" 2>&1 </dev/null || status=$?
	report_failures "$(basename "$test")" "$program.tap" "$status"
done
for test; do
	tap=$where/$test.tap status=0
	timeout 600 bats --tap "$tree/tests/$test.bats" >"$tap" 2>&1 </dev/null || status=$?
	report_failures "$test.bats" "$tap" "$status"
done

cd "$where/obj"
gcov --no-output ./*.gcda 2>/dev/null | awk -v top="$top/src/" -v least="${COVERAGE_MIN:-0}" '
	/^File / { file = substr($0, 7, length($0) - 7); next }
	/^Lines executed/ && index(file, top) == 1 && file ~ /\.c$/ {
		sub(/^Lines executed:/, "")
		split($0, part, "% of ")
		printf "%6.2f %%  of %4d  %s\n", part[1], part[2], substr(file, length(top) + 1)
		all += part[2]
		hit += part[2] * part[1] / 100
		file = ""
	}
	END {
		if (!all)
			exit 1
		printf "%6.2f %%  of %4d  src/*.c\n", 100 * hit / all, all
		exit 100 * hit / all < least
	}'
