#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# mpi_program.sh PROGRAM MPI EXAMPLE: mha-mpi and the example on three ranks: what they print, and what
# they refuse. The example was built for one of the MPIs only.
set -u
program=$1 mpi=$2 example=$3
here=$(cd "$(dirname "$0")" && pwd)
passed=0
failed=0

run() { # RANKS PROGRAM ARGUMENT...
    local ranks=$1
    shift
    output=$("$here/mpi_job.sh" "$mpi" "$ranks" 120 "$@" 2>&1)
    status=$?
}

check() { # NAME STATUS TEXT: the last run ended with the status and printed the text
    if [ "$status" -eq "$2" ] && grep -qE -- "$3" <<<"$output"; then
        echo "ok   $1"
        passed=$((passed + 1))
    else
        echo "FAIL $1: exit code $status"
        sed 's/^/    /' <<<"$output"
        failed=$((failed + 1))
    fi
}

run 3 "$program" verify --count 12
check verify 0 "12 problems on 3 ranks .*every bit as on one machine"
run 1 "$program" verify --count 3
check verify_alone 0 "every bit as on one machine"
for scheme in gather all-to-all grid ring; do
    run 3 "$program" bench --tokens 300 --heads 6 --groups 3 --width 16 --count 1 --pass both \
        --scheme $scheme
    check "bench_$scheme" 0 "^backward .*ratio [0-9.]+ "
done
output=$("$program" --help 2>&1)
status=$?
check help 0 "^usage: mpirun"
for wrong in "" nothing "bench --tokens" "bench --tokens 0" "bench --scheme other" "bench --heads 3 --groups 2"; do
    output=$("$program" $wrong 2>&1)
    status=$?
    check "wrong: $wrong" 2 "^usage: mpirun"
done
if [ "$mpi" = openmpi ] || [ ! -e "${program%-*}-openmpi" ]; then
    run 3 "$example"
    check example 0 "rank 2: .*; 100 of 100 rows have the bits of one call"
fi
echo "mpi_program: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
