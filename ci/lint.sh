#!/usr/bin/env bash
# ci/lint.sh: checks of the source tree, as TAP. Run from the top by `make lint`, which builds the headers that are made.
set -uo pipefail

mapfile -t files < <(git ls-files --cached --others --exclude-standard 2>/dev/null || find . -name .git -prune -o \
	-path ./build -prune -o -type f -printf '%P\n')
matching() { printf '%s\n' "${files[@]}" | grep -E "$1"; }
mapfile -t sources < <(matching '^src/[^/]*\.c$')
mapfile -t workers < <(matching '^src/worker/.*\.c$')
mapfile -t unit < <(matching '^tests/unit/.*\.c$')
mapfile -t headers < <(matching '^(src|tests)/.*\.h$')
mapfile -t formatted < <(matching '^(src|tests|kernels)/.*\.[ch]$')
mapfile -t scripts < <(matching '\.sh$|^\.ci/run$')
mapfile -t suites < <(matching '\.(bats|bash)$')

flags=(-std=c11 -D_GNU_SOURCE '-DKD_VERSION="0"' -Isrc -I. -Ikernels -Ibuild/kernels -isystem build/deps/include)
count=0

check() { # NAME COMMAND...: one point
	local name=$1 output
	shift
	count=$((count + 1))
	if output=$("$@" 2>&1); then
		echo "ok $count - $name"
	else
		head -n 40 <<<"$output" | sed 's/^/# /'
		echo "not ok $count - $name"
	fi
}

in_parallel() { # COMMAND... -- FILE...: the command with each file
	local command=()
	while [[ $1 != -- ]]; do
		command+=("$1")
		shift
	done
	shift
	printf '%s\0' "$@" | xargs -0 -r -n 1 -P "$(nproc)" "${command[@]}"
}

compiles() { # COMPILER FILE...
	local compiler=$1
	shift
	in_parallel "$compiler" "${flags[@]}" -O2 -Wall -Wextra -Wshadow -Wconversion -Wformat=2 -Wstrict-prototypes \
		-Wmissing-prototypes -Wvla -Wundef -Werror -c -o /dev/null -- "$@"
}

headers_alone() {
	in_parallel gcc "${flags[@]}" -Wall -Wextra -Werror -Wno-unused-function -Wno-unused-variable -fsyntax-only -x c -- "$@"
}

tidy() { # clang-tidy wants its compiler flags last, and counts the warnings that it hides
	printf '%s\0' "$@" | xargs -0 -r -P "$(nproc)" -I '{}' clang-tidy --quiet '{}' -- "${flags[@]}" 2>&1 |
		sed '/ warnings* generated\.$/d'
}

# Brackets keep the patterns from finding themselves.
no_place_names() {
	! grep -nIE -e '(debia[n]|ubunt[u]|pyp[i]|pythonhoste[d]|npmj[s]|crate[s])\.(org|com|io)' -e '(^|[^[:alnum:]_}])(/wor[k]/|/roo[t]/)' \
		-e "(^|[^[:alnum:]._/-])$PWD/" -- "${files[@]}"
}

python_3_8() {
	local file
	for file in $(matching '^src/worker/.*\.py$'); do
		python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), feature_version=(3, 8))' "$file" || return 1
	done
}

check 'gcc has no warnings' compiles gcc "${sources[@]}" "${workers[@]}" "${unit[@]}"
check 'clang has no warnings' compiles clang "${sources[@]}" "${workers[@]}" "${unit[@]}"
check 'musl-gcc has no warnings' compiles musl-gcc "${sources[@]}" "${unit[@]}"
check 'each header compiles alone' headers_alone "${headers[@]}"
check 'clang-tidy' tidy "${sources[@]}" "${workers[@]}"
# comparePointers: the ends of embed.h are labels of one assembler file, which cppcheck takes for two objects.
check 'cppcheck' cppcheck --quiet --error-exitcode=1 --enable=warning,performance,portability --inline-suppr \
	--suppress=missingIncludeSystem --suppress=comparePointers --std=c11 -D_GNU_SOURCE "-D__$(uname -m)__" \
	'-DKD_VERSION="0"' -Isrc "${sources[@]}" "${workers[@]}"
check 'clang-format' clang-format --dry-run --Werror "${formatted[@]}"
check 'shellcheck' shellcheck "${scripts[@]}"
# In a suite each test is a subshell by itself, which is all that the lower severities have to say.
check 'shellcheck of the suites' shellcheck --external-sources --severity=warning "${suites[@]}"
check 'the Python worker parses as Python 3.8' python_3_8
check 'no registry host and no path of this machine' no_place_names
echo "1..$count"
