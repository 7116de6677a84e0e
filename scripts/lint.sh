#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# lint.sh: clang-format, clang-tidy, cppcheck and gcc -fanalyzer, warnings as errors.
# lint.sh --format: rewrite the files in the house style instead.
set -u
cd "$(dirname "$0")/.."
if command -v ninja >/dev/null; then
    export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}
fi

mapfile -t files < <(find include src python/src tests examples -name '*.[ch]' -o -name '*.inc' | sort)
if [ "${1:-}" = --format ]; then
    exec clang-format -i "${files[@]}"
fi

status=0
step() {
    local name=$1
    shift
    echo "== $name"
    "$@" || { echo "FAIL $name"; status=1; }
}

# Not the kernels: gcc's analyzer takes GNU vectors for scalars.
analyzer() {
    printf '%s\n' src/core/*.c src/format/*.c src/model/*.c src/heads/*.c src/cli/*.c |
        xargs -P 2 -n 1 gcc -std=gnu11 -O2 -Wall -Wextra \
        -Werror -fanalyzer -Iinclude -Isrc/core -Isrc/core/kernels -Isrc/cli \
        -Isrc/format -Isrc/model -Isrc/heads -c -o /dev/null
}

tidy() {
    cmake -S . -B build/lint -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=clang \
        -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null &&
        find src tests examples -name '*.c' ! -name kernels_neon.c ! -path 'tests/consumer/*' |
        sort | xargs -P 2 -n 1 clang-tidy --quiet -p build/lint 2>/dev/null
}

cpp_check() {
    cppcheck --quiet -j 2 --error-exitcode=1 --inline-suppr --std=c11 -Iinclude -Isrc/core \
        -Isrc/core/kernels -Isrc/cli -Isrc/format -Isrc/model -Isrc/heads -Itests \
        --enable=warning,performance,portability \
        --suppressions-list=.cppcheck src tests examples
}

step format clang-format --dry-run --Werror "${files[@]}"
step tidy tidy
step cppcheck cpp_check
step analyzer analyzer
exit $status
