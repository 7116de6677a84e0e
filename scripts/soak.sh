#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# soak.sh [PERCENT]: the tests that take long. Every test program with twenty times the random
# cases, exp() over every float, 10,000 random configurations against the float64 oracle, a million
# calls from sixteen threads, all of this for every instruction set of this CPU; 500 random problems
# and 250 of RING over 1, 2, 3, 4, 5 and 8 ranks, with every MPI that is here; RISC-V and IBM Z under
# qemu-user; the libraries compiled for macOS; fuzzing, ten minutes per target; an hour of "mha serve"
# with a thousand clients.
#
# Stops at the first failure; the last line counts passed, failed, skipped. A soak that was stopped
# continues where it was if it is started again with the same percentage on the same commit; build/soak has the
# report and the output of every part. PERCENT below 100 does only that share: soak.sh 1 shows in a
# few minutes that everything runs.
set -u
cd "$(dirname "$0")/.."

percent=${1:-100}
if ! [[ $percent =~ ^[1-9][0-9]?$|^100$ ]]; then
    echo "soak.sh: \"$percent\" is not a percentage from 1 to 100" >&2
    exit 2
fi
effort=$((percent / 5)).$((percent % 5 * 2)) # 20 for all of it
passed=0
skipped=0
folder=build/soak
report=$folder/report.txt
mkdir -p $folder
this="soak of $percent % of commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
if [ "$(head -n 1 $report 2>/dev/null)" != "$this" ]; then
    echo "$this" >$report
fi

# finish FAILED: the last line, here and in the report.
finish() {
    echo "soak: $passed passed, $1 failed, $skipped skipped" | tee -a $report
    exit "$1"
}

# part NAME COMMAND...: run one part, unless the report says that it has passed; a failure ends the
# script.
part() {
    local name=$1 log=$folder/${1//[^A-Za-z0-9]/_}.log began=$SECONDS
    shift
    if grep -qxE "passed +[0-9]+ s  $name" $report; then
        echo "== $name: passed before"
        passed=$((passed + 1))
        return
    fi
    echo "== $name"
    if ! "$@" >"$log" 2>&1; then
        tail -n 20 "$log"
        echo "FAIL $name: all of its output is in $log" | tee -a $report
        finish 1
    fi
    printf 'passed %6d s  %s\n' $((SECONDS - began)) "$name" >>$report
    passed=$((passed + 1))
}

skip() {
    echo "skip $1" | tee -a $report
    skipped=$((skipped + 1))
}

isas=()
for isa in c avx2 avx512 avx512bf16 neon; do
    if MHA_ISA=$isa build/examples/readme >/dev/null 2>&1; then
        isas+=("$isa")
    fi
done
echo "instruction sets: ${isas[*]}"

if [ "$percent" -eq 100 ]; then
    part "exp over every float" env MHA_TEST_EXHAUSTIVE=1 build/tests/test_exp
else
    skip "exp over every float: it takes all of its time or none"
fi
for isa in "${isas[@]}"; do
    part "$isa $((100 * percent)) random configurations" \
        env MHA_ISA="$isa" build/mha verify --configs $((100 * percent))
    # Its 3,000 calls become a million.
    part "$isa calls from sixteen threads" \
        env MHA_ISA="$isa" MHA_TEST_EFFORT=$((334 * percent / 100 + 1)) build/tests/test_mixed_calls
    for source in tests/*/test_*.c; do
        name=$(basename -s .c "$source")
        part "$isa $name" env MHA_ISA="$isa" MHA_TEST_EFFORT="$effort" "build/tests/$name"
    done
done

# Other seeds than those of scripts/test.sh, and others with every MPI.
seeds=100
for mpi in openmpi mpich mpi; do
    if [ ! -x "build/tests/mpi-$mpi/mpi_laws" ]; then
        continue
    fi
    for ranks in 1 2 3 4 5 8; do
        part "$mpi $((5 * percent)) random problems on $ranks ranks" tests/mpi/mpi_job.sh "$mpi" $ranks \
            36000 "build/tests/mpi-$mpi/mpi_laws" $((5 * percent)) $((seeds + ranks))
    done
    seeds=$((seeds + 10))
done
[ $seeds -gt 100 ] || skip "random problems over ranks: no MPI"

for machine in riscv64 s390x; do
    part "$machine" scripts/test.sh $machine
done

if [ -x build/zig/bin/python ] || scripts/macos.sh --install; then
    part "sources compiled for macOS" scripts/macos.sh
else
    skip "macOS: PyPI's package ziglang cannot be installed"
fi

if command -v clang >/dev/null; then
    for source in tests/fuzz/fuzz_*.c; do
        name=$(basename -s .c "$source")
        part "$name" scripts/fuzz.sh $((6 * percent)) "${name#fuzz_}"
    done
else
    skip "fuzzing: no clang"
fi

if ldd build/mha | grep -q libmicrohttpd; then
    part "a thousand clients" tests/soak/serve_load.py build/mha --seconds $((36 * percent))
else
    skip "a thousand clients: mha was built without libmicrohttpd"
fi
finish 0
