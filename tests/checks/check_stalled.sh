#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The limit of tests: programs that wait for ever are ended with their children, programs that work or
# end by themselves are not.
. "$(dirname "$0")/check_lib.sh"
set -u
runner=$(cd "$(dirname "$0")/.." && pwd)/support/until_stalled.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# exits STATUS SECONDS COMMAND...
exits() {
    local expected=$1 status
    shift
    "$runner" "$@" >"$scratch/out" 2>&1
    status=$?
    [ "$status" -eq "$expected" ] || { echo "status $status instead of $expected"; cat "$scratch/out"; false; }
}

# runs PROCESS: is it there, and not only because nobody has asked for its status yet?
runs() {
    grep -s '^State:' "/proc/$1/status" | grep -qv 'Z (zombie)'
}

ends_children() {
    exits 124 4 bash -c 'sleep 1000 & echo $! >'"$scratch"'/child; wait' || return
    for ((n = 0; n < 100; n++)); do # a signal needs a moment to arrive
        runs "$(cat "$scratch/child")" || return 0
        sleep 0.1
    done
    echo "the child is left"
    false
}

# Twice as long as the limit, with little CPU time that is its children's.
lets_work() {
    exits 3 4 bash -c 'for n in 1 2 3 4 5 6 7 8; do sleep 1; done; exit 3'
}

check "the status of the command" exits 7 5 bash -c 'exit 7'
check "a command that does not exist" exits 127 5 /nowhere/at/all
check "one that waits for ever ends, with its children" ends_children
check "one that works slowly does not" lets_work
finish
