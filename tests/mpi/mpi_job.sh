#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# mpi_job.sh MPI RANKS SECONDS PROGRAM [ARGUMENT...]: run a program of one MPI (openmpi, mpich, mpi) on so
# many ranks of this machine, more than it has cores if need be. The job has a session of its own, and
# every rank so many seconds of CPU time; ranks that wait for others use it too. Whatever is left of it
# afterwards, stopped or in sessions that MPI has made, is killed: everything with its mark in its
# environment. MPI_JOB_FLAGS are further flags of mpirun; MPI_JOB_LINGER are seconds that ranks may run on
# after mpirun has ended; MPI_JOB_FILES are files that end the job once all of them are there, for ranks
# after which mpirun would wait for ever.
set -u
mpi=$1 ranks=$2 seconds=$3
shift 3
program=$(readlink -f "$1")
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export UCX_LOG_LEVEL=error UCX_TLS=${UCX_TLS:-self,sm}
MPI_JOB_MARK=mark-$$-$(date +%s%N)
export MPI_JOB_MARK
runner=mpirun.$mpi
[ "$mpi" != mpi ] || runner=mpirun

# The processes of this job, but for this script.
processes() {
    local file pid
    for file in $(grep -laz "^MPI_JOB_MARK=$MPI_JOB_MARK\$" /proc/[0-9]*/environ 2>/dev/null); do
        pid=${file#/proc/}
        pid=${pid%/environ}
        [ "$pid" = $$ ] || echo "$pid"
    done
}

# Those of them that are ranks: processes of the program.
ranks_running() {
    local pid
    for pid in $(processes); do
        [ "$(readlink -f "/proc/$pid/exe")" != "$program" ] || echo "$pid"
    done
}

clean_up() {
    local pid
    for pid in $(processes); do
        kill -9 "$pid" 2>/dev/null
    done
}
trap clean_up EXIT

all_there() {
    local file
    for file in "$@"; do
        [ -s "$file" ] || return
    done
}

stall=$(dirname "$0")/../support/until_stalled.sh
(ulimit -t "$seconds" && exec setsid --wait "$stall" 300 "$runner" ${MPI_JOB_FLAGS:-} -np "$ranks" "$@") &
job=$!
while [ -n "${MPI_JOB_FILES:-}" ] && kill -0 $job 2>/dev/null; do
    sleep 0.2
    ! all_there $MPI_JOB_FILES || clean_up
done
wait $job
status=$?
# mpirun may end before ranks that survive another one.
for ((second = 0; second < ${MPI_JOB_LINGER:-0}; second++)); do
    [ -n "$(ranks_running)" ] || break
    sleep 1
done
[ -z "$(ranks_running)" ] || echo "mpi_job: still running:" $(ranks_running)
[ $status -ne 124 ] || echo "mpi_job: no progress"
exit $status
