#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# soak.sh: the tests that take long. Every test program with twenty times the random cases, exp()
# over every float, 10,000 random configurations against the float64 oracle, all of this for every
# instruction set this CPU runs; then fuzzing, ten minutes for a target of the core, one for a file
# format. Ends with the first failure.
set -eu
cd "$(dirname "$0")/.."

isas=()
for isa in c avx2 avx512 neon; do
    if MHA_ISA=$isa build/examples/readme >/dev/null 2>&1; then
        isas+=("$isa")
    fi
done
echo "instruction sets: ${isas[*]}"

echo "== exp over every float"
MHA_TEST_EXHAUSTIVE=1 build/tests/test_exp

for isa in "${isas[@]}"; do
    echo "== $isa: 10000 random configurations"
    MHA_ISA=$isa build/mha verify --configs 10000
    for source in tests/test_*.c; do
        name=$(basename -s .c "$source")
        echo "== $isa: $name"
        MHA_ISA=$isa MHA_TEST_EFFORT=20 "build/tests/$name"
    done
done

echo "== fuzzing"
if ! command -v clang >/dev/null; then
    echo "skipped: no clang"
    exit 0
fi
cmake --preset asan -B build/fuzz -DCMAKE_C_COMPILER=clang -DMHA_FUZZ=ON >/dev/null
for name in fuzz_call fuzz_layer; do
    cmake --build build/fuzz --parallel 2 --target "${name}_llvm" >/dev/null
    mkdir -p "build/fuzz/corpus-$name"
    "build/fuzz/tests/${name}_llvm" -max_total_time=600 -print_final_stats=1 \
        "build/fuzz/corpus-$name"
done
for name in fuzz_json fuzz_safetensors; do
    cmake --build build/fuzz --parallel 2 --target "${name}_llvm" >/dev/null
    mkdir -p "build/fuzz/corpus-$name"
    "build/fuzz/tests/${name}_llvm" -max_total_time=60 -timeout=30 -max_len=4096 \
        -print_final_stats=1 "build/fuzz/corpus-$name"
done
