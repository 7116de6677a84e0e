#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# mpi_hosts.sh FOLDER PROGRAM MPI: three ranks on three hosts, which are network namespaces (hosts.bash):
# the bits of one machine over TCP; and a link that goes down, early and late in a call, ends the call on
# every rank within the time limit. Skipped where there can be no such hosts.
set -u
folder=$(readlink -f "$1") program=$(readlink -f "$2") mpi=$3
. "$(dirname "$0")/hosts.bash"
passed=0
failed=0
missing=$(hosts_missing)
case $mpi in
openmpi) recovery="--enable-recovery" ;;
mpich) recovery="-disable-auto-cleanup" ;;
*) missing="hosts are known to Open MPI and MPICH only" ;;
esac
if [ -n "$missing" ]; then
    echo "skip mpi_hosts: $missing"
    echo "mpi_hosts: 0 passed, 0 failed, 1 skipped"
    exit 0
fi

verdict() { # NAME: by the status of the command before
    if [ $? -eq 0 ]; then
        echo "ok   $1"
        passed=$((passed + 1))
    else
        echo "FAIL $1"
        sed 's/^/    /' <<<"$output"
        failed=$((failed + 1))
    fi
}

notes=$(mktemp -d)
output="" # not in a subshell: it sets variables
hosts_up 3
verdict "three hosts"
trap 'hosts_down; rm -rf "$notes"' EXIT
output=$(hosts_run "$mpi" 3 60 "$program" verify --count 8 2>&1)
grep -q "8 problems on 3 ranks .*every bit as on one machine" <<<"$output"
verdict "the bits of one machine on three hosts"
for call in 1 6; do
    rm -f "$notes"/*
    ip -n "$hosts_prefix-switch" link set port3 up
    # The launcher is no part of the call: what it does about the lost host is not waited for.
    output=$(HOSTS_FLAGS=$recovery MPI_DEATH_COMMAND=$(hosts_cut 2) MPI_JOB_LINGER=10 \
        MPI_JOB_FILES="$notes/rank.0 $notes/rank.1 $notes/rank.2" hosts_run "$mpi" 3 60 "$folder/mpi_death" link $call "$notes/rank" 2>&1)
    output+=$(echo && tail "$notes"/* 2>&1)
    [ "$(cat "$notes"/rank.[012] 2>/dev/null | grep -c "^returned MHA_ERR_")" -eq 3 ]
    verdict "a link goes down at call $call"
done
hosts_down
output=$(ip netns list 2>&1)
! grep -q "^$hosts_prefix" <<<"$output"
verdict "nothing is left of the hosts"
echo "mpi_hosts: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
