#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mha translate with an encoder-decoder of another form: small ones with random weights
# (tiny_models.py).
. "$(dirname "$0")/harness.bash"
unset MHA_MODEL
if ! command -v python3 >/dev/null; then
    skip "translations by any model" "no python3"
    finish
    exit
fi
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
python3 "$here/tiny_models.py" || bad "small models"

# ---------------------------------------------------------------- options -----

exits 2 translate --model marian --beam 65 x
exits 2 translate --model marian --beam 2 --best 3 x
says "more than the beam" "$err" "--best 3 needs a --beam"
exits 2 translate --model marian --beam 1 --length-penalty 1 x
says "a penalty of one hypothesis" "$err" "--beam 2 or more"
for option in --gold "--evaluate 3" --no-cache; do
    # shellcheck disable=SC2086
    run translate --model marian $option
    same "refused: $option" 2 "$code"
    says "refused: what $option needs" "$err" "--model lab"
done
exits 2 translate --model marian --json --attention "the cat"
says "attention as JSON" "$err" "mha show --json"
exits 1 translate --model gpt2 "the cat"
says "no encoder-decoder" "$err" "mha generate"

# ----------------------------------------------------------------- results -----

exits 0 translate --model marian "the cat sleeps"
best=$out
run translate --model marian --beam 4 --length-penalty 1 "the cat sleeps"
same "a beam of 4 and a penalty of 1 are the default" "$best" "$out"
run translate --model marian --beam 1 "the cat sleeps"
greedy=$out
run generate --model marian --quiet "the cat sleeps"
same "a beam of 1 is greedy" "$greedy" "$out"
exits 0 translate --model marian --best 3 "the cat sleeps"
same "three results" 3 "$(wc -l <<<"$out")"
same "the best is first" "$best" "$(head -n 1 <<<"$out" | cut -f 2)"
same "results are ordered" "$(cut -f 1 <<<"$out" | sort -rn)" "$(cut -f 1 <<<"$out")"
silent "no marks in a file" "$(grep unsure <<<"$out")"
CLICOLOR_FORCE=1 run translate --model marian "the cat sleeps"
says "unsure translations are marked" "$out" "(unsure: 0."
run translate --model t5 "the cat sleeps"
plain=$out
exits 0 translate --model t5 --attention "the cat sleeps"
same "attention: the translation" "$plain" "$(head -n 1 <<<"$out")"
says "attention: all heads" "$out" "head 2"
says "attention: and their mean" "$out" "mean"
says "attention: the last layer" "$out" "cross, layer 2 of 2"
exits 0 translate --model t5 --layer 1 --head 2 "the cat sleeps"
says "attention: one head" "$out" "head 2"
silent "attention: not the other" "$(grep "head 1" <<<"$out")"
exits 2 translate --model t5 --layer 9 "the cat sleeps"
says "attention: no such layer" "$err" "--layer 9: the decoder has"
exits 2 translate --model t5 --head 99 "the cat sleeps"
says "attention: no such head" "$err" "--head 99: a layer has"
exits 0 translate --model t5 --svg map.svg "the cat sleeps"
same "attention: a picture" "$plain" "$out"
if python3 -c 'import sys, xml.etree.ElementTree as e; e.parse(sys.argv[1])' map.svg; then
    ok "attention: a picture that browsers read"
else
    bad "attention: a picture that browsers read"
fi
printf 'the cat sleeps\nthe dog\n' >texts.txt
exits 0 prune --model t5 --texts texts.txt --keep 9 -o pruned
exits 0 translate --model pruned "the cat sleeps"
exits 1 translate --model pruned --attention "the cat sleeps"
says "heads that differ are not drawn" "$err" "different numbers"
exits 0 translate --model t5 "the cat sleeps" "the cat"
same "two texts" 2 "$(wc -l <<<"$out")"

exits 0 translate --model marian --json --best 2 "the cat sleeps"
json "a result"
same "keys" "complete confidence log_probability others score source target unsure" "$keys"
same "the target" "$best" "$(value target)"
same "confidence" True "$(of 'abs(j[0]["confidence"] - 2.718281828 ** j[0]["score"]) < 1e-4')"
same "others are worse" True "$(of 'j[0]["others"][0]["confidence"] <= j[0]["confidence"]')"
exits 0 translate --model marian --json "the cat sleeps"
json "one result"
same "keys of one" "complete confidence log_probability score source target unsure" "$keys"

# ------------------------------------------------------------------- lines -----

for number in $(seq 300); do
    case $((number % 4)) in
    0) echo "the cat" ;;
    1) echo "the cat sleeps ." ;;
    2) echo "" ;;
    3) echo "the cats $number" ;;
    esac
done >lines
"$mha" translate --model marian <lines >all 2>/dev/null || bad "many lines"
same "a line for each line" 300 "$(wc -l <all)"
"$mha" translate --model marian --threads 2 <lines 2>/dev/null | cmp -s - all &&
    ok "threads change nothing" || bad "threads change nothing"
tac lines | "$mha" translate --model marian 2>/dev/null | tac | cmp -s - all &&
    ok "the order changes nothing" || bad "the order changes nothing"
same "empty lines stay empty" 75 "$(grep -c '^$' all)"
for number in 3 8; do
    run translate --model marian "$(sed -n ${number}p lines)"
    same "line $number alone" "$(sed -n ${number}p all)" "$out"
done
from 'the cat\r\nthe cat' --model marian
same "ends of lines" "$(head -n 1 <<<"$out")" "$(tail -n 1 <<<"$out")"
from '' --model marian
silent "no lines" "$out$err"

long=$(printf 'the cat %.0s' {1..30})
from "the cat\n$long\nthe cat\n" --model marian
same "a long line: exit" 1 "$code"
says "a long line: message" "$err" "line 2: the text is too long: it has 62 tokens, and the model reads up to 40"
same "a long line is empty" "" "$(sed -n 2p <<<"$out")"
same "the others are translated" "$(sed -n 1p <<<"$out")" "$(sed -n 3p <<<"$out")"
from "the cat\n$(printf 'x%.0s' {1..9000})\n" --model marian --json
same "a line beyond the buffer: exit" 1 "$code"
json "an error"
says "an error" "$(of 'j[1]["error"]')" "more than 8191 bytes"

finish
