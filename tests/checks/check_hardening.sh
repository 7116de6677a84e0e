#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_hardening.sh FOLDER: the program and the shared libraries of a build have the protections of
# cmake/hardening.cmake.
set -u
if [ $# -ne 1 ] || [ ! -r "$1/CMakeCache.txt" ]; then
    echo "usage: check_hardening.sh FOLDER, where FOLDER is one that CMake has built in" >&2
    exit 2
fi
folder=$1
passed=0
failed=0
skipped=0

finish() {
    echo "check_hardening: $passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
    exit
}

skip_all() { # REASON
    echo "skip all checks: $1"
    skipped=1
    finish
}

# expect NAME PATTERN TEXT: a line of the text matches; expect_none: no line does.
expect() {
    if echo "$3" | grep -qE "$2"; then
        passed=$((passed + 1))
    else
        echo "FAIL $1"
        failed=$((failed + 1))
    fi
}

expect_none() {
    if echo "$3" | grep -qE "$2"; then
        echo "FAIL $1"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
}

command -v readelf >/dev/null 2>&1 && command -v objdump >/dev/null 2>&1 ||
    skip_all "readelf or objdump is not installed"
grep -q '^MHA_HARDEN:BOOL=ON' "$folder/CMakeCache.txt" || skip_all "built with MHA_HARDEN=OFF"
grep -qE '^MHA_SANITIZE:STRING=.|^MHA_COVERAGE:BOOL=ON' "$folder/CMakeCache.txt" &&
    skip_all "built with a sanitizer or for coverage"

for name in mha libmha.so libmha_model.so; do
    file=$folder/$name
    dynamic=$(readelf -dW "$file")
    segments=$(readelf -lW "$file")
    imports=$(nm -D --undefined-only "$file")
    expect "$name: imports are resolved before it runs" 'BIND_NOW|FLAGS_1.*NOW' "$dynamic"
    expect "$name: their table is read-only" GNU_RELRO "$segments"
    expect "$name: the stack is not executable" 'GNU_STACK .* RW ' "$segments"
    expect_none "$name: the code is not writable" 'LOAD .* RWE |LOAD .* WE ' "$segments"
    expect_none "$name: the code needs no relocation" TEXTREL "$dynamic"
    expect "$name: canaries on stacks" ' __stack_chk_fail' "$imports"
    if readelf -p .comment "$file" | grep -q GCC && readelf -dW "$file" | grep -q 'libc.so.6'; then
        expect "$name: checked calls of the C library" ' __[a-z]+_chk' "$imports"
    fi
done
expect "mha: loads at a random address" 'Type: +DYN' "$(readelf -hW "$folder/mha")"
if [ "$(uname -m)" = x86_64 ]; then
    begin=$(objdump -d --disassemble=mha_attention "$folder/libmha.so" | grep -A 1 '<mha_attention>:')
    expect "libmha.so: functions begin with a mark for jumps" endbr64 "$begin"
fi
finish
