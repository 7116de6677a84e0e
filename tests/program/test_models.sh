#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mha inspect, embed, generate, score and tokenize: usage, and files that are no models. The shipped
# translator is a model of any family, too. Numbers are checked by the tests of real models.
. "$(dirname "$0")/harness.bash"
translator=$here/../../models/lab-en-fr.safetensors

for command in inspect embed generate score tokenize; do
    exits 0 $command --help
    says "$command: help" "$out" "Examples:"
done
for command in embed generate score tokenize; do
    exits 2 $command text
    says "$command: no model" "$err" "$command: no model; give --model"
    exits 1 $command --model "$scratch/none" text
    says "$command: no such model" "$err" "$scratch/none"
done
exits 1 inspect "$scratch/none"
says "no such file, as everywhere" "$err" "$scratch/none: cannot be opened: No such file"
exits 2 generate "$translator" "the cat"
says "a model without --model" "$err" "is a file; a model is named by --model"
exits 2 generate the cat sleeps
says "a text without quotes" "$err" "put it in quotes: mha generate \"the cat ...\""
MHA_MODEL= exits 2 inspect
exits 1 inspect "$scratch"
says "a folder without a model" "$err" "config.json"
echo '{"model_type": "warp"}' >"$scratch/config.json"
exits 1 inspect "$scratch"
says "an unknown family by its name" "$err" "warp"
says "the list of known families" "$err" "llama"
exits 2 generate --model "$translator" --top-k 5 text
says "top-k without temperature" "$err" "give --temperature"
exits 2 generate --model "$translator" --temperature hot text
says "a temperature" "$err" "not a number from 0 to 100"
exits 2 generate --model "$translator" --system s text
exits 2 embed --model "$translator" --rank q --npy f text
exits 2 embed --model "$translator" --top 3 text
says "--top alone" "$err" "give --rank"
exits 2 embed --model "$translator" --pooling none text
exits 2 embed --model "$translator" --store f12 text
says "types of weights" "$err" "f32"
exits 2 embed --model "$translator" --arithmetic fast text
says "arithmetics" "$err" "native"

# Native arithmetic: said where there is none, and where it is.
exits 0 inspect --arithmetic native "$translator"
says "native arithmetic of f32: a note" "$err" "so products are exact; --store bf16 or --store i8"
says "native arithmetic of f32: the description" "$out" "exact, in f32"
exits 0 inspect --store i8 --arithmetic native "$translator"
silent "native arithmetic of i8: no note" "$err"
says "native arithmetic of i8" "$out" "native: rows rounded to 8 bits"
exits 0 inspect --store i8 "$translator"
silent "exact arithmetic is not mentioned" "$(grep arithmetic <<<"$out")"

# Files are not trusted: what they write never controls the terminal.
escape=$(printf '\033')
mkdir "$scratch/marks" "$scratch/kind"
marks='"added_tokens": [{"id": 1, "content": "a\u001b[31m", "special": true}]'
echo "{$marks, \"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}, \"unk_token\": \"a\"}}" \
    >"$scratch/marks/tokenizer.json"
exits 0 tokenize --model "$scratch/marks" "a$escape[31m"
says "tokenize: a piece" "$out" "a?[31m"
echo '{"normalizer": {"type": "a\u001b[31m"}, "model": {"type": "WordLevel", "vocab": {"<unk>": 0}}}' \
    >"$scratch/kind/tokenizer.json"
exits 1 tokenize --model "$scratch/kind" a
says "tokenize: an error" "$err" "a?[31m"
exits 1 tokenize --model "$scratch/marks" --decode 7
says "tokenize: no such id" "$err" "the ids are 0 to 1"
MHA_MODEL= exits 2 tokenize a
says "tokenize: MHA_MODEL is empty" "$err" "no model; give --model"
err=$(printf 'a\na\0a\n' | "$mha" tokenize --model "$scratch/marks" 2>&1)
says "tokenize: a byte of 0" "$err" "line 2: has a byte of 0"

# The translator has its words in its file.
for text in "The cat does not sleep." "Won't she eat the apple?"; do
    exits 0 translate --model "$translator" --beam 1 "$text"
    french=$out
    exits 0 generate --model "$translator" "$text"
    same "generate: translates as mha translate" "$out" "$french"
done
exits 0 tokenize --model "$translator" "the cat zorglub"
says "tokenize: an unknown word" "$out" "<unknown>"

# A file is what is in it, whatever its name.
for file in model.bin model.gguf model; do
    cp "$translator" "$scratch/$file"
    exits 0 translate --model "$scratch/$file" "the cat sleeps"
    same "$file: our translator" "$out" "le chat dort"
    exits 0 generate --model "$scratch/$file" "the cat sleeps"
    same "$file: the same in any model" "$out" "le chat dort"
    exits 0 tensors "$scratch/$file"
    says "$file: its tensors" "$out" "encoder.layers.0"
    rm "$scratch/$file"
done
printf 'GGUF\1\0\0\0' >"$scratch/model.safetensors"
for command in show generate; do
    exits 1 $command --model "$scratch/model.safetensors" a
    says "$command: a GGUF file with another name" "$err" "GGUF version 1 is not supported"
done
rm "$scratch/model.safetensors"

exits 0 inspect "$translator"
says "inspect: the translator" "$out" "encoder and decoder"
exits 0 inspect --model "$translator"
says "inspect: --model" "$out" "encoder and decoder"
exits 2 inspect --model "$translator" "$translator"
says "inspect: two models" "$err" "names the model already"
exits 0 inspect --json "$translator"
json "inspect"
finish
