#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_any.sh MHA PLAYWRIGHT BROWSER: pages of models that are no translators in a browser: an
# encoder that is served, decoders and an encoder-decoder as files. Their weights are random
# (tests/program/tiny_models.py). PLAYWRIGHT is the folder of playwright-core.
set -u
mha=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; wait; rm -rf "$scratch"' EXIT

give_up() {
    echo "FAIL $1"
    echo "test_any: 0 passed, 1 failed, 0 skipped"
    exit 1
}

if ! command -v python3 >/dev/null; then
    echo "skip all: no python3"
    echo "test_any: 0 passed, 0 failed, 1 skipped"
    exit 0
fi
cd "$scratch" || exit 1
python3 "$here/../program/tiny_models.py" || give_up "no models"
{
    "$mha" view --model bert -o bert.html "the unbelievably black cat sleeps ?" &&
        "$mha" view --model gpt2 -o gpt2.html "the cat sleeps" &&
        "$mha" view --model llama --layer 2 -o llama.html "the cat sleeps" &&
        "$mha" view --model qwen3 -o qwen3.html "the cat sleeps" &&
        "$mha" view --model t5 -o t5.html --to "le chat dort" "the cat sleeps" &&
        "$mha" view --model t5 -o written.html "the cat sleeps"
} >log 2>&1 || give_up "no page: $(cat log)"
"$mha" serve --model bert >address 2>log &
server=$!
while [ ! -s address ] && kill -0 $server 2>/dev/null; do
    sleep 0.1
done
if ! [ -s address ] && ! grep -q "built without libmicrohttpd" log; then
    give_up "no server: $(cat log)"
fi
node "$here/test_any.mjs" "$2" "$3" bert.html gpt2.html t5.html written.html "$(cat address)"
