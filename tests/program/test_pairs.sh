#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mha heads, ablate and prune --pairs, heads --alignments and ablate --words, on a small
# encoder-decoder with random weights (tiny_models.py) and on a small translator of the corpus.
. "$(dirname "$0")/harness.bash"
unset MHA_MODEL
export MHA_NUM_THREADS=1
if ! command -v python3 >/dev/null; then
    skip "models of other forms" "no python3"
    finish
    exit
fi
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
python3 "$here/tiny_models.py" || bad "small models"
long=$(printf 'cat %.0s' {1..60})
printf 'the cat sleeps.\tle chat dort.\nthe cat\tle chat\n%s\tle chat\nno tab\nthe cat sleeps\tdort\n' \
    "$long" >pairs.tsv

# ----------------------------------------------------------------- pairs -----

exits 0 heads --model marian --pairs pairs.tsv
says "pairs are named" "$out" "on 3 sentence pairs of pairs.tsv"
says "a line without a tab" "$err" "line 4 (no tab between two sentences)"
says "a long pair is left out" "$err" "1 pairs left out, longer than the model's positions"
says "no gradients" "$out" "no importance: it needs gradients"
says "how different heads are" "$out" "How different the heads of a layer are"
exits 0 heads --model marian --pairs pairs.tsv --sentences 2 --json
json "heads of pairs"
same "the number of pairs" 2 "$(of 'j["sentences"]')"
same "the file" pairs.tsv "$(of 'j["pairs"]')"
same "diversity of 6 layers" "6 True" "$(of 'str(len(j["layers"])) + " " + str(all(
    0 <= l["low"] <= l["diversity"] <= l["high"] <= 0.6932 for l in j["layers"]))')"
exits 0 heads --model marian --pairs pairs.tsv --sentences 1 --json
same "no interval of one pair" "None" "$(of 'j["layers"][0]["low"]')"
cut -f1 pairs.tsv | sed 4d >a.en
cut -f2 pairs.tsv | sed 4d >a.fr
"$mha" heads --model marian --pairs pairs.tsv --json 2>/dev/null | grep -v pairs.tsv >one
"$mha" heads --model marian --pairs a.en,a.fr --json 2>/dev/null | grep -v a.en >two
same "two files are one" "" "$(diff one two)"
exits 2 heads --model bert --pairs pairs.tsv
says "an encoder has no pairs" "$err" "give --texts FILE"
exits 2 heads --model marian --pairs pairs.tsv --texts a.en
says "either" "$err" "either --pairs or --texts"
exits 2 heads --model marian --pairs pairs.tsv --split test
says "no corpus" "$err" "--split"
exits 1 heads --model marian --pairs nowhere.tsv
exits 2 heads --model marian
says "what is needed" "$err" "a TEXT, --texts FILE or --pairs FILE"

exits 0 ablate --model marian --pairs pairs.tsv --json
json "ablate of pairs"
same "heads and layers" "18 6 3" "$(of 'len(j["heads"]), len(j["layers"]), j["sentences"]' |
    tr -d '(),')"
same "intervals" True "$(of 'all(h["low"] <= h["delta"] <= h["high"] for h in j["heads"])')"
exits 0 ablate --model marian --pairs pairs.tsv --sentences 2 --mode mean --together --svg a.svg
says "pairs are named" "$out" "on 2 sentence pairs of pairs.tsv"
says "in the picture" "$(cat a.svg)" "2 sentence pairs of pairs.tsv"
exits 0 ablate --model marian --pairs pairs.tsv --repair --json
json "repair of pairs"
same "direct effects of decoder and cross" True "$(of 'all(("direct" in h) == (h["kind"] != "encoder")
    for h in j["heads"])')"
same "repair is a quotient" True "$(of 'all(h["repair"] is None or
    abs(h["repair"] - 1 + h["lost"] / h["direct"]) < 1e-3 for h in j["heads"] if "direct" in h)')"
same "small direct effects have none" True "$(of 'all((h["repair"] is None) == (abs(h["direct"]) < 0.05)
    for h in j["heads"] if "direct" in h)')"
exits 0 ablate --model marian --pairs pairs.tsv --repair
says "columns of repair" "$out" "direct removed    lost  repair    norm  helper"
exits 0 prune --model marian --pairs pairs.tsv --keep 16 -o small --json
same "pruned on pairs" "pairs.tsv 2" "$(of 'j["pairs"], len(j["steps"])' | tr -d "(),'")"
same "steps have intervals" True "$(of 'all(s["alone_low"] <= s["alone"] <= s["alone_high"] and
    s["low"] <= s["delta"] <= s["high"] and abs(j["loss"] + s["delta"] - s["loss"]) < 1e-4
    for s in j["steps"])')"
exits 0 inspect small
exits 0 prune --model marian --pairs pairs.tsv --keep 17
says "a step with its interval" "$out" "loss +                95 %"

# ------------------------------------------------------------ alignments -----

printf '0\tthe cat sleeps .\n1\tthe cat\n2\t%s\n' "$long" >b.en
printf '0\tle chat dort .\n1\tle chat\n2\tle chat\n' >b.fr
printf '0\t0-0 1-1 2-2 3p3 \n1\t0-0 1p1\n2\t\n' >b.links
align=(heads --model marian --pairs b.en,b.fr --alignments)
exits 0 "${align[@]}" b.links
says "pairs and links are counted" "$out" "6 and 6 words, 4 sure and 2 possible links"
says "long ones are left out" "$out" "1 longer than the model's positions left out"
says "both readings" "$out" "The row that reads a word of the target"
says "the diagonal is right" "$out" "the diagonal, without a model       0.000"
exits 0 "${align[@]}" b.links --json
json "alignments"
cp "$scratch/out" rates
exits 0 show --model marian --study 0 --kind cross --json --to "le chat dort." "the cat sleeps."
cp "$scratch/out" first
exits 0 show --model marian --study 0 --kind cross --json --to "le chat" "the cat"
cp "$scratch/out" second
silent "error rates are those of the weights" "$(python3 - <<'END' 2>&1
import json
rates = json.load(open("rates"))
pairs = [("first", [[0], [1], [2, 3], [4]], {0: 2, 1: 2, 2: 2, 3: 1}),
         ("second", [[0], [1]], {0: 2, 1: 1})]
for head in rates["heads"]:
    hits = links = 0
    for name, columns, known in pairs:
        map = next(m for m in json.load(open(name))["maps"]
                   if (m["layer"], m["head"]) == (head["layer"], head["head"]))
        for target, kind in known.items():
            row = map["cells"][target + (head["row"] == "reads")]
            sums = [sum(row[j] for j in word) for word in columns]
            hits += kind if sums.index(max(sums)) == target else 0
            links += 1 + (kind == 2)
    if abs(1 - hits / links - head["aer"]) > 1e-5:
        print(head, 1 - hits / links)
if len(rates["heads"]) != 12 or rates["too_long"] != 1 or rates["diagonal"]["aer"] != 0:
    print(rates)
END
)"
printf '0\t0-0 1-1 2-2 3p3\n1\t0-0 4-1\n2\t\n' >c.links
exits 1 "${align[@]}" c.links
says "a word that is not there" "$err" "c.links:2: link 4-1: there is no word 4, the source has 2"
says "the other order" "$err" "--target-first"
printf '0\t0-0\n7\t0-0\n2\t\n' >c.links
exits 1 "${align[@]}" c.links
says "numbers that differ" "$err" "c.links:2: the sentences and links of a pair have different numbers"
printf '0-0\n0+0\n\n' >c.links
exits 1 "${align[@]}" c.links
says "no link" "$err" 'c.links:2: "0+0" is no link'
printf '0-0\n' >c.links
exits 1 "${align[@]}" c.links
says "other lines" "$err" "c.links has 1 lines, but b.en,b.fr has 3"
printf '0-0 0-1\n\n\n' >c.links
exits 0 "${align[@]}" c.links --sentences 1 --target-first --json
same "links the other way" "2 1" "$(of 'j["sure"], j["sentences"]' | tr -d '(),')"
exits 2 heads --model marian --alignments b.links
says "alignments of what" "$err" "--alignments needs --pairs"
exits 2 "${align[@]}" b.links --gold
says "options without effect" "$err" "--gold has no effect on --alignments"
exits 2 heads --target-first
exits 2 heads --model bert --pairs b.en,b.fr --alignments b.links
says "no cross-attention" "$err" "the model has no cross-attention"

# ----------------------------------------------------------------- words -----

exits 0 ablate --words --model marian --to "le chat dort." --svg words.svg "the cat sleeps."
says "words are whole" "$out" "sleeps"
says "a picture" "$(cat words.svg)" "<svg"
exits 0 ablate --words --model marian --to "le chat dort" --json "the cat sleeps"
json "words"
same "a matrix" "the cat sleeps | le chat dort </s> | True" "$(of '" | ".join([
    " ".join(j["source"]), " ".join(j["target"]), str([len(r) for r in j["lost"]] == [3] * 4)])')"
exits 2 ablate --words --model marian
says "a text is needed" "$err" "give a TEXT"
exits 2 ablate --words --model gpt2 cat
says "no source" "$err" "there are no source words to hide"
exits 2 ablate the cat
says "a text without --words" "$err" "a TEXT is for --words"
exits 2 ablate --words --together
exits 2 ablate --words --svg a.svg
exits 2 ablate --to "le chat"
train_dull
exits 0 ablate --words --model dull.safetensors --sentences 20
says "parts of speech" "$out" "determiner"
exits 0 ablate --words --model dull.safetensors --sentences 20 --json
same "all words" True "$(of 'sum(p["n"] for p in j["parts"]) > 100 and all(
    p["n"] == 0 or p["low"] <= p["lost"] <= p["high"] for p in j["parts"])')"
exits 2 heads --model dull.safetensors --pairs b.en,b.fr --alignments b.links
says "the laboratory knows its alignments" "$err" "--gold"
printf 'the cat sleeps\tle chat dort\n' >lab.tsv
exits 0 heads --model dull.safetensors --pairs lab.tsv
finish
