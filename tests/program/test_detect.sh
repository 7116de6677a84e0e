#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mha train --scenes --detect and mha see with the model: files, options, resuming, measures, boxes, what is refused.
. "$(dirname "$0")/harness.bash"
cd "$scratch" || exit 1
small=(--scenes --detect --width 32 --heads 2 --ff 32 --layers 1 --patch 10 --batch 8 --queries 4 --evaluate 20)

# ---------------------------------------------------------------------- train

exits 0 train "${small[@]}" --steps 20 -o model --threads 2 --log log.csv --curve curve.svg
says "the average precision" "$out" "% at an overlap of 0.5 (20 scenes of the validation set)"
says "what to try next" "$out" "see PICTURE.png --model model"
says "precision in the progress" "$err" "average precision"
same "files of the folder" "config.json model.safetensors preprocessor_config.json" \
    "$(cd model && echo *)"
same "a line for every step, and the title" 21 "$(wc -l <log.csv)"
says "a column for the precision" "$(head -1 log.csv)" "valid_average_precision"
says "an axis of queries" "$(cat curve.svg)" "Loss per query"
exits 0 train "${small[@]}" --steps 20 -o again --threads 1 --quiet
cmp -s model/model.safetensors again/model.safetensors && ok "the same bits with another number of threads" ||
    bad "other bits with another number of threads"

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
    exits 2 train "${small[@]/4/5}" --steps 60 -o half --resume
    says "another number of queries" "$err" "--queries 5: the checkpoint was made with 4"
    exits 1 train --scenes -o other --resume --checkpoint half.checkpoint.safetensors
    says "no boxes" "$err" "it is of a training on scenes with boxes (--detect)"
    exits 0 train "${small[@]}" --steps 60 -o half --resume --threads 2
    cmp -s whole/model.safetensors half/model.safetensors && ok "a resumed training has the same bits" ||
        bad "other bits after --resume"
elif [ "$code" -eq 0 ]; then
    skip "resume" "the training ended before the signal"
else
    bad "stopped with $code" "$(cat err)"
fi

exits 2 train --detect -o y
says "no scenes" "$err" "--detect needs --scenes"
exits 2 train --scenes --detect -o y --queries 2
says "too few queries" "$err" "scenes have up to 3 shapes"
exits 2 train --scenes --detect -o y --queries 65
says "too many queries" "$err" "between 1 and 64"
exits 2 train --scenes -o y --queries 5
says "queries of captions" "$err" "--queries is for a training with --scenes --detect"
exits 2 train --scenes --detect -o y --box-weight -1
says "a weight below 0" "$err" "--nothing-weight 0.3, box-weight -1"
exits 2 train --scenes --detect -o y --flip 0.5
says "pictures are not changed" "$err" "--flip is for a training with --images"

# ------------------------------------------------------------------------ see

exits 0 see --scenes 40 --model model
says "precision on the test" "$out" "(at an overlap of 0.5, 40 scenes of test)"
says "a class" "$out" "red circle"
says "queries" "$out" "query 4"
says "a control" "$out" "best fixed place"
says "cross heads" "$out" "cross 1.2"
exits 0 see --scenes 40 --model model --split train --seed 3 --json --threads 2
json "see --scenes"
same "its keys" "average_precision best_fixed_place classes cross_heads found queries scenes shapes split" "$keys"
same "classes and queries" "36 4" "$(of '"%d %d" % (len(j["classes"]), len(j["queries"]))')"
exits 2 see x.png --model model --top 2
says "classes of a detector" "$err" "is not for detectors"
exits 2 see x.png --model model --language french
says "a language of a detector" "$err" "is not for detectors"
exits 2 see x.png --model model --boxes b.jpg
says "another kind of file" "$err" "must end in .png or .svg"
exits 2 see x.png y.png --model model --boxes b.png
says "boxes of many pictures" "$err" "is for one picture, not 2"
exits 2 see x.png --model model --boxes b.png --heads b.png
says "one file for two" "$err" "given for two different files"
exits 2 see --scenes 3 --model model --boxes b.png
says "boxes of scenes" "$err" "--scenes only measures"
exits 2 see x.png --model "$here/../../models/en-fr" --boxes b.png
says "boxes of another model" "$err" "is for detectors"
cp -r model damaged
head -c 3000 model/model.safetensors >damaged/model.safetensors
exits 1 see --scenes 3 --model damaged
says "damaged weights" "$err" "damaged/model.safetensors"
sed 's/"ring"/"disk"/' model/config.json >damaged/config.json
exits 1 see --scenes 3 --model damaged
says "other kinds" "$err" '"kinds" is not the list'

if "$mha" scenes --split test --count 3 -o pictures 2>&1 | grep -q "built without libpng"; then
    skip "boxes of files" "built without libpng"
    finish
    exit
fi
picture=pictures/test-000000.png
exits 0 see $picture pictures/test-000001.png --model model --least 0
same "all queries of both" 8 "$(grep -c ' %  ' <<<"$out")"
exits 0 see $picture --model model --least 100
says "nothing" "$out" "nothing with a score of at least 100 %"
exits 0 see $picture --model model --json --least 0
json "see"
same "the keys of see" "boxes picture" "$keys"
same "boxes by falling scores" "4 True" \
    "$(of '"%d %s" % (len(j[0]["boxes"]), [b["score"] for b in j[0]["boxes"]] == sorted((b["score"] for b in j[0]["boxes"]), reverse=True))')"
same "sides in order" True "$(of 'all(b["left"] < b["right"] and b["top"] < b["bottom"] for b in j[0]["boxes"])')"
exits 0 see $picture --model model --least 0 --boxes b.svg --heads h.svg
same "two lines for every box" 8 "$(grep -c 'class="box"' b.svg)"
same "every query in both heads" 8 "$(grep -c '<title>[1-4] [a-z ]*, head 1' h.svg)"
exits 0 see $picture --model model --boxes b.png --heads h.png
exits 0 see $picture --model model --heads -
says "heads in the terminal" "$out" "1.2"
exits 0 see "$here/../../docs/images/cat.png" --model model --least 0 --json
same "boxes in pixels of the file" True "$(of 'max(b["right"] for b in j[0]["boxes"]) > 45')"

finish
