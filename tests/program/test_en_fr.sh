#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The translator of the repository, models/en-fr: what models/README.md says of its files, everyday
# sentences, also in small letters, names and numbers, texts of any characters, damaged copies, and that commands use it by
# default. MHA_TEST_PAIRS=FILE, with held-out sentence pairs, measures its BLEU and chrF too.
. "$(dirname "$0")/harness.bash"
unset MHA_MODEL

model=$(realpath -m "$here/../../models/en-fr")
everyday=$here/../data/everyday.tsv
cd "$scratch" || exit 1

# ---------------------------------------------------------------- its files -----

about=$(cat "$model/../README.md")
weights=$model/model.safetensors
says "models/README.md: the checksum" "$about" "\`$(sha256sum "$weights" | cut -d ' ' -f 1)\`"
says "models/README.md: the size" "${about//,/}" " $(wc -c <"$weights") bytes"
bytes=$(cat "$model"/* | wc -c)
if [ "$bytes" -le 16000000 ]; then
    ok "at most 16 MB"
else
    bad "at most 16 MB" "$bytes bytes"
fi

# -------------------------------------------------------- everyday sentences -----

# A line of the file is a sentence, a tab, and a pattern for all of its translations that are right.
cut -f 1 "$everyday" >everyday.en
"$mha" translate <everyday.en >everyday.fr 2>err
same "everyday sentences: exit code" 0 $?
silent "everyday sentences: nothing on stderr" "$(cat err)"
right=0
count=0
wrong=()
while IFS=$'\t' read -r english pattern && IFS= read -r french <&3; do
    count=$((count + 1))
    if [[ $french =~ ^($pattern)$ ]]; then
        right=$((right + 1))
    else
        wrong+=("$english -> $french")
    fi
done <"$everyday" 3<everyday.fr
same "everyday sentences: how many there are" 100 "$count"
if [ "$right" -ge 85 ]; then
    ok "everyday sentences: $right of $count are right"
else
    bad "everyday sentences: $right of $count are right, not 85" "${wrong[@]}"
fi
printf '     not right: %s\n' "${wrong[@]}"
mapfile -t shown < <(sed -n '/^sentences="/,/"$/p' "$here/../../scripts/run.sh" |
    sed -e 's/^sentences="//' -e 's/"$//')
exits 0 translate "${shown[@]}"
same "make run shows right translations" "Je t'aime.
Où est la gare ?
J'aimerais une tasse de café, s'il vous plaît.
Tom vit à Boston.
S'il pleut demain, nous resterons à la maison.
Nous aurions dû lui dire la vérité.
Le vieil homme était assis sous un arbre." "$out"

# The same in small letters, and names and numbers: a line is a sentence, a tab and what must be copied. Of a
# time both numbers must be there.
tr '[:upper:]' '[:lower:]' <everyday.en | "$mha" translate >small.fr 2>err
right=$(paste <(cut -f 2 "$everyday") small.fr | awk -F '\t' '$2 ~ "^(" $1 ")$"' | wc -l)
if [ "$right" -ge 85 ]; then ok "small letters: $right of 100 are right"; else bad "small letters: $right of 100 are right"; fi
copied=$here/../data/copied.tsv
cut -f 1 "$copied" | "$mha" translate >copied.fr 2>err
right=$(paste <(cut -f 2 "$copied") copied.fr | awk -F '\t' '{ sub(":", " h ", $1) } index($2, $1) > 0' | wc -l)
if [ "$right" -ge 90 ]; then ok "names and numbers: $right of 100 are copied"; else bad "names and numbers: $right of 100 are copied"; fi

# ---------------------------------------------------------- single sentences -----

exits 0 translate "Tom lives in Boston." "I was born in 1990." "Tom was born in 1984." "It costs 1250 euros."
says "a name" "$out" "Tom"
says "a city" "$out" "Boston"
says "a year" "$out" "1990"
says "another year" "$out" "1984"
says "a price" "$out" "1250 euros"
exits 0 translate "Hello, how are you?" "Hello! How are you today?" "I don't know. Maybe tomorrow."
same "greetings, and two sentences in a line" "Bonjour, comment allez-vous ?
Bonjour ! Comment vas-tu aujourd'hui ?
Je ne sais pas. Peut-être demain." "$out"
exits 0 translate "I love you" "I would like a cup of coffee, please" "Where is the station" \
    "The cat that I saw yesterday ran away"
same "sentences without a final mark" "Je t'aime
J'aimerais une tasse de café, s'il vous plaît
Où est la gare
Le chat que j'ai vu hier s'est enfui" "$out"
ranked=(--best 4 "The cat that I saw yesterday ran away.")
exits 0 translate "${ranked[@]}"
usual=$out
exits 0 translate --length-penalty -10 "${ranked[@]}"
short=$out
cp -r "$model" penalty
echo '{"length_penalty": -10}' >penalty/generation_config.json
exits 0 translate --model penalty "${ranked[@]}"
same "the length penalty of generation_config.json" "$short" "$out"
if [ "$short" = "$usual" ]; then bad "a length penalty matters" "$usual"; else ok "a length penalty matters"; fi
exits 0 translate --json "I love you."
json "confidence"
same "a score for each sentence" True "$(of '0.0 < j[0]["confidence"] <= 1.0')"
same "sure of it" False "$(of 'j[0]["unsure"]')"
exits 0 translate "" "I love you."
same "an empty sentence has an empty translation" "" "$(head -n 1 <<<"$out")"

# ------------------------------------------------------ texts of any characters -----

if command -v python3 >/dev/null; then
    python3 - >any.txt <<'PYTHON'
import random
random.seed(1)
planes = [(0x20, 0x7E), (0xA1, 0x24F), (0x370, 0x1FFF), (0x2010, 0xD7FF), (0xE000, 0xFDCF),
          (0x10000, 0x1F9FF), (0x20000, 0x2FFFD), (0xF0000, 0x10FFFD)]
for _ in range(10000):
    line = "".join(chr(random.randint(*random.choice(planes))) for _ in range(random.randint(1, 12)))
    print(line.replace("\x85", "?").replace("\u2028", "?").replace("\u2029", "?"))
PYTHON
    "$mha" tokenize --model en-fr --ids <any.txt >any.out 2>err
    same "any characters: exit code" 0 $?
    same "any characters: a line for each" 10000 "$(wc -l <any.out)"
    "$mha" tokenize --model en-fr <any.txt >any.out 2>err
    silent "any characters: no unknown word" "$(grep -m 3 -F '<unk>' any.out)"
    head -n 300 any.txt >some.txt
    "$mha" translate <some.txt >some.out 2>err
    same "any characters: translated" 300 "$(wc -l <some.out)"
fi

# -------------------------------------------------------------- damaged copies -----

mkdir damaged
cp "$model"/* damaged/
for cut in 0 7 100 100000; do
    head -c "$cut" "$weights" >damaged/model.safetensors
    exits 1 translate --model damaged "I love you."
    says "cut off after $cut bytes" "$err" "model.safetensors"
    silent "cut off after $cut bytes: no output" "$out"
done
# The first 8 bytes are the length of the header, then follows its JSON.
for at in 2 12 40; do
    cp "$weights" damaged/model.safetensors
    printf '\xff' | dd of=damaged/model.safetensors bs=1 seek="$at" conv=notrunc 2>/dev/null
    exits 1 translate --model damaged "I love you."
    says "a wrong byte at $at" "$err" "model.safetensors"
    silent "a wrong byte at $at: no output" "$out"
done
cp "$weights" damaged/model.safetensors
for file in config.json tokenizer.json; do
    head -c 200 "$model/$file" >"damaged/$file"
    exits 1 translate --model damaged "I love you."
    says "a damaged $file" "$err" "$file"
    cp "$model/$file" damaged/
done
exits 0 translate --model damaged "I love you."
same "a whole copy" "$(sed -n 1p everyday.fr)" "$out"

# ------------------------------------------------------------------- defaults -----

exits 0 translate "I love you."
same "translate uses it" "$(sed -n 1p everyday.fr)" "$out"
exits 0 translate --model en-fr "I love you."
same "its short name" "$(sed -n 1p everyday.fr)" "$out"
exits 0 show --study 0 --json "I love you."
json "show uses it"
same "show: the model" "$model" "$(value model)"

# ------------------------------------------------------ sentences of the model -----

# Roles do not depend on the sentence that is shown: they are found on sentences.tsv.
roles() { of '[m["role"] for m in j["maps"]]'; }
same "a hundred pairs" "100 100" "$(wc -l <"$model/sentences.tsv") $(grep -c $'^[^\t]*\t[^\t]*$' "$model/sentences.tsv")"
exits 0 show --kind cross --json "I love you."
json "roles"
same "found on the model's sentences" "100 $model/sentences.tsv" \
    "$(of 'j["study"], j["study_file"]' | tr -d "(),'")"
roles >one
exits 0 show --kind cross --json "Where is the old man that I saw yesterday?"
roles >two
same "the same on another sentence" "" "$(diff one two)"
says "heads of cross-attention align" "$(cat one)" "aligned: says"
exits 0 show --head "cross 2.1" "I love you."
says "show says on how many" "$out" "roles: on 100 sentence pairs of $model/sentences.tsv"
exits 0 heads --model en-fr --kind cross --json
json "heads without a text"
same "heads and show agree" "" "$(diff one <(of '[h["role"] for h in j["heads"]]'))"
same "estimated links" True "$(of '600 < j["estimated_links"] <= j["words"]')"
exits 0 view -o page.html "I love you."
same "the page has the study" "100" "$(grep -A 1 '"study": {' page.html | grep -o '[0-9]*')"
mkdir alone
cp "$model"/*.json "$weights" alone/
exits 0 show --model alone --head "cross 2.1" "I love you."
says "without the file: on the text" "$out" "roles: on this text alone"
exits 2 heads --model alone
says "without the file: nothing to measure on" "$err" "a TEXT, --texts FILE or --pairs FILE"
exits 2 ablate --words --model en-fr
says "parts of speech are known of the corpus only" "$err" "give a TEXT"
exits 0 prune --model en-fr --sentences 2 --keep 63 --json
json "prune without a file"
same "prune: the model's sentences" "$model/sentences.tsv" "$(value pairs)"
exits 0 ablate --model en-fr --sentences 5 --repair --json
json "repair of the translator"
same "cross 2 has direct effects" 8 "$(of 'sum(h["kind"] == "cross" and h["layer"] == 2 and
    h["direct"] > 0.05 for h in j["heads"])')"

exits 0 heads --sentences 1 --json
json "heads uses the laboratory"
says "heads: the model" "$out" "lab-en-fr.safetensors"
MHA_MODEL=lab exits 0 translate "the cat sleeps"
same "a variable with a short name" "le chat dort" "$out"
exits 0 translate --attention "I love you."
says "attention: of the last layer" "$out" "cross, layer 2 of 2"
exits 0 translate --gold "the cat sleeps"
says "--gold is about the laboratory" "$out" "the grammar agrees"

# --------------------------------------------------------------- held-out pairs -----

if [ -n "${MHA_TEST_PAIRS:-}" ]; then
    cut -f 1 "$MHA_TEST_PAIRS" | awk '!seen[$0]++' >pairs.en
    "$mha" translate <pairs.en >pairs.fr
    run bleu --tsv --json pairs.fr "$MHA_TEST_PAIRS"
    echo "$out"
    for least in bleu:45 chrf2:65; do
        score=$(value "${least%:*}")
        if [ "${score%.*}" -ge "${least#*:}" ]; then
            ok "held-out pairs: ${least%:*} $score"
        else
            bad "held-out pairs: ${least%:*} $score" "less than ${least#*:}"
        fi
    done
else
    skip "held-out pairs" "MHA_TEST_PAIRS does not name a file"
fi

finish
