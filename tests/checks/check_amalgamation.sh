#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_amalgamation.sh BUILD: mha.c and mha.h are made, compiled by one line without a warning, and
# examples that are built with them print what those of the library print, with every instruction set.
set -u
build=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/checks/check_lib.sh"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cd "$stage" || exit 1

builds() {
    mkdir -p mha && ln -sf ../mha.h mha/mha.h &&
        cc -I. "$root/examples/$1.c" mha.o -o "$1" -lm -pthread
}

# same EXAMPLE: the same words and numbers with the instruction sets that this CPU has.
same() {
    local isa
    for isa in c avx2 avx512 neon; do
        MHA_ISA=$isa "$build/examples/$1" >expected 2>&1 || continue
        MHA_ISA=$isa "./$1" >got 2>&1 && diff expected got || return
    done
}

check "mha.c is made" python3 "$root/scripts/amalgamate.py" .
check "one line compiles it" sh -c 'test -z "$(cc -O1 -Wall -c mha.c 2>&1 | tee /dev/stderr)"'
for example in readme 04_multi_head 07_generation 09_gradients; do
    check "$example is built with it" builds $example
    check "$example prints the same" same $example
done
finish
