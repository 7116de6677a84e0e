#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_large.sh MHA PLAYWRIGHT BROWSER: the page of 12 layers of 12 heads on 512 words, imported from
# a file, in a browser. PLAYWRIGHT is the folder of playwright-core.
set -u
mha=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

give_up() {
    echo "FAIL $1"
    echo "test_large: 0 passed, 1 failed, 0 skipped"
    exit 1
}

cd "$scratch" || exit 1
node "$here/large_weights.mjs" weights.safetensors words.json 12 12 512 || give_up "no weights"
begin=$(date +%s%N)
"$mha" view --weights weights.safetensors --tokens words.json -o large.html >log 2>&1 ||
    give_up "no page: $(cat log)"
echo "    $(cat log); written in $((($(date +%s%N) - begin) / 1000000)) ms"
node "$here/test_large.mjs" "$2" "$3" large.html
