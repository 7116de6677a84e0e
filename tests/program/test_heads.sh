#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mha heads, ablate and prune: with a model that has learnt nothing, what is the same whatever it has
# learnt; with the one of the repository, what its heads do.
. "$(dirname "$0")/harness.bash"
unset MHA_MODEL

shipped=$(realpath -m "$here/../../models/lab-en-fr.safetensors")
cd "$scratch" || exit 1

# ------------------------------------------------------------- mistakes -----

for command in heads ablate prune; do
    exits 0 help $command
    golden help_$command
    exits 1 $command --model /nonexistent
    says "$command: a file that is not there" "$err" "/nonexistent: cannot be opened"
    exits 2 $command --split tset
    says "$command: an unknown split" "$err" 'did you mean "test"?'
    exits 2 $command --sentences 0
done
exits 2 heads --where 'prve>0.5'
says "an unknown column" "$err" 'did you mean "prev"?'
exits 2 heads --where 'prev>much'
exits 2 heads --where 'prev'
exits 2 heads --where 'prev=>1'
says "a wrong condition" "$err" 'such as "prev>0.9 layer<2"'
exits 2 heads --where 'role>sink'
exits 2 heads --where role=xyzzy
says "an unknown role: those there are" "$err" 'heads: no role "xyzzy"; there are: sink: first word, '
says "an unknown role: all of them" "$err" ", determiner-noun, "
exits 2 heads --where role=previuos
says "an unknown role: a suggestion" "$err" 'did you mean "previous"?'
exits 2 heads --where 'role=sink: edn layer=1'
says "a role of two words" "$err" 'no role "sink: edn"'
for option in "--sentences 5" "--split valid" "--seed 3"; do
    # shellcheck disable=SC2086
    exits 2 heads $option "the cat sleeps"
    says "a sentence of one's own: ${option%% *}" "$err" "${option%% *} selects sentences of the corpus"
done
for option in "--sort apart" "--where apart<0.1"; do
    # shellcheck disable=SC2086
    exits 2 heads $option
    says "apart from nothing: $option" "$err" "choose it with --like HEAD"
done
for head in first "2.4" "L2 H4" "cross 4"; do
    exits 2 heads --like "$head"
    says "not one head: $head" "$err" '"cross 2.4" or "cross L2 H4"'
done
for head in "kross 2.4" "cross 0.1" "cross 2.4.1" "cross -1.2" "cross 2.4 x" "cross L2 L4" "" \
    "cross 99999999999.1"; do
    exits 2 heads --like "$head"
    says "no head: $head" "$err" "not a head"
done
exits 2 heads --like "cross 1.1" --kind decoder
says "heads of two kinds" "$err" "leave out --kind decoder"
exits 2 heads --sort entropi
says "an unknown column to sort by" "$err" 'did you mean "entropy"?'
exits 2 heads --kind encdoer
says "an unknown kind" "$err" 'did you mean "encoder"?'
exits 2 heads "one sentence" "two sentences"
exits 2 ablate --mode meen
says "an unknown mode" "$err" 'did you mean "mean"?'
exits 2 ablate sentence
exits 1 ablate --svg /nonexistent/x.svg
exits 2 prune -o x.safetensors
says "a model of any size" "$err" "--keep"

# -------------------------------------------------- a model of no skill -----

train_dull
export MHA_MODEL=dull.safetensors

exits 0 heads --sentences 20
says "a title" "$out" "12 heads of dull.safetensors"
says "a summary" "$out" "Roles: "
same "a row for each head" 12 "$(grep -cE '^(encoder|decoder|cross) [12]\.[12] ' <<<"$out")"
exits 0 heads --sentences 20 --gold
says "relations" "$out" "determiner-noun"
says "alignment, both readings" "$out" "the row that reads a French word"
exits 0 heads --sentences 5 --kind cross --where 'layer=1 head>=2'
same "a filter" 1 "$(grep -c '^cross 1\.2 ' <<<"$out")"
cp "$scratch/out" filtered
exits 0 heads --sentences 5 --kind CROSS --where 'layer = 1, head >= 2'
same "a filter with spaces, a kind in capitals" "" "$(diff filtered "$scratch/out")"
exits 0 heads --sentences 5 --where 'role=mixed layer = 7'
says "spaces after a role" "$out" "no head matches"
exits 0 heads --sentences 5 --where 'layer>7'
says "no head" "$out" "no head matches"
exits 0 heads --sentences 5 --like "cross 2.1"
same "the nearest is the head itself" "cross 2.1 0.000" \
    "$(awk '/^cross/ { print $1, $2, $NF; exit }' <<<"$out")"
same "only heads of its kind" 4 "$(grep -cE '^(encoder|decoder|cross) [12]\.[12] ' <<<"$out")"
exits 2 heads --sentences 5 --like "cross 3.1"
says "a head that is not there" "$err" "2 layers of 2 heads"
exits 0 heads --sentences 5 --like "cross 2.1" --json
cp "$scratch/out" like
for head in "cross.2.1" "cross:2.1" "cross L2 H1" "CROSS l2h1" "Cross, layer 2, head 1"; do
    exits 0 heads --sentences 5 --like "$head" --json
    same "a head by another name: $head" "" "$(diff like "$scratch/out")"
done
exits 0 heads the cat sleeps
says "words without quotes" "$out" 'on "the cat sleeps"'
says "one sentence has no interval, and why" "$out" "no intervals: n = 1"
silent "one sentence has no interval" "$(grep -E '^(encoder|decoder|cross) .*[0-9]\.\.[0-9]' <<<"$out")"
exits 0 heads --sentences 1
says "one sentence of the corpus" "$out" "on 1 sentence of test"
says "one sentence of the corpus: no interval" "$out" "no intervals: n = 1"
exits 0 ablate --sentences 1
says "ablate: one sentence has no interval, and why" "$out" "No intervals: n = 1"

# A sentence has the words that mha translate sees, however it is written.
exits 0 heads --json "does the cat sleep?"
cp "$scratch/out" plain
for text in "Does the cat sleep ?" "DOES THE CAT SLEEP?" "  does   the cat sleep?" $'does\tthe cat sleep?' \
    '"Does the cat sleep?"'; do
    exits 0 heads --json "$text"
    same "the same words: $text" "" "$(diff <(grep -v '"text"' plain) <(grep -v '"text"' "$scratch/out"))"
done
run heads $'the \033[31mcat sleeps'
case $out$err in
*$'\033'*) bad "control characters stay out" ;;
*) ok "control characters stay out" ;;
esac
exits 1 heads "$(printf 'cat %.0s' $(seq 64))"
says "a sentence too long" "$err" "the sentence is too long: it has 64 words"
exits 0 heads "zyzzyva sleeps"
exits 1 heads "..."
says "no words" "$err" "no words"

if command -v python3 >/dev/null; then
    exits 0 heads --sentences 20 --gold --json --sort entropy
    json "heads"
    same "heads: all of them" 12 "$(of 'len(j["heads"])')"
    same "heads: sorted" True "$(of 'all(a["measures"]["entropy"] >= b["measures"]["entropy"]
        for a, b in zip(j["heads"], j["heads"][1:]))')"
    same "heads: importances of a layer have length 1" True "$(of 'all(abs(sum(
        h["measures"]["importance"] ** 2 for h in j["heads"] if h["kind"] == k and h["layer"] == l
        ) - 1) < 1e-4 for k in ("encoder", "decoder", "cross") for l in (1, 2))')"
    same "heads: both error rates" True "$(of 'all(0 <= h["aer_says"] <= 1 and 0 <= h["aer_reads"]
        <= 1 for h in j["heads"] if h["kind"] == "cross")')"
    cp "$scratch/out" one
    exits 0 heads --sentences 20 --gold --json --sort entropy --threads 1
    same "heads: the same bits for another number of threads" "" "$(diff one "$scratch/out")"

    exits 0 ablate --sentences 20 --json --together --repair --svg a.svg
    json "ablate"
    same "ablate: heads, layers, pairs" "12 6 18" \
        "$(of '" ".join(str(len(j[k])) for k in ("heads", "layers", "pairs"))')"
    same "ablate: deltas are differences" True "$(of 'all(abs(h["loss"] - j["plain"]["loss"] -
        h["delta"]) < 1e-5 for h in j["heads"] + j["layers"] + j["pairs"])')"
    same "ablate: pairs by what they cost more" True "$(of 'all(a["extra"] >= b["extra"]
        for a, b in zip(j["pairs"], j["pairs"][1:]))')"
    wrong=$(python3 - a.svg "$scratch/out" 2>&1 <<'END'
import json, sys, xml.etree.ElementTree as e
texts = [t.text for t in e.parse(sys.argv[1]).iter("{http://www.w3.org/2000/svg}text")]
def shown(nats):
    value = 1000 * nats
    return "%.0f" % value if abs(value) >= 99.95 else "%.1f" % (value if abs(value) >= 0.05 else 0)
j = json.load(open(sys.argv[2]))
for part in j["heads"] + j["layers"]:
    if shown(part["delta"]) not in texts: print(part["kind"], part["layer"], shown(part["delta"]))
for kind in ("encoder", "decoder", "cross"):
    if kind not in texts: print("no", kind)
if texts.count("1") != 3 or texts.count("2") != 3 or texts.count("all") != 3: print("columns", texts)
if any(t in ("-0", "-0.0", "-0.000") for t in texts): print("a zero with a sign")
if not any("thousandths of a nat" in t for t in texts): print("no unit")
END
    )
    same "ablate: a picture with the numbers, their unit and the numbers of heads" "" "$wrong"
    for mode in mean uniform; do
        exits 0 ablate --sentences 10 --mode $mode --json
        same "ablate: mode" $mode "$(of 'j["mode"]')"
    done
    exits 0 ablate --sentences 5 --mode uniform
    says "ablate: what the mode means" "$out" "Disabled heads attend to all positions equally."

    exits 0 prune --sentences 10 --keep 5 --curve c.svg -o pruned.safetensors --json
    json "prune"
    same "prune: steps" 8 "$(of 'len(j["steps"])')"
    same "prune: kept" 5 "$(of 'len(j["kept"])')"
    same "prune: less to read" True "$(of 'j["attention_bytes_pruned"] < j["attention_bytes"]')"
    same "prune: a curve" True "$(python3 -c 'import xml.dom.minidom as m
print(m.parse("c.svg").documentElement.tagName == "svg")')"
    wanted=$(of '"%.5f" % j["steps"][-1]["loss"]')
    exits 0 ablate --sentences 10 --json --model pruned.safetensors
    same "prune: the file is the model without these heads" "$wanted" \
        "$(of '"%.5f" % j["plain"]["loss"]')"

    # A model of other words, with notes of its own, and no checksum.
    python3 - dull.safetensors other.safetensors short.safetensors <<'END'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
def write(path, header):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data[8 + size:])
header = json.loads(data[8:8 + size])
notes = header["__metadata__"]
notes.pop("checksum", None)
words = json.loads(notes["source_vocabulary"])
words[-1] = words[-1] + 'zz"'
notes["source_vocabulary"] = json.dumps(words)
notes["licence"] = "of someone"
write(sys.argv[2], header)
config = json.loads(notes["config"])
config["positions"] = 5
notes["config"] = json.dumps(config)
write(sys.argv[3], header)
END
    exits 0 prune --sentences 5 --keep 11 --model other.safetensors -o still.safetensors
    exits 0 tensors --json other.safetensors
    cp "$scratch/out" other.json
    exits 0 tensors --json still.safetensors
    cp "$scratch/out" still.json
    same "prune: the model's words and notes stay, \"pruned\" and a checksum are new" "" "$(
        python3 - other.json still.json 2>&1 <<'END'
import json, sys
a, b = (json.load(open(path)) for path in sys.argv[1:])
a, b = (j[0] if isinstance(j, list) else j for j in (a, b))
a, b = a["metadata"], b["metadata"]
for key in a:
    told = [m.get(key) for m in (a, b)]
    if "vocabulary" in key or key == "config":
        told = [json.loads(t) for t in told]
    if told[0] != told[1]: print(key)
if set(b) - set(a) != {"pruned", "checksum"}: print(set(b) - set(a))
if not any(key.startswith("training.") for key in b): print("no notes of the training")
END
    )"

    # A model that is too short for the corpus is told so.
    for command in heads ablate "prune --keep 11"; do
        # shellcheck disable=SC2086
        exits 1 $command --sentences 20 --model short.safetensors
        says "$command: a short model" "$err" "has 5 positions, too few for sentences of the corpus"
    done
    exits 0 heads --model short.safetensors cat
    exits 1 view -o short.html --model short.safetensors cat
    says "view: a short model" "$err" "--study 0"
    exits 0 view -o short.html --model short.safetensors --study 0 cat
else
    skip "JSON" "no python3"
fi
exits 2 prune --keep 13
says "more heads than there are" "$err" "the model has 12 heads"
exits 0 prune --sentences 10 --keep 10
says "what is kept" "$out" "Kept:"
exits 0 ablate --sentences 10 --together
silent "no zero with a sign" "$(grep -e '-0\.0000' <<<"$out")"
exits 0 ablate --sentences 10 --repair
says "repair" "$out" "repair = 1 - lost / direct"

# --------------------------------------------------- the shipped model -----

unset MHA_MODEL
if [ ! -e "$shipped" ]; then
    skip "the model of the repository" "there is none"
elif command -v python3 >/dev/null; then
    exits 0 heads --model "$shipped" --sentences 100 --gold --json
    same "shipped: a head aligns" True "$(of 'min(h["aer_says"] for h in j["heads"]
        if h["kind"] == "cross") < 0.25')"
    same "shipped: on the row that says the word, not the one that reads it" True "$(of 'min(
        h["aer_says"] for h in j["heads"] if h["kind"] == "cross") < min(h["aer_reads"]
        for h in j["heads"] if h["kind"] == "cross")')"
    "$mha" heads --model "$shipped" --json >roles 2>/dev/null
    python3 -c 'import json
print(*sorted({h[k] if k == "role" else h[k]["name"] for h in json.load(open("roles"))["heads"]
               for k in ("role", "next")}), sep="\n")' >names
    while read -r role; do
        exits 0 heads --model "$shipped" --sentences 2 --where "role=$role layer=1"
    done <names
    exits 0 translate --model "$shipped" --evaluate 50 --json
    exact=$(of '"%.4f" % j["exact_share"]')
    exits 0 ablate --model "$shipped" --sentences 50 --json
    same "shipped: as many exact sentences as a greedy search finds" "$exact" \
        "$(of '"%.4f" % j["plain"]["exact"]')"
    same "shipped: heads of the last cross-attention stand in for each other" True "$(of '(lambda l:
        l["delta"] > 2 * l["sum_of_heads"])(j["layers"][-1])')"
fi
finish
