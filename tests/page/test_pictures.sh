#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_pictures.sh MHA TOOLS BROWSER: pages of models that read pictures, from small trainings: as
# files, and served. TOOLS is the folder of playwright-core and axe-core.
set -u
mha=$(realpath "$1")
tools=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; wait; rm -rf "$scratch"' EXIT
unset MHA_MODEL

give_up() {
    echo "FAIL $1"
    echo "test_pictures: 0 passed, 1 failed, 0 skipped"
    exit 1
}

if ! command -v python3 >/dev/null; then
    echo "skip all: no python3"
    echo "test_pictures: 0 passed, 0 failed, 1 skipped"
    exit 0
fi
cd "$scratch" || exit 1
python3 "$here/../program/picture_sets.py" || give_up "no pictures"
python3 -c '
import random
rng = random.Random(3)
pixels = bytes(rng.randrange(90) + (90 if 3 < n % 28 < 15 else 0) for n in range(28 * 28))
open("shoe.pgm", "wb").write(b"P5 28 28 255\n" + pixels)'
small=(--width 16 --heads 2 --ff 32 --layers 2 --batch 20 --lr 0.005 --patch 4 --flip 0 --ema 0.9
    --quiet --evaluate 20)
{
    "$mha" train --images idx "${small[@]}" --steps 40 -o mean --classes left,right --threads 1 &&
        "$mha" train --images idx "${small[@]}" --steps 10 -o class --pooling class --stride 2 --threads 1
} >log 2>&1 || give_up "no model: $(cat log)"
scenes=(--scenes --width 32 --heads 2 --ff 32 --layers 2 --patch 10 --batch 8 --evaluate 20 --quiet)
{
    "$mha" scenes --split test --count 1 -o scenes &&
        "$mha" train "${scenes[@]}" --stride 5 --places learned --steps 60 -o captions &&
        "$mha" train "${scenes[@]}" --detect --queries 4 --steps 10 -o detector
} >log 2>&1 || give_up "no model of scenes: $(cat log)"
python3 "$here/without_head.py" mean 1 2 2 closed || give_up "no model without a head"
printf 'shoe.pgm\nlarge.png\n' >names.txt
export MHA_ISA=c
{
    "$mha" view --model mean -o mean.html --texts names.txt shoe.pgm large.png &&
        "$mha" view --model class -o class.html large.png &&
        "$mha" see --model mean --json shoe.pgm large.png >whole.json &&
        "$mha" see --model closed --json shoe.pgm large.png >closed.json &&
        "$mha" heads --model mean --json shoe.pgm >heads.json &&
        "$mha" heads --model mean --json --texts names.txt >studied.json &&
        "$mha" view --model captions -o captions.html scenes/test-000000.png &&
        "$mha" view --model detector -o detector.html scenes/test-000000.png &&
        "$mha" see --model captions --language english --json scenes/test-000000.png >said.json &&
        "$mha" see --model detector --least 0 --json scenes/test-000000.png >found.json &&
        "$mha" show --model mean --json shoe.pgm >shown.json
} 2>log || give_up "no page: $(cat log)"
"$mha" view --live --model mean -o live.html --study 0 shoe.pgm large.png 2>live.log
"$mha" serve --model mean shoe.pgm large.png >address 2>log &
server=$!
while [ ! -s address ] && kill -0 $server 2>/dev/null; do
    sleep 0.1
done
if ! [ -s address ] && ! grep -q "built without libmicrohttpd" log; then
    give_up "no server: $(cat log)"
fi
node "$here/test_pictures.mjs" "$tools" "$3" "$scratch" "$(cat address)"
