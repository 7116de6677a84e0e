#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mha train --scenes and mha see with the model: files, options, resuming, measures, what is refused.
. "$(dirname "$0")/harness.bash"
cd "$scratch" || exit 1
small=(--scenes --width 32 --heads 2 --ff 32 --layers 1 --patch 10 --batch 8 --evaluate 20)

# ---------------------------------------------------------------------- train

exits 0 train "${small[@]}" --steps 20 -o model --threads 2 --log log.csv --curve curve.svg
says "the share of captions" "$out" "captions right"
says "what to try next" "$out" "see PICTURE.png --model model"
says "captions in the progress" "$err" "captions right"
same "files of the folder" "config.json model.safetensors preprocessor_config.json" \
    "$(cd model && echo *)"
same "a line for every step, and the title" 21 "$(wc -l <log.csv)"
exits 0 train "${small[@]}" --steps 20 -o again --threads 1 --quiet
cmp -s model/model.safetensors again/model.safetensors && ok "the same bits with another number of threads" ||
    bad "other bits with another number of threads"
exits 0 train --scenes --width 32 --heads 2 --ff 32 --encoder-layers 1 --decoder-layers 2 --patch 10 --stride 5 \
    --places learned --batch 8 --evaluate 20 --steps 5 -o learned --quiet
exits 0 see --scenes 5 --model learned
exits 2 train "${small[@]}" --steps 20 -o both --decoder-layers 2
says "layers twice" "$err" "leave out --decoder-layers"
exits 1 train "${small[@]}" --steps 20 -o model
says "a model that exists" "$err" "exists"

# A training that is interrupted after a checkpoint has the bits of one that was not.
exits 0 train "${small[@]}" --steps 60 -o whole --quiet
set -m
"$mha" train "${small[@]}" --steps 60 --checkpoint-every 10 -o half --quiet 2>err &
process=$!
set +m
await half.checkpoint.safetensors $process
kill -INT $process 2>/dev/null
wait $process
code=$?
if [ "$code" -eq 130 ]; then
    exits 2 train "${small[@]}" --steps 61 -o half --resume
    says "another setting" "$err" "--steps 61: the checkpoint was made with 60"
    exits 1 train -o other.safetensors --resume --checkpoint half.checkpoint.safetensors
    says "no scenes" "$err" "it is of a training on scenes"
    exits 0 train "${small[@]}" --steps 60 -o half --resume --threads 2
    cmp -s whole/model.safetensors half/model.safetensors && ok "a resumed training has the same bits" ||
        bad "other bits after --resume"
elif [ "$code" -eq 0 ]; then
    skip "resume" "the training ended before the signal"
else
    bad "stopped with $code" "$(cat err)"
fi

exits 2 train --scenes
says "no folder" "$err" "--scenes also needs -o FOLDER"
exits 2 train --scenes --images x -o y
says "two kinds" "$err" "exclude each other"
exits 2 train --scenes -o y --crop 2
says "pictures are not changed" "$err" "--crop is for a training with --images"
exits 2 train --scenes -o y --unknown 0.1
says "an option of sentences" "$err" "without --pairs, --images and --scenes"
exits 2 train --scenes -o y --patch 41
says "too large a patch" "$err" "the side of a patch must be between 1 and 40"
exits 2 train -o y --patch 4
says "patches of sentences" "$err" "with --images or --scenes"

# ------------------------------------------------------------------------ see

exits 0 see --scenes 40 --model model
says "captions of the test" "$out" "of 40 scenes of test, every word"
says "a control" "$out" "best fixed place"
says "cross heads" "$out" "cross 1.2"
exits 0 see --scenes 40 --model model --split train --seed 3 --json --threads 2
json "see --scenes"
same "its keys" "best_fixed_place cross_heads english french pointing_words split words words_right" "$keys"
same "scenes of both languages" "20 20" "$(of '"%d %d" % (j["english"]["scenes"], j["french"]["scenes"])')"
MHA_MODEL=model exits 0 see --scenes 3
exits 2 see --model model
says "no picture" "$err" "which picture"
exits 2 see x.png --scenes 3 --model model
says "scenes and files" "$err" "leave out the files"
exits 2 see --scenes 3 --model model --heads h.png
says "heads of many scenes" "$err" "--scenes only measures"
exits 2 see x.png --model model --split test
says "a split of files" "$err" "is for --scenes"
exits 2 see x.png --model model --language frensh
says "an unknown language" "$err" 'did you mean "french"?'
exits 2 see x.png --model model --top 2
says "classes of captions" "$err" "is for classifiers"
exits 2 see x.png --model model --store q8
says "storage of captions" "$err" "is for classifiers"
exits 1 see --scenes 3 --model nowhere
says "no such model" "$err" "nowhere/config.json"
exits 1 see --scenes 3 --model "$here/../../models/en-fr"
says "another model" "$err" '"model_type" is not "mha_captions"'
unset MHA_MODEL
exits 0 see --scenes 3
says "the model that comes with the program" "$out" "captions right"
cp -r model damaged
head -c 3000 model/model.safetensors >damaged/model.safetensors
exits 1 see --scenes 3 --model damaged
says "damaged weights" "$err" "damaged/model.safetensors"
sed 's/"ring"/"disk"/' model/config.json >damaged/config.json
exits 1 see --scenes 3 --model damaged
says "other words" "$err" '"words" is not the list'

if "$mha" scenes --split test --count 3 -o pictures 2>&1 | grep -q "built without libpng"; then
    skip "captions of files" "built without libpng"
    finish
    exit
fi
exits 0 see pictures/test-000000.png pictures/test-000001.png --model model
same "two captions each" "2 2" "$(grep -c '%  english ' <<<"$out") $(grep -c '%  french ' <<<"$out")"
exits 0 see pictures/test-000000.png --model model --json --language french
json "see"
same "the keys of see" "captions picture" "$keys"
same "one language" french "$(of 'j[0]["captions"][0]["language"] if len(j[0]["captions"]) == 1 else "more"')"
exits 0 see pictures/test-000000.png --model model --language english --heads h.svg
words=$(grep -c "<title>(end), head" h.svg)
same "the end in both heads" 2 "$words"
exits 0 see pictures/test-000000.png --model model --heads h.png
exits 0 see pictures/test-000000.png --model model --language english --heads -
says "heads in the terminal" "$out" "1.2"
exits 0 see pictures/test-000000-shapes.png --model model
exits 0 see "$here/../../docs/images/cat.png" --model model
says "a picture of any size" "$out" "cat.png"
exits 1 see nowhere.png --model model
says "no such picture" "$err" "nowhere.png"

finish
