#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mha train --pairs: files of pairs to a folder that translates; what is refused and reported, and
# that stopping it loses nothing.
. "$(dirname "$0")/harness.bash"
cd "$scratch" || exit 1

# Every subject with every verb: sentences that a small model learns within seconds.
while read -r en fr; do
    while IFS=/ read -r does fait; do
        printf '%s %s.\t%s %s.\n' "The $en" "$does" "${fr/_/ }" "$fait" >>all.tsv
    done <<'VERBS'
sleeps/dort
sings/chante
eats an apple/mange une pomme
is 12 years old/a 12 ans
looks at the sea/regarde la mer
VERBS
done <<'NOUNS'
cat Le_chat
dog Le_chien
boy Le_garçon
man L'homme
woman La_femme
teacher Le_professeur
girl La_fille
bird L'oiseau
NOUNS
awk 'NR % 5 == 1' all.tsv >valid.tsv
small=(--pairs all.tsv --valid valid.tsv --width 32 --heads 4 --ff 64 --layers 1 --vocabulary 400
    --batch-tokens 120 --lr 0.005 --evaluate 8 --threads 2)

# ------------------------------------------------------------ what is refused

exits 2 train --pairs all.tsv
says "pairs without validation" "$err" "--pairs also needs --valid"
exits 2 train --valid all.tsv
says "validation without pairs" "$err" "need --pairs"
exits 2 train --batch-tokens 100
says "a setting of the other kind" "$err" "--batch-tokens is for a training with --pairs"
exits 2 train --pairs all.tsv --valid valid.tsv --batch 8
says "and the reverse" "$err" "--batch is for a training without --pairs"
exits 2 train --pairs all.tsv --valid valid.tsv --schedule linear
says "a schedule that is none" "$err" "--schedule linear: not a valid value"
exits 2 train --pairs all.tsv --valid valid.tsv --average 3 --average-every 10
says "two averages" "$err" "average 3 and ema 0.998 exclude each other"
exits 1 train --pairs nowhere.tsv --valid valid.tsv -o m
says "no such file" "$err" "nowhere.tsv"
printf 'only one column\n' >bad.tsv
exits 1 train --pairs bad.tsv --valid valid.tsv -o m
says "a file without pairs" "$err" "none of its 1 lines is a pair (line 1: no tab"
exits 1 train --pairs all.tsv,valid.tsv --valid valid.tsv -o m
says "files of different lengths" "$err" "same number of lines"
touch occupied
exits 1 train "${small[@]}" --steps 2 -o occupied
says "a file where the folder should be" "$err" "is not a folder"

# --------------------------------------------------- a model that translates

{ cat all.tsv && printf 'no tab\n\xff\tx\nempty\t\n'; } >hostile.tsv
exits 0 train "${small[@]}" --pairs hostile.tsv --steps 300 --dropout 0 -o model/ --curve c.svg --log l.csv
says "lines that are skipped are named" "$err" \
    "hostile.tsv: 3 of 43 lines skipped: line 41 (no tab between two sentences), line 42 (not UTF-8), line 43 (a side is empty)"
says "what was read" "$err" "hostile.tsv: 40 pairs,"
says "BLEU is printed while training" "$err" "BLEU"
says "and at the end" "$out" "translations       BLEU"
says "what to try" "$out" "translate --model model \"Hello, how are you?\""
for file in config.json model.safetensors tokenizer.json tokenizer_config.json generation_config.json; do
    if [ -s "model/$file" ]; then ok "there is $file"; else bad "there is no $file"; fi
done
if [ -e model.checkpoint.safetensors ] || [ -e model.validation ]; then
    bad "something is left over" "$(ls)"
else
    ok "nothing is left over"
fi
exits 0 translate --model model "The girl looks at the sea." "The man is 12 years old."
says "a sentence" "$out" "La fille regarde la mer."
says "numbers" "$out" "L'homme a 12 ans."
exits 0 inspect model
says "it is Marian's form" "$out" "marian"
exits 0 train --pairs all.tsv --valid valid.tsv --width 32 --heads 4 --ff 64 --steps 2 -o other \
    --tokenizer model/tokenizer.json
cmp -s model/tokenizer.json other/tokenizer.json && ok "a tokenizer can be given" || bad "another tokenizer"
exits 1 train "${small[@]}" --steps 2 -o model
says "an existing model is kept" "$err" "--force"

# a model that is trained further
exits 2 train --start model
says "a start without pairs" "$err" "--start need --pairs"
exits 2 train "${small[@]}" --start model -o more
says "sizes are those of the start" "$err" "leave out --"
exits 1 train --pairs all.tsv --valid valid.tsv --start nowhere -o more
says "a start that is not there" "$err" "nowhere/config.json"
further=(--pairs all.tsv --valid valid.tsv --batch-tokens 120 --evaluate 8 --start model --ema 0 --translate 0)
exits 0 train "${further[@]}" --steps 3 --lr 1e-9 --warm-up 0 --type f32 -o more
exits 0 translate --model more "The girl looks at the sea."
says "it begins where the other ended" "$out" "La fille regarde la mer."
cmp -s model/tokenizer.json more/tokenizer.json && ok "with its tokenizer" || bad "another tokenizer"
exits 0 train "${further[@]}" --steps 10 -o further --threads 2 --arithmetic native
says "how products are computed" "$err" "products are native: rows rounded to bf16"
exits 0 train "${further[@]}" --steps 10 -o again --threads 1 --arithmetic native
cmp -s further/model.safetensors again/model.safetensors && ok "and the same bits again" || bad "other bits"

# two files with corresponding lines are the same pairs
cut -f 1 all.tsv >all.en
cut -f 2 all.tsv >all.fr
exits 0 train "${small[@]}" --steps 20 -o one
exits 0 train "${small[@]}" --pairs all.en,all.fr --steps 20 --threads 1 -o two
cmp -s one/model.safetensors two/model.safetensors && ok "two files give the same bits" || bad "other bits"

# --------------------------------------------------------- stopping and going on

exits 2 train "${small[@]}" --arithmetic fast
says "an arithmetic that is none" "$err" "--arithmetic fast: not a valid value"
long=("${small[@]}" --steps 150 --head-dropout 0.1 --average 3 --average-every 20 --ema 0 --translate 0
    --arithmetic native)
exits 0 train "${long[@]}" -o whole
set -m
"$mha" train "${long[@]}" -o half --log watched.csv >out 2>err </dev/null &
job=$!
await watched.csv $job
kill -INT $job
wait $job 2>/dev/null
code=$?
set +m
if [ "$code" -eq 130 ]; then
    exits 2 train "${small[@]}" --arithmetic exact -o half --resume
    says "another arithmetic" "$err" "--arithmetic exact: the checkpoint was made with native"
    exits 0 train "${long[@]}" -o half --threads 1 --resume
    cmp -s whole/model.safetensors half/model.safetensors && ok "a resumed training has the same bits" ||
        bad "other bits after --resume"
elif [ "$code" -eq 0 ]; then
    skip "resume" "the training ended before the signal"
else
    bad "stopped with $code" "$(cat err)"
fi
exits 0 train "${small[@]}" --steps 4000 --patience 2 --translate 0 --lr 0.02 --ema 0 -o patient
says "patience ends a training" "$out" "ended early"

# ----------------------------------------------- pairs that are derived from pairs

if command -v python3 >/dev/null; then
    for verb in is was has; do # nouns are taken from "The ..." with a verb, three times
        printf 'The horse %s here.\tLe cheval est là.\nThe bird %s here.\tL’oiseau est là.\n' $verb $verb
        printf 'The mouse %s here.\tLa souris est là.\nThe boy %s here.\tLe garçon est là.\n' $verb $verb
    done >pronouns.tsv
    cat >>pronouns.tsv <<'PAIRS'
I see a horse.	Je vois un cheval, un oiseau et une souris.
He ate because he was hungry.	Il a mangé parce qu'il avait faim.
She sang, but she was sad.	Elle chantait, mais elle était triste.
He said that it was his.	Il a dit qu'il était à lui.
He ate.	Il a mangé.
He ran when he saw her.	Il a couru quand il l'a vue.
PAIRS
    same "pairs whose it stands for the subject" "The bird ate because it was hungry.	L'oiseau a mangé parce qu'il avait faim.
The horse ate because it was hungry.	Le cheval a mangé parce qu'il avait faim.
The mouse sang, but it was sad.	La souris chantait, mais elle était triste." \
        "$(python3 -B "$here/../../scripts/pronoun_pairs.py" pronouns.tsv | sort)"
    # Nouns are known from three pairs, adjectives from three with "is" and two with an article.
    for verb in "is here" "was here" "eats"; do
        printf 'The fox %s.\tLe renard est %s.\nThe table %s.\tLa table est %s.\n' "$verb" "$verb" "$verb" "$verb"
        printf 'He is quick.\tIl est rapide.\nShe has a quick fox, %s.\tElle a un renard rapide, %s.\n' "$verb" "$verb"
    done >phrases.tsv
    for n in {1..60}; do # translations stand beside a word more often than elsewhere
        printf 'Tom has %d dogs in Paris.\tTom a %d chiens à Paris.\n' $((n + 200)) $((n + 200))
    done >>phrases.tsv
    for seed in 1 2; do
        PYTHONHASHSEED=$seed python3 -B "$here/../../scripts/phrase_pairs.py" phrases.tsv >"derived-$seed.tsv"
    done
    same "phrases: the same pairs every time" "" "$(cmp derived-1.tsv derived-2.tsv 2>&1)"
    says "phrases: small letters" "$(cat derived-1.tsv)" "he is quick.	Il est rapide."
    says "phrases: adjectives before nouns" "$(cat derived-1.tsv)" "The quick fox is here.	Le renard rapide est is here."
    same "phrases: numbers are the same on both sides" "" \
        "$(awk -F '\t' '/Tom has/ { gsub(/[^0-9]/, "", $1); gsub(/[^0-9]/, "", $2); if ($1 != $2) print }' derived-1.tsv)"
    if grep -qE 'Tom has [0-9]{7}' derived-1.tsv; then ok "phrases: long numbers"; else bad "phrases: long numbers" none; fi
else
    skip "pairs that are derived" "no python3"
fi

finish
