#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mha heads, show, view, ablate, prune and serve of models that are no translators: small ones with
# random weights (tiny_models.py) and, if MHA_TEST_MINILM names its folder, a real one.
. "$(dirname "$0")/harness.bash"
unset MHA_MODEL
if ! command -v python3 >/dev/null; then
    skip "models of other forms" "no python3"
    finish
    exit
fi
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
python3 "$here/tiny_models.py" || bad "small models"
printf 'the cat sleeps\n\nthe black dog sleeps .\r\ndoes the cat sleep ?\n' >texts.txt
text="the unbelievably black cat sleeps ?"

cat >page.py <<'EOF'
import array, base64, json, math, sys

def data(path):
    text = open(path, encoding="utf-8").read()
    begin = "<script id=\"data\" type=\"application/json\">"
    at = text.index(begin) + len(begin)
    return json.loads(text[at:text.index("</script>", at)])

def floats(text):
    return array.array("f", base64.b64decode(text))

def worst(kind):
    """The largest difference of a weight from the softmax of its scores, over all heads."""
    rows, columns, width = kind["rows"], kind["columns"], kind["width"]
    q, k = floats(kind["q"]), floats(kind["k"])
    most = 0.0
    for n, text in enumerate(kind["weights"]):
        weights = floats(text)
        for i in range(rows):
            seen = i + 1 if kind["causal"] else columns
            a = (n * rows + i) * width
            scores = [sum(q[a + c] * k[(n * columns + j) * width + c] for c in range(width))
                      / math.sqrt(width) for j in range(seen)]
            powers = [math.exp(s - max(scores)) for s in scores]
            for j in range(seen):
                most = max(most, abs(powers[j] / sum(powers) - weights[i * columns + j]))
    return most
EOF

# python NAME CODE: the code prints what is wrong.
python() {
    silent "$1" "$(PYTHONPATH=. python3 -c "from page import *
$2" 2>&1)"
}

# -------------------------------------------------------------- examples -----

# example NAME ARGUMENT...: runs an example of the library; $out is what it prints.
example() {
    local program
    program=$(dirname "$mha")/examples/$1
    if [ ! -x "$program" ]; then
        skip "example $1" "not built"
        return 1
    fi
    out=$("$program" "${@:2}" 2>&1) && ok "example $*" || bad "example $*" "$out"
}
example 12_sentence_vectors bert "the cat sleeps" "the cat sleeps" &&
    says "the cosine of equal texts" "$out" " 1.000  the cat sleeps"
for model in gpt2 t5; do
    example 13_generate $model "the cat" "the black dog sleeps" &&
        says "$model: in a batch and alone" "$out" "alone gives the same tokens: yes"
    example readme_model $model "the cat"
done
program=$(dirname "$mha")/examples/readme_model
if [ -x "$program" ]; then
    err=$("$program" gpt2 "$(printf 'the %.0s' {1..600})" 2>&1) && bad "a long text" "$err"
    says "a long text" "$err" "tokens, more than 512"
fi
for model in bert gpt2 t5; do
    example 14_heads_of_a_model $model "$text" &&
        says "$model: a head is disabled" "$out" "the hidden states move by"
done

# ----------------------------------------------------------------- embed -----

# embed ARGUMENT...: mha embed with texts.txt as its input.
embed() {
    out=$("$mha" embed --model bert "$@" <texts.txt 2>err) || bad "embed $*" "$(cat err)"
    err=$(cat err)
}
embed
same "a vector per line" 4 "$(wc -l <<<"$out")"
silent "no text is cut" "$err"
embed --rank "the black cat"
same "blank lines are not ranked" 3 "$(wc -l <<<"$out")"
embed --rank "the cat sleeps" --json
echo "$out" >out
same "numbers of lines" "[1, 3, 4]" "$(of 'sorted(row["line"] for row in j)')"
embed --longest 4
same "texts that are cut" "mha: 3 of 4 texts were cut to 4 tokens; see --longest" "$err"
echo '{"max_seq_length": 6}' >bert/sentence_bert_config.json
embed
says "the recommended length" "$err" "of 4 texts were cut to 6 tokens"
embed --longest 7
says "more than that" "$err" "1 of 4 texts was cut to 7 tokens"
rm bert/sentence_bert_config.json
exits 0 embed --model bert --longest 100 "$(printf 'the %.0s' {1..50})"
same "the limit of the model" "mha: 1 of 1 texts was cut to 40 tokens; the model reads no more" "$err"
if command -v script >/dev/null; then
    out=$(script -qec "'$mha' embed --model bert" /dev/null < <(printf 'the cat\n\004'; sleep 1))
    says "texts are typed" "$out" "reading texts from the terminal; Ctrl-D ends"
else
    skip "texts are typed" "no script"
fi

# ----------------------------------------------------------------- heads -----

for model in bert gpt2 t5; do
    exits 0 heads --model $model "$text"
    says "$model: what was measured" "$out" "heads of $model"
    exits 0 heads --model $model --texts texts.txt --json
    exits 0 show --model $model --layer 2 "$text"
    exits 0 show --model $model --values norm --json "$text"
    exits 0 view --model $model -o $model.html "$text"
done
exits 0 heads --model bert "$text"
says "tokens" "$out" '11 tokens'
says "why there is no importance" "$out" "no importance: it needs gradients"
exits 2 heads --model bert --sort importance "$text"
says "not sorted by importance" "$err" "--sort: importance is a derivative of the loss of our translator"
exits 2 heads --model bert --where "importance>0.1" "$text"
exits 2 heads --model "$here/../../models/lab-en-fr.safetensors" --texts texts.txt --sort importance
says "nor on texts" "$err" "on other models and --texts"
exits 2 heads --model bert --like "cross 1.1" "$text"
says "no cross-attention to compare with" "$err" "--like cross 1.1: the model has no cross-attention"
exits 0 heads --model bert "$text"
says "no importance" "$(grep '^encoder 2.3' <<<"$out" | tail -c 3)" " -"
exits 0 heads --model bert --texts texts.txt
says "texts" "$out" "on 3 texts of texts.txt; 21 tokens"
exits 0 heads --model bert --texts texts.txt --sentences 2
says "the first texts" "$out" "on 2 texts"
exits 0 heads --model bert/model.safetensors "$text"
exits 0 show --model bert --head "encoder 2.3" "$text"
says "pieces of words" "$out" "##ably"
exits 2 show --model bert --head "encoder 9.3" "$text"
says "no such layer" "$err" "show: --head encoder 9.3: there are 2 layers"
exits 2 show --model bert --head "encoder 2.9" "$text"
says "no such head" "$err" "show: --head encoder 2.9: a layer has 3 heads"
exits 2 show --model bert --head "cross 1.1" "$text"
says "no cross-attention" "$err" "show: --head cross 1.1: the model has no cross-attention"
exits 2 show --model gpt2 --kind encoder "$text"
says "no encoder" "$err" "show: --kind encoder: the model has no encoder"
exits 0 show --model bert --head "encoder 2.3" --words "$text"
says "whole words" "$out" "unbelievably"
exits 2 show --model bert --values norm --words "$text"
says "norms of words" "$err" "--words joins weights"
exits 0 heads --model bert --json "$text"
words=$(of 'j["heads"][0]["measures"]["distance"]')
exits 0 heads --model bert --json --pieces "$text"
pieces=$(of 'j["heads"][0]["measures"]["distance"]')
if [ "$words" != "$pieces" ]; then ok "pieces have other numbers"; else bad "pieces have other numbers" "$words"; fi
exits 0 show --model t5 --words --json "$text"
exits 0 view --model bert --words -o words.html "$text"
python "a page that begins with words" 'if not data("words.html")["words"]: print("no")'
exits 0 show --model t5 --kind cross --to "le chat dort" "the cat sleeps"
says "a given target" "$out" "the target attends to the source"

# ------------------------------------------------------------------ page -----

python "an encoder on a page" '
page = data("bert.html")
s, = page["sentences"]
kind, = s["kinds"]
if s["source"] != ["[CLS]", "the", "un", "##believ", "##ably", "black", "cat", "sleep", "##s", "?", "[SEP]"]: print(s["source"])
if s["source_marks"] != [1] + [0] * 9 + [1]: print(s["source_marks"])
if s["source_continues"] != [0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0]: print(s["source_continues"])
if worst(kind) > 1e-5: print("weights", worst(kind))
length = sum(x * x for x in floats(s["vector"]))
if abs(length - 1) > 1e-5: print("vector", length)
losses = floats(kind["losses"])
if len(losses) != 6 or min(losses) < -1e-6 or max(losses) < 1e-4: print("losses", losses)
if page["model"]["predicts"] or page["model"]["family"] != "bert": print(page["model"])
if "said" in s or "target" in s or "study" in page: print("more than there is")
'
python "a decoder on a page" '
page = data("gpt2.html")
s, = page["sentences"]
kind, = s["kinds"]
if kind["name"] != "decoder" or not kind["causal"]: print(kind["name"])
if worst(kind) > 1e-5: print("weights", worst(kind))
if s["expected"] != s["target"][1:] + ["\u2026"]: print(s["expected"])
if s["log_likelihood"][-1] is not None or max(s["log_likelihood"][:-1]) > 0: print(s["log_likelihood"])
if s["target"][3:5] != ["u", "n"] or sum(s["target_continues"]) < 10: print(s["target"])
'
exits 0 view --model t5 -o given.html --to "le chat dort" "the cat sleeps"
python "an encoder-decoder on a page" '
page = data("t5.html")
s, = page["sentences"]
if [kind["name"] for kind in s["kinds"]] != ["encoder", "decoder", "cross"]: print("kinds")
if worst(s["kinds"][2]) > 1e-5: print("cross", worst(s["kinds"][2]))
if worst(s["kinds"][0]) < 1e-3: print("a position bias is missing")
if s["source"][-1] != "</s>" or s["target"][0] != "<pad>": print(s["source"], s["target"])
given, = data("given.html")["sentences"]
if given["expected"][-1] != "</s>" or given["log_likelihood"][-1] is None: print(given["expected"])
if len(s["target"]) != s["kinds"][1]["rows"] or "translation" not in s: print("target")
if not 0 < s["confidence"] <= 1 or s["unsure"] != (s["confidence"] < 0.35): print(s["confidence"])
if "confidence" in given: print("the confidence of a given text")
'
exits 0 heads --model vit picture.ppm
exits 0 view --model vit -o vit.html picture.ppm
python "patches of a picture" '
s, = data("vit.html")["sentences"]
kind, = s["kinds"]
if s["source"][:3] != ["[CLS]", "1.1", "1.2"] or len(s["source"]) != 10: print(s["source"])
if worst(kind) > 1e-5: print("weights", worst(kind))
'
exits 1 heads --model vit texts.txt
says "no picture" "$err" "the model reads pictures"
exits 1 heads --model vit /nonexistent.ppm
says "no such picture" "$err" "/nonexistent.ppm"
head -c 100 picture.ppm >cut.ppm
exits 1 heads --model vit cut.ppm
says "half of a picture" "$err" "cut off"
exits 0 view --model vit -o two.html --study 0 picture.ppm picture.ppm
says "words are pictures" "$out" "2 pictures"
python "the picture itself" '
two = data("two.html")["sentences"]
if len(two) != 2: print(len(two))
picture = two[0]["picture"]
if [picture[n] for n in ("across", "marks", "reads")] != [3, 1, "class"]: print(picture)
if len(base64.b64decode(picture["bytes"])) != picture["channels"] * picture["side"] ** 2: print("bytes")
if "probabilities" in two[0]: print("a model without classes has probabilities")
if two[0]["kinds"][0]["roles"][0]["rule"] != "picture": print(two[0]["kinds"][0]["roles"][0])
'
exits 1 view --model vit -o two.html picture.ppm /nonexistent.ppm
says "one of them is missing" "$err" "/nonexistent.ppm"
exits 2 show --model vit --where "self>0.5" picture.ppm
says "no conditions on words" "$err" "leave it out with a model that reads pictures"
exits 2 serve --model bert picture.ppm
says "a picture for a model of texts" "$err" "this model reads texts"
exits 1 serve --model vit /nonexistent.ppm
says "no such example" "$err" "/nonexistent.ppm"
exits 0 view --model bert -o study.html --texts texts.txt "$text"
python "roles of texts" '
study = data("study.html")["study"]
if study["file"] != "texts.txt" or study["sentences"] != 3 or len(study["heads"]) != 6: print(study)
if study["heads"][0]["importance"] is not None: print(study["heads"][0])
'

# ------------------------------------------------------- ablate and prune -----

exits 0 ablate --model bert --texts texts.txt --json
same "an encoder loses 1 - cosine" True "$(of '(j["unit"] == "1 - cosine" and j["plain"]["loss"] < 1e-6 and
    j["plain"]["words_right"] is None and len(j["heads"]) == 6 and j["heads"][0]["delta"] > 0)')"
exits 0 ablate --model gpt2 --texts texts.txt --mode mean --json
same "a decoder loses nats" True "$(of '(j["unit"] == "nats per token" and j["plain"]["loss"] > 1 and
    len(j["layers"]) == 2)')"
exits 0 ablate --model bert --texts texts.txt --together --svg cost.svg
says "what the loss is" "$out" "1 - the cosine"
says "a picture" "$(cat cost.svg)" "1 - cosine"
exits 0 prune --model bert --texts texts.txt --keep 2 --json
same "pruned in the order of costs" True "$(of '([s["heads"] for s in j["steps"]] == [5, 4, 3, 2] and
    [s["alone"] for s in j["steps"]] == sorted(s["alone"] for s in j["steps"]))')"
exits 0 prune --model gpt2 --texts texts.txt
says "all heads" "$out" "tokens right"

# written MODEL KEEP OPTION...: prunes a model of two layers of three heads and writes it.
written() {
    rm -rf small
    exits 0 prune --model "$1" --texts texts.txt --keep "$2" -o small --json "${@:3}"
}
written bert 2
same "the heads that are left" 2 "$(python3 -c '
import json
config = json.load(open("small/config.json"))
print(6 - sum(map(len, config["pruned_heads"].values())))')"
same "every layer keeps a head" True "$(of '(len({s["layer"] for s in j["steps"]}) == 2 and
    all(sum(s["layer"] == n for s in j["steps"]) < 3 for n in (1, 2)))')"
exits 0 embed --model small "the cat"
exits 1 heads --model small "$text"
says "layers differ" "$err" "different numbers of heads"
exits 1 prune --model bert --texts texts.txt --keep 2 -o small
says "nothing is replaced" "$err" "small exists already; give --replace"
exits 0 prune --model bert --texts texts.txt --keep 3 -o small --replace
written gpt2 4
exits 0 generate --model small --most 2 "the cat"
written t5 8
exits 0 generate --model small --most 2 "the cat"
for model in "bert 4" "gpt2 3" "t5 8"; do
    # shellcheck disable=SC2086
    written $model --zeros
    exits 0 heads --model small "$text"
done

# ----------------------------------------------------------------- links -----

# A model of llama2.c: width 2, one layer, one head, 8 positions, and the tokens of all bytes.
mkdir files
python3 -c '
import struct
tokens = [b"<unk>", b"<s>", b"</s>"] + [b"<0x%02X>" % n for n in range(256)] + [b" "]
count, positions = len(tokens), 8
with open("files/small.bin", "wb") as f:
    f.write(struct.pack("<7i", 2, 1, 1, 1, 1, count, positions))
    f.write(struct.pack("<f", 0.5) * (2 * count + 28 + 2 * positions))
with open("files/tokenizer.bin", "wb") as f:
    f.write(struct.pack("<i", 6))
    f.write(b"".join(struct.pack("<fi", 0, len(token)) + token for token in tokens))
'
ln -s files/small.bin link.bin
exits 0 embed --model link.bin a
cp files/small.bin alone.bin
exits 1 embed --model alone.bin a
says "where tokenizers are looked for" "$err" "for llama2.c tokenizer.bin"

# ---------------------------------------------------------------- errors -----

exits 2 heads --model bert
says "no texts" "$err" "its heads on; give a TEXT, or --texts FILE"
exits 2 ablate --model bert
says "no texts to ablate on" "$err" "give --texts FILE"
exits 2 heads --model bert --gold "$text"
says "no grammar" "$err" "--gold is about the corpus"
exits 2 ablate --model bert --texts texts.txt --repair
says "no direct effects" "$err" "this model predicts no tokens"
exits 2 prune --model bert --texts texts.txt --keep 2 --curve curve.svg
says "no curve" "$err" "--curve is for the laboratory"
exits 2 prune --model bert --texts texts.txt --keep 1 -o out
says "a head per layer" "$err" "--keep 1: the model has 2 layers"
exits 2 prune --model bert --texts texts.txt --zeros
says "zeros of what" "$err" "--zeros is about the model that -o writes"
echo a >letters.txt
exits 2 prune --model link.bin --texts letters.txt --keep 1 -o out
says "one file" "$err" "give --zeros"
exits 2 prune --model "$here/../../models/lab-en-fr.safetensors" --texts texts.txt --keep 30 -o out
says "a translator on texts" "$err" "written without --texts"
exits 1 prune --model bert --texts texts.txt --keep 2 -o no/such/folder
says "no place" "$err" "No such file"
exits 2 heads --model bert --texts texts.txt "$text"
says "texts and a text" "$err" "--texts names texts to measure on"
exits 1 show --model bert --to "le chat" "$text"
says "one text" "$err" "leave --to out"
exits 1 heads --model bert --texts /nonexistent
says "no such file" "$err" "/nonexistent"
: >empty.txt
exits 1 heads --model bert --texts empty.txt
says "no texts in it" "$err" "there are no texts"
exits 1 heads --model bert "$(printf 'the %.0s' {1..50})"
says "too long" "$err" "the text has 52 tokens, but the model reads up to 40"
exits 1 view --model bert "  "
says "no words" "$err" "no words"
mkdir none
exits 1 heads --model none "$text"
says "no model" "$err" "none"

# ------------------------------------------------------------------ real -----

if [ -n "${MHA_TEST_MINILM:-}" ]; then
    exits 0 view --model "$MHA_TEST_MINILM" -o minilm.html "The unbelievably tired cat ran away, didn't it?"
    python "MiniLM on a page" '
page = data("minilm.html")
s, = page["sentences"]
kind, = s["kinds"]
if (kind["layers"], kind["heads"], kind["width"]) != (6, 12, 32): print(kind["layers"])
if worst(kind) > 1e-4: print("weights", worst(kind))
if not any(role["found"] and role["name"] == "sink: begin" for role in kind["roles"]): print("no sinks")
if not any(role["found"] and role["name"] == "previous" for role in kind["roles"]): print("no previous")
'
else
    skip "a real model" "MHA_TEST_MINILM is not set"
fi
finish
