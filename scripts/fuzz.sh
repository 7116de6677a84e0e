#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# fuzz.sh SECONDS [TARGET...]: libFuzzer with coverage feedback, AddressSanitizer and
# UndefinedBehaviorSanitizer on every target of tests/fuzz, or on these, for so many seconds each.
# Starts with the inputs of tests/fuzz/corpus and those that earlier runs left in build/fuzz. Prints
# how many inputs were tried, how many of them were accepted as valid, and how many places of the code
# they reached. An input that makes a target fail is left in build/fuzz and ends the script with an error.
set -u
cd "$(dirname "$0")/.."
if ! [[ ${1:-} =~ ^[1-9][0-9]*$ ]]; then
    echo "usage: fuzz.sh SECONDS [TARGET...], a target being call, json, safetensors, ..." >&2
    exit 2
fi
seconds=$1
shift
if [ $# -gt 0 ]; then
    targets=("$@")
else
    mapfile -t targets < <(basename -s .c tests/fuzz/fuzz_*.c | sed 's/^fuzz_//')
fi
folder=build/fuzz
programs=("${targets[@]/#/fuzz_}")
programs=("${programs[@]/%/_llvm}")
mkdir -p "$folder"
if ! { cmake --preset asan -B $folder -DCMAKE_C_COMPILER=clang -DMHA_FUZZ=ON &&
    cmake --build $folder --parallel 2 --target "${programs[@]}"; } >$folder/build.log 2>&1; then
    grep -E 'error|FAILED' $folder/build.log | head -n 20 >&2
    echo "fuzz.sh: the targets do not build; the log is $folder/build.log" >&2
    exit 1
fi

# fuzz TARGET: one line of the table.
fuzz() {
    local name=$1 log=$folder/$1.log given=tests/fuzz/corpus/$1 status=0
    local executions accepted edges
    mkdir -p "$folder/corpus-$name"
    "$folder/tests/fuzz_${name}_llvm" -max_total_time="$seconds" -print_final_stats=1 -timeout=30 \
        -max_len=4096 -rss_limit_mb=4096 -artifact_prefix="$folder/failed-$name-" \
        "$folder/corpus-$name" $([ -d "$given" ] && echo "$given") >"$log" 2>&1 || status=$?
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    accepted=$(sed -n 's/^accepted \([0-9]*\) of \([0-9]*\) inputs/\1 \2/p' "$log" |
        awk '$2 { printf "%.1f%%", 100 * $1 / $2 }')
    edges=$(grep -o 'cov: [0-9]*' "$log" | tail -n 1 | cut -d ' ' -f 2)
    printf '%-14s %12s %9s %8s\n' "$name" "${executions:--}" "${accepted:--}" "${edges:--}"
    if [ $status -ne 0 ]; then
        grep -E 'ERROR|SUMMARY|runtime error|Test unit written' "$log" | sed 's/^/    /'
    fi
    return $status
}

failed=0
printf '%-14s %12s %9s %8s\n' target inputs accepted places
for target in "${targets[@]}"; do
    fuzz "$target" || failed=$((failed + 1))
done
echo "fuzz: $((${#targets[@]} - failed)) passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
