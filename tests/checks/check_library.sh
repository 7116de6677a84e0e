#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check_library.sh BUILD: each shared library has the functions of its header, all of them; libmha
# needs libc and nothing else, libmha_model the libraries of its README besides; baseline files run on
# any CPU of the family; the static libmha_model defines no other names; MPI is known to libmha_mpi
# alone. For release builds.
set -u
build=$1
root=$(dirname "$0")/../..
. "$root/tests/checks/check_lib.sh"
library=$build/libmha.so

exported() { # LIBRARY
    nm -D --defined-only --format=posix "$1" | awk '$2 != "A" { sub(/@.*/, "", $1); print $1 }'
}

declared() { # HEADER
    sed -n 's/^MHA_API .*[ *]\(mha_[a-z0-9_]*\)(.*/\1/p' "$root/include/mha/$1"
}

exports_are_the_header() { # LIBRARY HEADER
    diff <(declared "$2" | sort) <(exported "$1" | sort)
}

model_needs_few_libraries() {
    ! readelf -d "$build/libmha_model.so" | grep NEEDED |
        grep -vE '\[(libmha|libpcre2-8|libutf8proc|libc|libm|libpthread|ld-linux.*)\.so\.[0-9.]+\]'
}

static_model_defines_its_header() {
    ! nm --defined-only --format=posix "$build/libmha_model.a" |
        awk '$2 ~ /[A-Z]/ && $1 !~ /^mha_/ { print $1 }' | grep .
}

needs_libc_only() {
    ! readelf -d "$library" | grep NEEDED | grep -vE '\[(libc|libm|libpthread|ld-linux.*)\.so\.[0-9.]+\]'
}

# No library of MPI is loaded, and no name of it is used, in the program and both libraries.
knows_no_mpi() {
    local file
    for file in "$build/mha" "$library" "$build/libmha_model.so"; do
        ! readelf -d "$file" | grep -E 'NEEDED.*\[lib(mpi|mpich|open-rte|open-pal|pmpi)' || return
        ! nm -D --undefined-only "$file" | grep -iE ' p?mpi_|mha_mpi_|ompi_' || return
    done
    for file in "$build/libmha.a" "$build/libmha_model.a"; do
        ! nm "$file" 2>/dev/null | grep -iE ' p?mpi_|mha_mpi_|ompi_' || return
    done
}

soname_is_the_interface_version() {
    readelf -d "$library" | grep -q 'SONAME.*\[libmha\.so\.0\.1\]'
}

has_no_executable_stack() {
    readelf -lW "$library" | grep GNU_STACK | grep -q 'RW '
}

# Vector registers beyond the baseline may be used behind the dispatch only.
baseline_has_no_avx() {
    ! objdump -d "$build/libmha.a" | awk '
        /file format/ { file = $1 }
        /%[yz]mm|%k[1-7]/ && file !~ /(kernels|native|pairs)_avx/ { found[file]++ }
        END { for (file in found) print file, found[file] }' | grep .
}

check exports_are_the_header exports_are_the_header "$library" mha.h
check model_exports_are_the_header exports_are_the_header "$build/libmha_model.so" mha_model.h
check model_needs_few_libraries model_needs_few_libraries
check static_model_defines_its_header static_model_defines_its_header
check needs_libc_only needs_libc_only
check knows_no_mpi knows_no_mpi
check soname_is_the_interface_version soname_is_the_interface_version
check has_no_executable_stack has_no_executable_stack
check baseline_has_no_avx baseline_has_no_avx
finish
