#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# mpi_death.sh FOLDER MPI: a rank exits, is killed or stops, early and late in a call. All other ranks
# return an error within their time limit, and nothing is left running.
set -u
folder=$1 mpi=$2
here=$(cd "$(dirname "$0")" && pwd)
passed=0
failed=0
case $mpi in
openmpi) export MPI_JOB_FLAGS="--enable-recovery" ;;
mpich) export MPI_JOB_FLAGS="-disable-auto-cleanup" MPI_JOB_LINGER=10 ;;
esac

notes=$(mktemp -d)
trap 'rm -rf "$notes"' EXIT
for how in exit kill stop; do
    for call in 1 6; do
        rm -f "$notes"/*
        output=$(MPI_JOB_FILES="$notes/rank.0 $notes/rank.1" "$here/mpi_job.sh" "$mpi" 3 60 "$folder/mpi_death" $how $call "$notes/rank" 2>&1)
        returned=$(cat "$notes"/rank.[01] 2>/dev/null | grep -c "^returned MHA_ERR_")
        # MPICH's mpirun kills the survivors of a killed rank itself, most of the time before they can
        # return. Those that return do so with an error, and none is left that does neither.
        [ "$mpi$how" != mpichkill ] || grep -qs "^failed" "$notes"/rank.[01] ||
            grep -q "^mpi_job: still running" <<<"$output" || returned=2
        if [ "$returned" -eq 2 ]; then
            echo "ok   a rank ends by $how at call $call"
            passed=$((passed + 1))
        else
            echo "FAIL a rank ends by $how at call $call: $returned of 2 ranks have returned"
            sed 's/^/    /' <<<"$output"
            failed=$((failed + 1))
        fi
    done
done
left=$(pgrep -cf "$folder/mpi_death (exit|kill|stop) [0-9]+ $notes")
if [ "$left" -eq 0 ]; then
    passed=$((passed + 1))
else
    echo "FAIL $left processes are left"
    failed=$((failed + 1))
fi
echo "mpi_death: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
