#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# test_windows.sh MHA BUILD: the program mha of the Windows build in BUILD, under wine, writes what the
# program MHA of this machine writes; programs link its libraries.
set -u
here_mha=$(realpath "$1")
build=$(realpath "$2")
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/checks/check_lib.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
ln -s "$root/models" models
unset MHA_MODEL
export MHA_ISA=c MHA_NUM_THREADS=2

there() {
    "$root/tests/support/run_wine.sh" "$build/mha" "$@" </dev/null
}

# same ARGUMENT...: standard output to the byte, so that no line ends with CR LF.
same() {
    "$here_mha" "$@" >here.out </dev/null && there "$@" >there.out && cmp here.out there.out
}

reads_lines() {
    printf 'he sleeps\nthe cat sees a dog\n' >lines
    "$here_mha" translate --model lab <lines >here.out &&
        "$root/tests/support/run_wine.sh" "$build/mha" translate --model lab <lines >there.out &&
        cmp here.out there.out
}

# A name that no code page of Windows has.
names_are_utf8() {
    there view --model lab -o "épée ☃.html" "he sleeps" >out && [ -s "épée ☃.html" ] &&
        grep -q '</html>' "épée ☃.html"
}

# Trains, writes over the model, and this machine can read what it wrote.
trains() {
    local options=(--width 16 --heads 2 --layers 1 --ff 16 --batch 4 --evaluate 10 --quiet)
    there train --steps 4 -o model.safetensors "${options[@]}" >out 2>&1 ||
        { cat out; return 1; }
    there train --steps 2 --force -o model.safetensors "${options[@]}" >out 2>&1 ||
        { cat out; return 1; }
    "$here_mha" tensors model.safetensors >here.out && there tensors model.safetensors >there.out &&
        cmp here.out there.out && [ "$(ls *.tmp *.lock 2>/dev/null | wc -l)" -eq 0 ]
}

does_not_serve() {
    ! there serve 2>err && grep -q 'cannot serve pages on Windows' err
}

fails_with_1() {
    there translate --model nowhere "he sleeps" 2>err
    [ $? -eq 1 ] && grep -q 'nowhere: cannot be opened: No such file or directory' err
}

# What a shared library exports: the functions of its header.
exports() {
    x86_64-w64-mingw32-objdump -p "$build/$1.dll" | sed -n '/Ordinal\/Name Pointer/,/^$/s/^[[:space:]]*\[ *[0-9]*\] //p' | sort >exported
    tr '\n' ' ' <"$root/include/mha/$2.h" | grep -oE 'MHA_API [^;(]*\(' | grep -oE 'mha_[a-z0-9_]+\($' |
        tr -d '(' | sort >declared
    [ -s declared ] && diff declared exported
}

# links EXAMPLE LIBRARY...: an example, compiled as a user would, runs.
links() {
    local example=$1
    shift
    x86_64-w64-mingw32-gcc-posix -I"$root/include" -o example.exe "$root/examples/$example.c" "$@" &&
        "$root/tests/support/run_wine.sh" ./example "$root/models/en-fr" "He sleeps." </dev/null
}

cp "$build"/*.dll .
check libmha_exports_its_header exports libmha mha
check libmha_model_exports_its_header exports libmha_model mha_model
check links_libmha_dll links readme "$build/libmha.dll.a"
check links_libmha_static links readme -static "$build/libmha.a" -lpthread
check links_libmha_model_dll links readme_model "$build/libmha_model.dll.a" "$build/libmha.dll.a"
check links_libmha_model_static links readme_model -static "$build/libmha_model.a" "$build/libmha.a" -lpthread
check help same --help
check translates_with_the_laboratory same translate --model lab "the old king sings"
check translates_with_tokenizers same translate --model en-fr "Two dogs are playing in the snow."
check shows_every_head same show --model lab --words "he sleeps"
check explains same explain b2h4l70d64:causal
check verifies there verify --configs 20
check reads_lines reads_lines
check names_are_utf8 names_are_utf8
check trains trains
check does_not_serve does_not_serve
check fails_with_1 fails_with_1
finish
