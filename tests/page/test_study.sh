#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_study.sh MHA TOOLS BROWSER: the view Study of "mha serve" in a browser, of a translator that has
# learnt nothing, an encoder, a decoder and an encoder-decoder with random weights
# (tests/program/tiny_models.py). TOOLS is the folder whose node_modules has playwright-core and
# axe-core.
set -u
mha=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
servers=()
trap '[ "${#servers[@]}" = 0 ] || kill "${servers[@]}" 2>/dev/null; wait; rm -rf "$scratch"' EXIT

give_up() {
    echo "FAIL $1"
    echo "test_study: 0 passed, 1 failed, 0 skipped"
    exit 1
}

skip_all() {
    echo "skip all: $1"
    echo "test_study: 0 passed, 0 failed, 1 skipped"
    exit 0
}

cd "$scratch" || exit 1
command -v python3 >/dev/null || skip_all "no python3"
python3 "$here/../program/tiny_models.py" || give_up "no models"
{
    "$mha" train -o dull.safetensors --width 16 --heads 2 --ff 16 --layers 2 --steps 2 --warm-up 1 \
        --batch 2 --evaluate 1 --quiet &&
        "$mha" view --model dull.safetensors --study 0 -o page.html "the black cat sleeps"
} >log 2>&1 || give_up "no page: $(cat log)"
addresses=()
for model in dull.safetensors bert gpt2 t5; do
    "$mha" serve --model $model >"$model.address" 2>"$model.log" &
    server=$!
    servers+=($server)
    while [ ! -s "$model.address" ] && kill -0 $server 2>/dev/null; do
        sleep 0.1
    done
    if grep -q "built without libmicrohttpd" "$model.log"; then
        servers=()
        skip_all "mha was built without libmicrohttpd"
    fi
    [ -s "$model.address" ] || give_up "no server: $(cat "$model.log")"
    addresses+=("$(cat "$model.address")")
done
node "$here/test_study.mjs" "$2" "$3" page.html "${addresses[@]}"
