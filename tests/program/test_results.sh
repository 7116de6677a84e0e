#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the commands print: numbers, JSON, reproducers.
. "$(dirname "$0")/harness.bash"

run version
says "version: the number" "$out" "mha $(sed -n 's/^#define MHA_VERSION_[A-Z]* //p' \
    "$here/../../include/mha/mha.h" | paste -sd.)"
says "version: the compiler" "$out" "compiler  "
run version --json
json "version"
says "version: keys" "$keys" "compiler isa threads version"

exits 0 verify --configs 40 --seed 3
says "verify: how many" "$out" "40 configurations, seed 3"
says "verify: the worst" "$out" "worst E"
says "verify: a reproducer" "$out" "mha verify --case 3:"
says "verify: no failure" "$out" "failures  0"
silent "verify: nothing on stderr without a terminal" "$err"
exits 0 verify --configs=40 --seed=3 --json
json "verify"
for key in configs failures isa seed worst_e worst_case threads; do
    says "verify: key $key" " $keys " " $key "
done
if command -v python3 >/dev/null; then
    says "verify: configs" "$(value configs)" "40"
    worst=$(value worst_case)
    exits 0 verify --case "$worst"
    says "verify: one case again" "$out" "1 configuration, seed 3"
else
    skip "verify: one case again" "no python3"
fi
exits 0 verify --case b2h4g2l33s57d24v40:causal:br:bf16:mask=bool50:lse:weights:avg
says "verify: a word" "$out" "b2h4g2l33s57d24v40:bf16:causal:br:mask=bool50:lse:weights:avg"
exits 0 verify --case l8d8:lse
says "verify: weights that were not requested" "$out" "weights   -"
for word in l0d8 l5s0d8 b0l5d8 h0l3d3 l3d0 l1s1d1 l9d1024v1 l8d8:f64 l17d16:packed l64d8:docs=3 \
    b3l40d8:packed:causal l40d8:pad:causal l40d8:padk:br:causal l40d8:window=-1,-1 \
    l30d8:alibi:sink:softcap=2:scale=-0.5 l30s10d8:causal:offset=-20:lse l24d8:weights=raw \
    l24d8:weights=softcap:softcap=1 l24d8:weights=bias:mask=bool30 l24d8:mask=bool0:lse \
    h4g2l24d8:bias:mask=add:q=f16:k=bf16:v=f32:o=bf16; do
    exits 0 verify --case "$word"
done
exits 1 verify --case b1h1l2147483647d1024
says "too large a word" "$err" "does not fit in memory"

exits 0 explain b2h16g4l512s2048d64:causal:br:bf16
says "explain: the canonical word first" "$(head -n 1 "$scratch/out")" \
    "b2h16g4l512s2048d64:bf16:causal:br"
says "explain: the instruction set" "$out" \
    "$("$mha" version | sed -nE 's/^isa *//; s/(vnni|bf16|dot)$//; s/^(c|avx2|avx512|neon)$/\1/p')"
exits 0 explain --threads 3 l64d64
says "explain: the workspace" "$out" "threads    3: "
exits 0 explain --json b1h12l65536d64:weights:mask=bool50:lse:packed:docs=2:bias
json "explain"
says "explain: keys" "$keys" "isa plan threads word work_bytes"
exits 0 explain layer:bert-base:l512
golden explain_layer
exits 0 explain decode:gpt2-small:s1024:cache=i8
golden explain_decode
exits 0 explain layer:bert-base:l128:i8:native
says "native arithmetic is explained" "$out" "arithmetic native: rows rounded to 8 bits"
exits 0 explain layer:bert-base:l128:i8:native:grad
says "gradients of i8 are exact" "$out" "gradients  exact, in f32: only bf16"
exits 0 explain layer:bert-base:l128:bf16:native:grad
says "gradients of bf16 are native" "$out" "gradients  native products with the weights"
exits 0 explain linear:m4n4k4:native
says "exact arithmetic instead of native, too" "$out" "arithmetic exact, in f32: weights of this type"
exits 0 explain --json decode:gpt3:s2048:bf16:cache=i8
json "explain of a step"
says "explain: keys of a layer word" "$keys" "isa plan threads word"

exits 0 bench --rounds 15 --json b1h2l256d32 b1h4g1l1s512d32:bf16
json "bench"
for key in word share_of_peak median best gflops gbps clock rounds peak_gflops isa threads; do
    says "bench: key $key" " $keys " " $key "
done
if command -v python3 >/dev/null; then
    says "bench: rounds" "$(value rounds)" "15"
    says "bench: one result a word" "$(python3 -c '
import json, sys
print([r["word"] for r in json.load(open(sys.argv[1]))])' "$scratch/out")" \
        "['b1h2l256d32', 'b1h4g1l1s512d32:bf16']"
    says "bench: one thread is measured in CPU time" "$(value clock)" "cpu"
    says "bench: decoding is bound by memory" "$(python3 -c '
import json, sys
print("share_of_bandwidth" in json.load(open(sys.argv[1]))[1])' "$scratch/out")" "True"
fi
exits 0 bench --json linear:m64n96k128:i8 linear:m1n96k128 linear:m64n96k128:i8:native layer:e64h4g2l32:causal \
    decode:e64h4s33:cache=i8 cache:h4d16s64:f16
json "bench of layer words"
if command -v python3 >/dev/null; then
    says "bench: shares of layer words" "$(python3 -c '
import json, sys
for r in json.load(open(sys.argv[1])):
    kind = "memory" if "share_of_bandwidth" in r else "arithmetic"
    print(r["word"], kind, r["seconds"] > 0, end=" ")' "$scratch/out")" \
        "linear:m64n96k128:i8 arithmetic True linear:m1n96k128 memory True \
linear:m64n96k128:i8:native arithmetic True layer:e64h4g2l32:causal arithmetic True decode:e64h4s33:cache=i8 memory True \
cache:h4d16s64:f16 memory True"
fi
exits 0 bench --json b2h4g2l96d32:causal:bias:alibi:sink:grad b2h2l64d16:packed:bf16:grad
json "bench of backward passes"
if command -v python3 >/dev/null; then
    says "bench: backward passes are judged by their flops" "$(python3 -c '
import json, sys
for r in json.load(open(sys.argv[1])):
    print(r["word"], r["share_of_peak"] > 0, r["work_bytes"] > 0, end=" ")' "$scratch/out")" \
        "b2h4g2l96d32:causal:bias:alibi:sink:grad True True b2h2l64d16:bf16:packed:grad True True"
fi
exits 1 bench l4s0d4:grad
says "bench: no gradients to measure" "$err" "nothing to measure"
exits 0 explain b2h4g2l96d32:bias:grad
says "explain: a backward pass" "$out" "batches too, since they share the bias"
run bench openblas:m8n64k64
case $code in
0) says "bench: OpenBLAS" "$out" "openblas:m8n64k64" ;;
*) says "bench: without OpenBLAS the package" "$err" "libopenblas0-pthread" ;;
esac
exits 1 bench linear:m1n2147483647k2147483647
says "bench: too large a linear" "$err" "does not fit in memory"
exits 1 bench decode:h1e1d1024s2147483647b2147483647
exits 0 bench b1h2l256d32:t=2
says "bench: a table" "$out" "b1h2l256d32:t=2"
says "bench: a unit" "$out" " GF/s "
says "bench: two threads are measured in wall time" "$out" "  wall"
exits 0 bench train:b2:text train:b2
says "bench: a training on files" "$out" "train:b2:text"
silent "bench: nothing on stderr without a terminal" "$err"
exits 1 bench l4s0d4
says "bench: nothing to measure" "$err" "nothing to measure"

finish
