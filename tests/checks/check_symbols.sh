#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check_symbols.sh LIBRARY: what a shared library gives, needs and keeps. LIBRARY may be the folder
# that holds libmha.so and libmha_model.so; then both are checked,
# and libmha_mpi-*.so.
#
#   - it exports nothing but mha_*
#   - it imports nothing that prints or ends the program
#   - it keeps no writable data but what is listed below, with the reason
set -u

# runnable: the instruction sets that this CPU can run, found once (dispatch.c).
allowed_globals="runnable"

forbidden_imports="abort exit _exit _Exit quick_exit printf puts putchar fprintf vprintf vfprintf
fputs fputc fwrite perror __assert_fail __printf_chk __fprintf_chk __vprintf_chk __vfprintf_chk
raise kill signal"

if [ $# -ne 1 ] || [ ! -r "$1" ]; then
    echo "usage: check_symbols.sh LIBRARY" >&2
    exit 2
fi
libraries=$1
[ -d "$1" ] && libraries="$1/libmha.so $1/libmha_model.so $(ls "$1"/libmha_mpi-*.so 2>/dev/null)"
passed=0
failed=0
skipped=0

report() { # NAME PROBLEMS: passed if there are none
    if [ -z "$2" ]; then
        echo "ok   $1"
        passed=$((passed + 1))
    else
        echo "FAIL $1:" $2
        failed=$((failed + 1))
    fi
}

skip() {
    echo "skip $1: $2"
    skipped=$((skipped + 1))
}

finish() {
    echo "check_symbols: $passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
    exit
}

contains() { # WORD LIST
    for word in $2; do
        [ "$word" = "$1" ] && return 0
    done
    return 1
}

for tool in nm objdump; do
    if ! command -v $tool >/dev/null 2>&1; then
        skip "all checks" "$tool is not installed"
        finish
    fi
done

check_one() { # LIBRARY
    library=$1
    exports=$(nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }')
    strangers=$(echo "$exports" | grep -v '^mha_[a-z]' | tr '\n' ' ')
    [ -n "$exports" ] || strangers="(nothing at all)"
    report "$(basename "$library") exports only mha_*" "$strangers"

    imports=$(nm -D --undefined-only "$library" | awk '{ sub(/@.*/, "", $NF); print $NF }')
    if echo "$imports" | grep -q -e '^__asan_' -e '^__tsan_' -e '^__ubsan_' ||
       nm "$library" 2>/dev/null | grep -q __gcov_; then
        skip "$(basename "$library") imports and globals" "the library is built with a sanitizer or for coverage"
        return
    fi

    found=""
    for name in $imports; do
        contains "$name" "$forbidden_imports" && found="$found $name"
    done
    report "$(basename "$library") imports nothing that prints or ends the program" "$found"

    table=$(objdump -t "$library" 2>/dev/null)
    if ! echo "$table" | grep -qE ' mha_(attention|model_open|mpi_rows)$'; then
        skip "$(basename "$library") no writable globals" "the library is stripped"
        return
    fi

    # Symbols in .data, .bss and their thread-local kin; the compiler's start-up code has a few.
    startup="completed.0 __dso_handle __TMC_END__ __bss_start _edata _end __data_start"
    globals=$(echo "$table" |
              awk '$4 ~ /^\.t?(data|bss)$/ || $3 ~ /^\.t?(data|bss)$/ { print $NF }')
    found=""
    for name in $globals; do
        case $name in
        .data | .bss | .tdata | .tbss) continue ;;
        esac
        contains "$name" "$startup $allowed_globals" || found="$found $name"
    done
    report "$(basename "$library") no writable globals but: $allowed_globals" "$found"
}

for library in $libraries; do
    check_one "$library"
done
finish
