#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_headers.sh: every gcc and clang of this machine reads the public headers without a warning, alone and
# together, in every standard of C and C++ that it knows and the headers are for. A standard that a compiler does
# not know is left out. What Microsoft's compiler would say is the matter of tests/windows/check_headers.sh.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/checks/check_lib.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
warnings=(-Wall -Wextra -Wpedantic -Wundef -Werror)

# The commands of a kind of compiler ("gcc"), each once, whatever names it has.
compilers() {
    local path
    for path in "/usr/bin/$1" "/usr/bin/$1"-[0-9]*; do
        [ -x "$path" ] && [[ ${path##*-} =~ ^([0-9]+|/usr/bin/.*)$ ]] && echo "$(realpath "$path") $path"
    done | sort -u -k 1,1 | cut -d ' ' -f 2
}

# reads COMPILER LANGUAGE STANDARD HEADER...
reads() {
    local compiler=$1 language=$2 standard=$3
    shift 3
    printf '#include <mha/%s>\n' "$@" >"$scratch/headers"
    printf 'int mha_test_value(void);\nint mha_test_value(void) { return MHA_VERSION_MAJOR; }\n' >>"$scratch/headers"
    "$compiler" -x "$language" -std="$standard" "${warnings[@]}" -fsyntax-only -I"$root/include" "$scratch/headers"
}

knows() {
    "$1" -x "$2" -std="$3" -fsyntax-only - </dev/null 2>/dev/null
}

# The control: what has no place in a header for C99 is refused.
refuses() {
    printf 'int mha_test_value(void) { return ({ 1; }); }\n' >"$scratch/headers"
    ! "$1" -x c -std=c99 "${warnings[@]}" -fsyntax-only "$scratch/headers"
}

count=0
for kind in gcc clang; do
    for compiler in $(compilers $kind); do
        for standard in c99 c11 c17 c2x c23; do
            knows "$compiler" c $standard || continue
            check "$(basename "$compiler") $standard" reads "$compiler" c $standard mha.h mha_model.h
            count=$((count + 1))
        done
        check "$(basename "$compiler") c99, each alone" reads "$compiler" c c99 mha_model.h
        check "$(basename "$compiler") refuses extensions" refuses "$compiler"
    done
done
for kind in g++ clang++; do
    for compiler in $(compilers $kind); do
        for standard in c++98 c++03 c++11 c++14 c++17 c++20 c++23; do
            knows "$compiler" c++ $standard || continue
            check "$(basename "$compiler") $standard" reads "$compiler" c++ $standard mha.h mha_model.h
            count=$((count + 1))
        done
    done
done
check "some compilers and standards ($count)" [ $count -ge 4 ]
finish
