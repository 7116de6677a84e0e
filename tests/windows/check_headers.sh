#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_headers.sh: the public headers, but that of libmha_mpi, have nothing that only gcc and clang know. clang reads them as for
# the compiler of Microsoft, in C and C++, with every warning about extensions as an error. The standard
# headers are clang's own; those of Microsoft are not needed, since ours need little of them.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/checks/check_lib.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# reads LANGUAGE [LINE...]: a file of these lines, after the headers.
reads() {
    local language=$1
    shift
    {
        printf '#include <mha/mha.h>\n#include <mha/mha_model.h>\n'
        [ $# -eq 0 ] || printf '%s\n' "$@"
    } >"$scratch/headers"
    clang --target=x86_64-pc-windows-msvc -fms-extensions -fms-compatibility -fsyntax-only -ffreestanding \
        -nostdlibinc -I"$root/include" -Wall -Wextra -Wpedantic -Wgnu -Wvla -Werror -x "${language%-*}" \
        -std="${language#*-}" "$scratch/headers"
}

# The control: what only gcc and clang know is refused.
refuses() {
    ! reads "$@"
}

if ! command -v clang >/dev/null; then
    echo "skip headers: no clang"
    echo "check_headers: 0 passed, 0 failed, 1 skipped"
    exit 0
fi
for language in c-c11 c-c17 c++-c++14 c++-c++20; do
    check "headers_as_$language" reads $language
done
check a_program reads c-c11 'int f(void) { mha_options o = {0}; o.size = sizeof o; return mha_version() + (int)o.size; }'
check extensions_are_refused refuses c-c11 'int g(int n) { return ({ n + 1; }); }'
finish
