#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench-mpi.sh [BUILD]: libmha_mpi over links of 1 and 10 Gb/s. Two hosts are made as network namespaces, what
# they send is limited, and the time that a run waits for data is printed beside the model of docs/mpi.md.
# Needs root, ip and tc of iproute2, and two idle cores: on a busy machine a rank also waits for a core.
set -u
build=$(readlink -f "${1:-build}")
cd "$(dirname "$0")/.." || exit 1
. tests/mpi/hosts.bash
missing=$(hosts_missing)
if [ -n "$missing" ]; then
    echo "bench-mpi: $missing"
    exit 1
fi
hosts_up 2 || exit 1
for mpi in openmpi mpich; do
    [ -x "$build/mha-mpi-$mpi" ] || continue
    for rate in 1 10; do
        hosts_rate ${rate}gbit || exit 1
        for scheme in gather all-to-all; do
            echo "$mpi, $rate Gb/s, $scheme"
            hosts_run $mpi 2 300 "$build/mha-mpi-$mpi" bench --scheme $scheme --link $rate \
                --tokens "${TOKENS:-4096}" --heads 8 --count "${COUNT:-5}" 2>&1 | grep -E "^(forward|waiting)"
        done
    done
done
