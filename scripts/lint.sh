#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# lint.sh: clang-format, clang-tidy, cppcheck and gcc -fanalyzer, warnings as errors. The last line
# counts what passed, failed and was skipped.
# lint.sh --format: rewrite the files in the style of .clang-format instead.
set -u
cd "$(dirname "$0")/.."
if command -v ninja >/dev/null; then
    export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}
fi

mapfile -t files < <(find include src python/src tests examples -name '*.[ch]' -o -name '*.inc' | sort)
if [ "${1:-}" = --format ]; then
    exec clang-format -i "${files[@]}"
fi

passed=0
failed=0
skipped=0

# step NAME COMMAND...
step() {
    local name=$1
    shift
    echo "== $name"
    if "$@"; then
        passed=$((passed + 1))
    else
        echo "FAIL $name"
        failed=$((failed + 1))
    fi
}

skip() {
    echo "skip $1: $2"
    skipped=$((skipped + 1))
}

# The folder of Python.h; empty if there is none that is new enough for python/src.
python_headers() {
    python3 -c 'import pathlib, sys, sysconfig
folder = pathlib.Path(sysconfig.get_path("include"))
if sys.version_info >= (3, 11) and (folder / "Python.h").exists(): print(folder)' 2>/dev/null
}

headers=$(python_headers)
python_flags=(-std=gnu11 -DPy_LIMITED_API=0x030B0000 -Iinclude -isystem "$headers")
folders=(-Iinclude -Isrc)

tidy() {
    cmake -S . -B build/lint -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=clang \
        -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null &&
        find src tests examples -name '*.c' ! -name "*_neon*.c" ! -name '*_wasm.c' \
            ! -path 'tests/consumer/*' |
        sort | xargs -P 2 -n 1 clang-tidy --quiet -p build/lint 2>/dev/null
}

tidy_python() {
    printf '%s\n' python/src/*.c |
        xargs -P 2 -I FILE clang-tidy --quiet FILE -- "${python_flags[@]}" 2>/dev/null
}

cpp_check() {
    cppcheck --quiet -j 2 --error-exitcode=1 --inline-suppr --std=c11 -U__clang_analyzer__ \
        --enable=warning,performance,portability --suppressions-list=.cppcheck "$@"
}

# Without the kernels and row_math.c: gcc's analyzer treats GNU vectors as scalars.
analyzer() {
    printf '%s\n' src/*/*.c |
        grep -v row_math | xargs -P 2 -n 1 gcc -std=gnu11 -O2 -Wall -Wextra -Werror -fanalyzer "${folders[@]}" \
            -c -o /dev/null
}

analyzer_python() {
    printf '%s\n' python/src/*.c |
        xargs -P 2 -n 1 gcc -O2 -Wall -Wextra -Werror -fanalyzer "${python_flags[@]}" \
            -c -o /dev/null
}

step format clang-format --dry-run --Werror "${files[@]}"
step tidy tidy
step cppcheck cpp_check "${folders[@]}" -Itests src tests examples
# Without Python's headers, which it would check too; it must be told which functions return.
step "cppcheck python" cpp_check -Iinclude "-DPy_RETURN_NONE=return Py_None" python/src
step analyzer analyzer
if [ -n "$headers" ]; then
    step "tidy python" tidy_python
    step "analyzer python" analyzer_python
else
    skip python "no headers of Python 3.11 or later"
fi
echo "lint: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
