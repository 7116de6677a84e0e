#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# soak.sh [PERCENT]: the tests that take long. Every test program with twenty times the random
# cases, exp() over every float, 10,000 random configurations against the float64 oracle, all of
# this for every instruction set of this CPU; RISC-V and IBM Z under qemu-user; then fuzzing, ten minutes per target of the core and
# one per file format. Stops at the first failure; the last line counts passed, failed, skipped.
# PERCENT below 100 does only that share: soak.sh 1 shows in a few minutes that everything runs.
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

# part NAME COMMAND...: run one part; a failure ends the script.
part() {
    echo "== $1"
    if ! "${@:2}"; then
        echo "FAIL $1"
        echo "soak: $passed passed, 1 failed, $skipped skipped"
        exit 1
    fi
    passed=$((passed + 1))
}

# fuzz NAME SECONDS [OPTION...]
fuzz() {
    local name=$1 seconds=$2
    shift 2
    mkdir -p "build/fuzz/corpus-$name"
    cmake --build build/fuzz --parallel 2 --target "${name}_llvm" >/dev/null &&
        "build/fuzz/tests/${name}_llvm" -max_total_time="$seconds" -print_final_stats=1 "$@" \
            "build/fuzz/corpus-$name"
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
    echo "skip exp over every float: it takes all of its time or none"
    skipped=$((skipped + 1))
fi
for isa in "${isas[@]}"; do
    part "$isa: $((100 * percent)) random configurations" \
        env MHA_ISA="$isa" build/mha verify --configs $((100 * percent))
    for source in tests/*/test_*.c; do
        name=$(basename -s .c "$source")
        part "$isa: $name" env MHA_ISA="$isa" MHA_TEST_EFFORT="$effort" "build/tests/$name"
    done
done

part "other machines" scripts/test.sh riscv64 s390x

if command -v clang >/dev/null; then
    part "the fuzzers" cmake --preset asan -B build/fuzz -DCMAKE_C_COMPILER=clang -DMHA_FUZZ=ON
    for name in fuzz_call fuzz_layer; do
        part "$name" fuzz "$name" $((6 * percent))
    done
    for name in fuzz_json fuzz_safetensors fuzz_pictures; do
        part "$name" fuzz "$name" $(((60 * percent + 99) / 100)) -timeout=30 -max_len=4096
    done
else
    echo "skip fuzzing: no clang"
    skipped=$((skipped + 1))
fi
echo "soak: $passed passed, 0 failed, $skipped skipped"
