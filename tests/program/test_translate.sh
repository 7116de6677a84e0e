#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mha translate: with a laboratory that has learnt nothing, what is the same whatever the model says;
# with the one of the repository, what it says. test_translate_any.sh is about other models, and
# test_en_fr.sh about the translator of the repository.
. "$(dirname "$0")/harness.bash"
unset MHA_MODEL

shipped=$(realpath -m "$here/../../models/lab-en-fr.safetensors")
cd "$scratch" || exit 1

# ------------------------------------------------------------ no model -----

mkdir -p alone/bin
cp "$mha" alone/bin/mha
(cd alone && bin/mha translate --model lab "he sleeps") >out 2>err
same "no model: exit code" 1 $?
says "no model: says so" "$(cat err)" "there is no model"
says "no model: and what to do" "$(cat err)" "mha train"
case $(cat err) in
*..*) bad "no model: plain paths" "$(cat err)" ;;
*) says "no model: plain paths" "$(cat err)" " $scratch/alone/models/lab-en-fr.safetensors." ;;
esac
(cd alone && bin/mha translate "he sleeps") >out 2>err
same "no translator: exit code" 1 $?
says "no translator: says so" "$(cat err)" "Looked for models/en-fr here"
export MHA_MODEL=lab
exits 1 translate --model /nonexistent "he sleeps"
says "a file that is not there" "$err" "/nonexistent: cannot be opened"
exits 1 translate --model "$mha" "he sleeps"
silent "not a model: nothing on stdout" "$out"
exits 1 translate --model "$here/harness.bash" "he sleeps"
says "not a model: what one is" "$err" \
    'harness.bash: not a model file as "mha train" writes it (safetensors), or damaged: '

exits 2 translate --beam 0 x
exits 2 translate --beam 65 x
exits 2 translate --beam 2 --best 3 x
says "more than the beam" "$err" "--best 3 needs a --beam"
exits 2 translate --svg x.svg
exits 2 translate --svg x.svg "he sleeps" "she sleeps"
says "a picture of two sentences" "$err" "one sentence, not 2"
exits 2 translate --length-penalty much x
exits 2 translate --evaluate 5 "he sleeps"
exits 2 translate --evaluate 5 --attention
exits 2 translate --evaluate 5 --split tset
says "an unknown split: a suggestion" "$err" 'did you mean "test"?'
exits 2 translate --split test
says "a split of nothing" "$err" "--evaluate"
for option in "--seed 4" --errors "--split valid"; do
    # shellcheck disable=SC2086
    exits 2 translate $option "he sleeps"
    says "nothing to evaluate: ${option%% *}" "$err" "${option%% *} needs --evaluate N"
done
for option in --attention "--layer 1" "--head 1" "--svg x.svg" "--best 2" --gold; do
    # shellcheck disable=SC2086
    exits 2 translate --evaluate 5 $option
    says "no single sentence: ${option%% *}" "$err" "${option%% *} is for single sentences"
done
exits 2 translate --json --head 1 "he sleeps"
says "a head of JSON" "$err" "--head selects what is drawn"
exits 2 translate --length-penalty 1 "he sleeps"
says "a penalty of one hypothesis" "$err" "--beam 2 or more"
exits 2 translate --head "encoder 1.2" "he sleeps"
says "a head that is not drawn here" "$err" '"mha show" draws all'
exits 2 translate --head "cross 1.2" --layer 1 "he sleeps"
says "a layer twice" "$err" "--layer is given by --head already"
exits 2 translate --head "cross 1.2x" "he sleeps"
says "no head: what is one" "$err" 'use "cross 2.4" or "cross L2 H4"'
exits 2 translate --atention x
says "wrong option" "$err" "did you mean --attention?"

# -------------------------------------------------- a model of no skill -----

train_dull
head -c 20000 dull.safetensors >cut.safetensors
exits 1 translate --model cut.safetensors "he sleeps"
says "a damaged file" "$err" "cut.safetensors: "

mkdir -p models alone/share/mha/models alone/models
mkdir lab
exits 1 translate --model lab "he sleeps"
says "a folder with a short name" "$err" "lab: "
rmdir lab
cp dull.safetensors models/lab-en-fr.safetensors
exits 0 translate "he sleeps"
said=$out
rm -r models
cp dull.safetensors alone/share/mha/models/lab-en-fr.safetensors
same "the installed model" "$said" "$(cd / && "$scratch/alone/bin/mha" translate "he sleeps" 2>/dev/null)"
mv alone/share/mha/models/lab-en-fr.safetensors alone/models
same "the model of the tree" "$said" "$(cd / && "$scratch/alone/bin/mha" translate "he sleeps" 2>/dev/null)"
same "the model of the tree: its path" "12 heads of $scratch/alone/models/lab-en-fr.safetensors" \
    "$(cd / && "$scratch/alone/bin/mha" heads --sentences 1 2>/dev/null | head -n 1)"
export MHA_MODEL=$scratch/dull.safetensors
exits 0 translate "He sleeps."
same "a variable names the model" "$said" "$out"
exits 0 translate he sleeps
same "words without quotes" "$said" "$out"
exits 0 translate "he sleeps" "she sings" "he sleeps"
same "three sentences" 3 "$(wc -l <"$scratch/out")"
same "the third is the first" "$said" "$(tail -n 1 "$scratch/out")"
exits 2 translate --layer 3 "he sleeps"
says "no such layer" "$err" "the decoder has 2 layers"
exits 2 translate --head 3 "he sleeps"
says "no such head" "$err" "a layer has 2 heads"

# Lines: one out for each line in, in their order, and as if each were alone.
"$mha" corpus --split test --count 300 | cut -f 1 >lines
"$mha" translate <lines >together 2>err
same "as many lines" 300 "$(wc -l <together)"
same "line 7 alone" "$(sed -n 7p together)" "$("$mha" translate "$(sed -n 7p lines)" 2>/dev/null)"
same "line 300 alone" "$(sed -n 300p together)" "$("$mha" translate "$(sed -n 300p lines)" 2>/dev/null)"
for options in --no-cache "--threads 2" "--beam 1"; do
    # shellcheck disable=SC2086
    if "$mha" translate $options <lines 2>/dev/null | cmp -s - together; then
        ok "the same with $options"
    else
        bad "the same with $options"
    fi
done
"$mha" translate --json --attention --beam 3 --best 2 <lines >cached.json 2>/dev/null
if "$mha" translate --json --attention --beam 3 --best 2 --no-cache --threads 2 <lines 2>/dev/null |
    cmp -s - cached.json; then
    ok "scores and weights are the same without caches"
else
    bad "scores and weights are the same without caches"
fi

from "he sleeps\n\nthe wug sees the catt\nhe sleeps"
same "unknown words: exit code" 0 "$code"
same "an empty line stays, a last line needs no end" 4 "$(wc -l <"$scratch/out")"
same "the empty line" "" "$(sed -n 2p "$scratch/out")"
same "the last line" "$said" "$(tail -n 1 "$scratch/out")"
says "an unknown word" "$err" 'line 3: unknown word "wug"'
says "an unknown word: suggestions" "$err" 'line 3: unknown word "catt"; did you mean "cat"'
run translate $'he sleeps \xff'
same "bytes that are no text: exit code" 0 "$code"
says "bytes that are no text are an unknown word, not a question" "$err" $'unknown word "\ufffd"'
long=$(printf 'cat %.0s' $(seq 64))
from "he sleeps\n$long\nhe sleeps\n"
same "a line too long: exit code" 1 "$code"
says "a line too long: which" "$err" "line 2: the sentence is too long"
same "a line too long: the others" "$(printf '%s\n\n%s' "$said" "$said")" "$out"
from "$(printf 'cat%.0s' $(seq 5000))\nhe sleeps\n"
same "a word too long: the others" "$said" "$(tail -n 1 "$scratch/out")"
from ""
same "nothing: exit code" 0 "$code"
silent "nothing: nothing" "$out$err"

# What a stranger writes does not reach the terminal.
from '\033[31mred\033[0m \302\233x a\000b \377\376\n'
case $out$err in
*"$(printf '\033')"* | *"$(printf '\302\233')"*) bad "control characters stay out" ;;
*) ok "control characters stay out" ;;
esac
from '\033[31mred \377\376 "quoted"\n' --json
json "json of such a line"

# The laboratory says, in one line, that a sentence is outside its grammar.
exits 0 translate "the cat is sleeping"
silent "a sentence of the grammar: no warning" "$(grep outside <<<"$err")"
exits 0 translate "the cat sleep" "he sees her" "sleeps the"
same "sentences outside the grammar" 'mha: outside the grammar of the laboratory: "sleep" should be "sleeps"
mha: outside the grammar of the laboratory: unexpected word "sleeps"' "$(grep outside <<<"$err")"
from "he sees her\nthe cat sleep\n"
says "a line outside the grammar: its number" "$err" "mha: line 2: outside the grammar"
exits 0 translate --json "he sees her" "the cat sleep"
if command -v python3 >/dev/null; then
    same "json: inside and outside" "(True, False, False, '\"sleep\" should be \"sleeps\"')" \
        "$(of '"outside" not in j[0], not j[0]["in_grammar"], j[1]["in_grammar"], j[1]["outside"]')"
fi

# Someone who waits for an answer gets it before the end.
coproc talk { "$mha" translate 2>/dev/null; }
pid=$!
echo "he sleeps" >&"${talk[1]}"
read -r -t 20 answer <&"${talk[0]}"
same "an answer at once" "$said" "$answer"
eval "exec ${talk[1]}>&-"
wait $pid

exits 0 translate --json --attention --gold --beam 3 --best 3 "the cat sees the wug"
json "translate"
same "translate: keys" "complete gold in_grammar others outside score source source_tokens target target_tokens unknown weights" "$keys"
same "translate: the reason" "(False, 'unknown word \"wug\"')" \
    "$(of 'j[0]["in_grammar"], j[0]["outside"]')"
if command -v python3 >/dev/null; then
    says "weights are as many as there are tokens, and sum to 1" "$(python3 -c '
import json, sys
one = json.load(open(sys.argv[1]))[0]
weights = one["weights"]
fine = len(weights) == 2 and all(len(layer) == 2 for layer in weights)
for layer in weights:
    for head in layer:
        fine &= len(head) == len(one["target_tokens"])
        for row in head:
            fine &= len(row) == len(one["source_tokens"]) and abs(sum(row) - 1) < 1e-4
fine &= one["unknown"][0]["word"] == "wug" and one["unknown"][0]["position"] == 4
fine &= len(one["others"]) == 2 and one["others"][0]["score"] <= one["score"] + 1e-9
fine &= one["source_tokens"][-1] == "<end>"
print(fine)' "$scratch/out")" "True"
fi
from "he sleeps\n\n$long\n" --json
same "json with a problem: exit code" 1 "$code"
json "json with a problem"
says "json with a problem: which" "$out" '"error": "the sentence is too long'

exits 0 translate --attention "he sleeps"
says "maps: the layer" "$out" "Layer 2 of 2"
says "maps: heads and mean" "$out" "head 1  head 2  mean"
exits 0 translate --layer 1 --head 2 "he sleeps"
says "one map: the layer" "$out" "Layer 1 of 2"
says "one map: the head" "$out" "head 2"
case $out in *"head 1"* | *mean*) bad "one map: no other" "$out" ;; *) ok "one map: no other" ;; esac
cp "$scratch/out" one_map
for head in "cross 1.2" "CROSS.1.2" "Cross L1 H2" "l1h2" "1.2" "cross, layer 1, head 2"; do
    exits 0 translate --head "$head" "he sleeps"
    same "a head by another name: $head" "" "$(diff one_map "$scratch/out")"
done
exits 0 translate --svg maps.svg "he sleeps"
same "svg: the text too" "$said" "$out"
if command -v python3 >/dev/null; then
    if python3 -c 'import sys, xml.etree.ElementTree as e; e.parse(sys.argv[1])' maps.svg; then
        ok "svg is XML"
    else
        bad "svg is XML"
    fi
fi
exits 1 translate --svg /nonexistent/maps.svg "he sleeps"
exits 0 translate --best 3 "he sleeps"
same "three translations" 3 "$(wc -l <"$scratch/out")"
exits 0 translate --gold "he sleeps" "he sleep"
says "gold" "$out" "the grammar "
says "gold: no sentence" "$out" "the grammar has no such sentence"

exits 0 translate --evaluate 20 --seed 3 --split valid
says "an evaluation" "$out" "valid, seed 3: "
says "an evaluation: how many" "$out" " of 20 sentences exact"
says "an evaluation: how fast" "$err" "sentences per second"
exits 0 translate --evaluate 3 --errors
says "an evaluation: what is wrong" "$out" "  expected  "
exits 0 translate --evaluate 3 --errors --json
json "an evaluation"
says "an evaluation: keys" "$keys" "beam errors exact exact_share seed sentences sentences_per_second split words words_right words_right_share"

# ----------------------------------------------- the model of the repository -----

unset MHA_MODEL
if [ ! -f "$shipped" ]; then
    skip "the model of the repository" "models/lab-en-fr.safetensors is not there"
    finish
    exit
fi
about=$(cat "$(dirname "$shipped")/README.md")
says "models/README.md: the checksum" "$about" "\`$(sha256sum "$shipped" | cut -d ' ' -f 1)\`"
says "models/README.md: the size" "${about//,/}" " $(wc -c <"$shipped") bytes"
export MHA_MODEL=$shipped
exits 0 translate "The cat that I saw yesterday ran away" "The quick brown fox jumps"
same "two sentences" "le chat que j'ai vu hier s'est enfui
le renard brun rapide saute" "$out"
silent "two sentences: nothing on stderr" "$err"
exits 0 translate --gold --beam 4 "did she sleep?"
says "gold: agrees" "$out" "the grammar agrees"
exits 0 translate --attention "the quick brown fox jumps"
says "8 heads" "$out" "head 8"
exits 0 translate --evaluate 100 --json
finish
