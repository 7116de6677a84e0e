#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_view.sh MHA PLAYWRIGHT BROWSER: pages of "mha view" in a browser, from a model that has
# learnt nothing. PLAYWRIGHT is the folder of playwright-core.
set -u
mha=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export MHA_MODEL=$scratch/dull.safetensors

give_up() {
    echo "FAIL $1"
    echo "test_view: 0 passed, 1 failed, 0 skipped"
    exit 1
}

"$mha" train -o "$MHA_MODEL" --width 16 --heads 2 --ff 16 --layers 2 --steps 2 --warm-up 1 \
    --batch 2 --evaluate 1 --quiet >"$scratch/log" 2>&1 || give_up "no model: $(cat "$scratch/log")"
cd "$scratch" || exit 1
hostile='</script><script>window.broken=1</script><!-- <img src=x onerror="window.broken=1">'
{
    "$mha" view -o gold.html --to "notre tante sera paresseuse demain" \
        "our aunt will be lazy tomorrow" &&
        "$mha" view -o two.html "our aunt will be lazy" "our black cat will be lazy tomorrow" &&
        "$mha" view -o hostile.html --to "$hostile" "$hostile" &&
        "$mha" ablate --sentences 3 --json >cost.json 2>ablate.log &&
        "$mha" view -o cost.html --ablation cost.json "our aunt will be lazy tomorrow" &&
        node "$here/cross_weights.mjs" cross.safetensors &&
        "$mha" view -o cross.html --weights cross.safetensors
} >log 2>&1 || give_up "no page: $(cat log)"
node "$here/test_page.mjs" "$2" "$3" gold.html two.html hostile.html cost.html \
    cross.html
