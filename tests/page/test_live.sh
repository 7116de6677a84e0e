#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_live.sh MHA PLAYWRIGHT BROWSER [file]: the page of "mha serve" in a browser, from a model that
# has learnt nothing; with "file" that of "mha view --live", compared with the server. PLAYWRIGHT is
# the folder of playwright-core.
set -u
mha=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; wait; rm -rf "$scratch"' EXIT
export MHA_MODEL=$scratch/dull.safetensors

give_up() {
    echo "FAIL $1"
    echo "test_live: 0 passed, 1 failed, 0 skipped"
    exit 1
}

"$mha" train -o "$MHA_MODEL" --width 16 --heads 2 --ff 16 --layers 2 --steps 2 --warm-up 1 \
    --batch 2 --evaluate 1 --quiet >"$scratch/log" 2>&1 || give_up "no model: $(cat "$scratch/log")"
page=()
if [ "${4-}" = file ]; then
    export MHA_ISA=c
    page=("$scratch/live.html")
    "$mha" view --live --study 10 -o "${page[0]}" >"$scratch/log" 2>&1 ||
        give_up "no page: $(cat "$scratch/log")"
fi
"$mha" serve >"$scratch/address" 2>"$scratch/log" &
server=$!
while [ ! -s "$scratch/address" ] && kill -0 $server 2>/dev/null; do
    sleep 0.1
done
if grep -q "built without libmicrohttpd" "$scratch/log"; then
    echo "skip all: mha was built without libmicrohttpd"
    echo "test_live: 0 passed, 0 failed, 1 skipped"
    exit 0
fi
[ -s "$scratch/address" ] || give_up "no server: $(cat "$scratch/log")"
node "$here/test_live.mjs" "$2" "$3" "$(cat "$scratch/address")" "${page[@]}"
