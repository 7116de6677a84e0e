#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check_library.sh BUILD: the shared library has the functions of the header, all of them; it needs
# libc and nothing else; its baseline files run on any CPU of the family. For release builds.
set -u
build=$1
root=$(dirname "$0")/../..
. "$root/tests/checks/check_lib.sh"
library=$build/libmha.so

exported() {
    nm -D --defined-only --format=posix "$library" | awk '$2 != "A" { sub(/@.*/, "", $1); print $1 }'
}

declared() {
    sed -n 's/^MHA_API .*[ *]\(mha_[a-z0-9_]*\)(.*/\1/p' "$root/include/mha/mha.h"
}

exports_are_the_header() {
    diff <(declared | sort) <(exported | sort)
}

needs_libc_only() {
    ! readelf -d "$library" | grep NEEDED | grep -vE '\[(libc|libm|libpthread|ld-linux.*)\.so\.[0-9]+\]'
}

soname_is_the_major_version() {
    readelf -d "$library" | grep -q 'SONAME.*\[libmha\.so\.0\]'
}

has_no_executable_stack() {
    readelf -lW "$library" | grep GNU_STACK | grep -q 'RW '
}

# Vector registers beyond the baseline may be used behind the dispatch only.
baseline_has_no_avx() {
    ! objdump -d "$build/libmha.a" | awk '
        /file format/ { file = $1 }
        /%[yz]mm|%k[1-7]/ && file !~ /kernels_avx/ { found[file]++ }
        END { for (file in found) print file, found[file] }' | grep .
}

check exports_are_the_header exports_are_the_header
check needs_libc_only needs_libc_only
check soname_is_the_major_version soname_is_the_major_version
check has_no_executable_stack has_no_executable_stack
check baseline_has_no_avx baseline_has_no_avx
finish
