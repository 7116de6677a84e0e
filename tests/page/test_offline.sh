#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_offline.sh MHA PLAYWRIGHT BROWSER: pages of "mha view --live" with our translators, opened from
# disk without a network: their numbers are those of the command line with MHA_ISA=c.
set -u
mha=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export MHA_ISA=c

give_up() {
    echo "FAIL $1: $(cat "$scratch/log")"
    echo "test_offline: 0 passed, 1 failed, 0 skipped"
    exit 1
}

# prepare NAME TEXT FIRST: a live page that begins with FIRST, and what the command line says of TEXT.
prepare() {
    local name=$1 text=$2 first=$3
    env -u MHA_ISA "$mha" view --live --model "$name" --study 10 -o "$scratch/$name.html" "$first" \
        >"$scratch/log" 2>&1 || give_up "no page of $name"
    "$mha" view --model "$name" --study 10 -o "$scratch/$name-static.html" "$text" \
        >"$scratch/log" 2>&1 || give_up "no static page of $name"
    "$mha" show --model "$name" --json "$text" >"$scratch/$name-show.json" 2>"$scratch/log" ||
        give_up "mha show of $name"
    "$mha" translate --model "$name" --json "$text" >"$scratch/$name-translate.json" \
        2>"$scratch/log" || give_up "mha translate of $name"
}

# The same for a model whose weights are rounded for the page; nothing but the page may be left.
small=$scratch/small
mkdir "$small"
env -u MHA_ISA "$mha" view --live --store q8 --model en-fr --study 0 -o "$small/q8.html" "It rains." \
    >"$scratch/log" 2>&1 || give_up "no page with small weights"
[ "$(ls "$small")" = q8.html ] || give_up "files are left: $(ls "$small")"
mv "$small/q8.html" "$scratch"
prepare lab "they took the key" "the black cat sleeps"
prepare en-fr "The cat that I saw yesterday ran away." "It rains."
node "$here/test_offline.mjs" "$2" "$3" "$scratch"
