#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_firefox.sh MHA PUPPETEER FIREFOX: a page of "mha view --live" in Firefox. PUPPETEER is the folder
# of puppeteer-core, which drives the Firefox of the system.
set -u
mha=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export MHA_ISA=c

"$mha" view --live --model lab --study 10 -o "$scratch/lab.html" "the black cat sleeps" \
    >"$scratch/log" 2>&1 &&
    "$mha" view --model lab --study 0 -o "$scratch/static.html" "they took the key" \
        >"$scratch/log" 2>&1 || {
    echo "FAIL no page: $(cat "$scratch/log")"
    echo "test_firefox: 0 passed, 1 failed, 0 skipped"
    exit 1
}
node "$here/test_firefox.mjs" "$2" "$3" "$scratch"
