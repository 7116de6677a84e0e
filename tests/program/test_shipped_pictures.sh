#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The models of pictures that come with the program are as good as models/README.md says, are found by their
# short names, and refuse to be read when they are damaged.
. "$(dirname "$0")/harness.bash"
models=$(cd "$here/../../models" && pwd)
cd "$scratch" || exit 1

# at_least NAME VALUE LEAST
at_least() {
    if awk -v value="${2:-0}" -v least="$3" 'BEGIN { exit !(value >= least) }'; then
        ok "$1: $2"
    else
        bad "$1" "$2 is less than $3"
    fi
}

for model in captions detector vit-fashion; do
    size=$(du -sb "$models/$model" | cut -f 1)
    if [ "$size" -le 3000000 ]; then ok "$model has at most 3 MB: $size"; else bad "$model is too large: $size"; fi
done

# ------------------------------------------------------------------- captions

exits 0 see --scenes 1000 --json
json "captions"
at_least "captions that are right in every word, %" \
    "$(of '100 * sum(j[k]["right"] for k in ("english", "french")) / sum(j[k]["scenes"] for k in ("english", "french"))')" 97
at_least "the best cross head looks at the shape, times as often as the best fixed place" \
    "$(of 'max(h["share"] for h in j["cross_heads"]) / j["best_fixed_place"]["share"]')" 3
exits 0 scenes --split test --count 2 -o scenes
exits 0 see scenes/test-000000.png --language english
truth=$(python3 -c 'import json; print(json.load(open("scenes/truth.json"))[0]["english"])')
says "the caption of the first scene" "$out" "$truth"

# ------------------------------------------------------------------- detector

exits 0 see --scenes 1000 --model detector --json
json "boxes"
at_least "average precision of held-out scenes, %" "$(of '100 * j["average_precision"]')" 95
exits 0 see scenes/test-000000.png --boxes boxes.svg
says "boxes are drawn" "$(cat boxes.svg)" "<svg"

# ----------------------------------------------------------------- classifier

if [ -d /usr/share/datasets/fashion-mnist ]; then
    exits 0 see --images /usr/share/datasets/fashion-mnist --count 2000 --json
    json "clothes"
    at_least "clothes that are recognised, %" "$(of '100 * j["right"] / j["pictures"]')" 90
else
    skip "clothes" "no dataset-fashion-mnist"
fi

# -------------------------------------------------------------------- damaged

for model in captions detector vit-fashion; do
    cp -r "$models/$model" "$model-cut"
    head -c 100000 "$models/$model/model.safetensors" >"$model-cut/model.safetensors"
    exits 1 see scenes/test-000000.png --model "./$model-cut"
    says "$model: what is wrong" "$err" "$model-cut"
done

finish
