#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_bits.sh BUILD WASM: what WebAssembly computes has the same bits as the program of BUILD with
# MHA_ISA=c: many random problems, translations, sentence vectors. And "mha verify" passes, and the claims
# whose bits are compared with a plain loop.
set -u
build=$1 wasm=$2
node=(node --no-experimental-fetch)
passed=0 failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# same NAME: the files NAME.native and NAME.wasm are equal, and not empty.
same() {
    if [ -s "$folder/$1.native" ] && cmp -s "$folder/$1.native" "$folder/$1.wasm"; then
        echo "ok   $1"
        passed=$((passed + 1))
    else
        echo "FAIL $1"
        diff "$folder/$1.native" "$folder/$1.wasm" | head -n 6
        failed=$((failed + 1))
    fi
}

# both NAME PROGRAM ARGUMENT...: its output here and there.
both() {
    local name=$1 program=$2
    shift 2
    MHA_ISA=c "$build/$program" "$@" >"$folder/$name.native" 2>/dev/null
    MHA_ISA=wasm "${node[@]}" "$wasm/$program" "$@" >"$folder/$name.wasm" 2>/dev/null
    same "$name"
}

both random_problems tests/problem_bits 600
both translation mha translate --model models/en-fr --json "The cat sleeps on the table." \
    "I would like to know where the station is."
both embedding mha embed --model models/en-fr "The cat sleeps." "It rains."

# succeeds COMMAND ARGUMENT...: of the program mha.
succeeds() {
    if "${node[@]}" "$wasm/mha" "$@" >"$folder/$1" 2>&1; then
        echo "ok   $1"
        passed=$((passed + 1))
    else
        echo "FAIL $1"
        tail -n 8 "$folder/$1"
        failed=$((failed + 1))
    fi
}

succeeds verify --configs 150 --seed 3
succeeds prove convolution

echo "check_bits: $passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
