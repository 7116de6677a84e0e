# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Sourced by the scripts beside it: the harness of test.h for the program. $1 is the program.
set -u
mha=$(realpath "$1")
name=$(basename "$0" .sh)
here=$(cd "$(dirname "$0")" && pwd)
passed=0
failed=0
skipped=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset MHA_ISA MHA_NUM_THREADS OMP_NUM_THREADS NO_COLOR CLICOLOR_FORCE COLORTERM COLUMNS
export LC_ALL=C.UTF-8 TERM=xterm-256color

# run ARGUMENT...: runs the program; afterwards $code, $out and $err are what came of it.
run() {
    "$mha" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
    code=$?
    out=$(cat "$scratch/out")
    err=$(cat "$scratch/err")
}

# await FILE PROCESS: wait until there is something in the file, or the process has ended.
await() {
    while [ ! -s "$1" ] && kill -0 "$2" 2>/dev/null; do
        sleep 0.05
    done
}

ok() {
    passed=$((passed + 1))
    echo "ok   $1"
}

bad() {
    failed=$((failed + 1))
    echo "FAIL $1"
    shift
    printf '    %s\n' "$@"
}

skip() {
    skipped=$((skipped + 1))
    echo "skip $1: $2"
}

# exits CODE ARGUMENT...: the program ends with this code.
exits() {
    local wanted=$1
    shift
    run "$@"
    if [ "$code" -eq "$wanted" ]; then
        ok "exits with $wanted: mha $*"
    else
        bad "exits with $code, not $wanted: mha $*" "$err"
    fi
}

# says NAME TEXT PATTERN: the text contains the pattern (a fixed string).
says() {
    case $2 in
    *"$3"*) ok "$1" ;;
    *) bad "$1" "wanted: $3" "got: $2" ;;
    esac
}

# silent NAME TEXT: there is none.
silent() {
    if [ -z "$2" ]; then ok "$1"; else bad "$1" "got: $2"; fi
}

# golden NAME: what the program printed is what tests/program/golden/NAME holds, where the program is
# called as mha.
golden() {
    if diff -u "$here/golden/$1" <(printf '%s\n' "${out//"$mha"/mha}") >"$scratch/diff"; then
        ok "golden $1"
    else
        bad "golden $1" "$(head -n 20 "$scratch/diff")"
    fi
}

# json NAME: what the program printed is JSON; then $keys holds its top-level keys, sorted (those
# of the first element, for an array).
json() {
    if ! command -v python3 >/dev/null; then
        skip "$1" "no python3"
        keys=
        return
    fi
    if keys=$(python3 -c '
import json, sys
value = json.load(open(sys.argv[1]))
value = value[0] if isinstance(value, list) else value
print(" ".join(sorted(value)))' "$scratch/out" 2>"$scratch/err"); then
        ok "$1 is JSON"
    else
        bad "$1 is JSON" "$(cat "$scratch/err")"
    fi
}

# value KEY: of the JSON printed last, the value of a key.
value() {
    python3 -c '
import json, sys
value = json.load(open(sys.argv[1]))
print((value[0] if isinstance(value, list) else value)[sys.argv[2]])' "$scratch/out" "$1"
}

# same NAME WANTED GOT
same() {
    if [ "$2" = "$3" ]; then ok "$1"; else bad "$1" "wanted: $2" "got: $3"; fi
}

# of EXPRESSION: of the JSON printed last, as Python sees it under the name j.
of() {
    python3 -c 'import json, sys
j = json.load(open(sys.argv[1]))
print(eval(sys.argv[2]))' "$scratch/out" "$1" 2>&1
}

# from TEXT ARGUMENT...: runs mha translate with the text as standard input.
from() {
    local text=$1
    shift
    # shellcheck disable=SC2059
    printf "$text" | "$mha" translate "$@" >"$scratch/out" 2>"$scratch/err"
    code=$?
    out=$(cat "$scratch/out")
    err=$(cat "$scratch/err")
}

# train_dull: dull.safetensors, a small model that has learnt nothing; without one the script ends.
train_dull() {
    if ! "$mha" train -o dull.safetensors --width 16 --heads 2 --ff 16 --layers 2 --steps 2 \
        --warm-up 1 --batch 2 --evaluate 1 --quiet >out 2>&1; then
        bad "a small model" "$(cat out)"
        finish
        exit
    fi
}

finish() {
    echo "$name: $passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}
