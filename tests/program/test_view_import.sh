#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mha view --weights and --ablation: files of others, good and bad. How such pages behave is tested
# in tests/page.
. "$(dirname "$0")/harness.bash"
unset MHA_MODEL
cd "$scratch" || exit 1

exits 2 view --weights a.safetensors "the cat sleeps"
says "a file and a sentence" "$err" "--weights shows a file, not a sentence"
exits 2 view --weights a.safetensors --to "le chat dort"
says "a file and a translation" "$err" "--to is for a model"
exits 2 view --weights a.safetensors --study 3
says "a file and a study" "$err" "--study is for a model"
exits 2 view --tokens words.txt "the cat sleeps"
says "words of nothing" "$err" "--tokens names the words of a weights file"
exits 1 view --weights /nonexistent
says "no file" "$err" "/nonexistent: cannot be opened"

if ! command -v python3 >/dev/null; then
    skip "files of weights" "no python3"
    finish
    exit
fi

cat >tools.py <<'EOF'
import array, base64, json, math, struct, sys

SIZE = {"F64": 8, "F32": 4, "I32": 4, "F16": 2, "BF16": 2}

def pack(dtype, values):
    if dtype == "BF16":
        return b"".join(struct.pack("<I", (struct.unpack("<I", struct.pack("<f", v))[0] + 0x8000) & 0xffffffff)[2:]
                        for v in values)
    return struct.pack("<%d%s" % (len(values), {"F64": "d", "F32": "f", "I32": "i", "F16": "e"}[dtype]), *values)

def write(path, tensors):
    """tensors: {name: (dtype, shape, values)}"""
    header, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        part = pack(dtype, values)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)

def rows(heads, count, columns, seed=1, causal=False):
    """Weights that differ everywhere; rows sum to 1."""
    values = []
    for n in range(heads * count):
        seen = n % count + 1 if causal else columns
        row = [math.exp(((seed + n * 7 + j * 13) % 17) / 4) for j in range(seen)]
        values += [v / sum(row) for v in row] + [0.0] * (columns - seen)
    return values

def layer(heads, size, seed=1, dtype="F32", causal=False):
    return dtype, [heads, size, size], rows(heads, size, size, seed, causal)

def data(path):
    text = open(path, encoding="utf-8").read()
    begin = "<script id=\"data\" type=\"application/json\">"
    at = text.index(begin) + len(begin)
    return json.loads(text[at:text.index("</script>", at)])

def floats(text):
    return array.array("f", base64.b64decode(text))

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

def compact(text, count, columns, causal):
    """[(m, weights)] of the rows, as src/page/page_weights.h says."""
    at, result = 0, []
    for i in range(count):
        most = struct.unpack("<f", base64.b64decode(text[at:at + 6] + "=="))[0]
        at += 6
        seen = i + 1 if causal else columns
        row = [most * ((LETTERS.index(text[at + 2 * j]) * 64 + LETTERS.index(text[at + 2 * j + 1])) / 4095) ** 2
               for j in range(seen)]
        at += 2 * seen
        result.append((most, row))
    if at != len(text): print("letters are left", at, len(text))
    return result
EOF

# python NAME SCRIPT: what it prints is wrong.
python() {
    local wrong
    wrong=$(python3 -c "from tools import *
$2" 2>&1)
    if [ -z "$wrong" ]; then ok "$1"; else bad "$1" "$(tail -n 5 <<<"$wrong")"; fi
}

# refuses NAME MESSAGE SCRIPT: a file bad.safetensors that Python writes is refused with a message.
refuses() {
    rm -f bad.safetensors
    python3 -c "from tools import *
$3" || bad "$1" "no file"
    exits 1 view -o bad.html --weights bad.safetensors
    says "$1" "$err" "$2"
    if [ -e bad.html ]; then bad "$1: no page"; rm bad.html; fi
}

# -------------------------------------------------------- good files -----

python3 -c 'from tools import *
write("plain.safetensors", {"layer.1": layer(2, 5, 2), "layer.0": layer(2, 5, 1)})
for dtype in "F16", "BF16", "F64":
    write(dtype + ".safetensors", {"layer.0": layer(3, 4, 1, dtype)})
write("back.safetensors", {"layer.0": ("F32", [1, 2, 5, 5], rows(2, 5, 5, 1, True))})
write("both.safetensors", {"encoder.0": layer(2, 3), "decoder.0": layer(2, 4, 1, "F32", True),
                           "cross.0": ("F32", [2, 4, 3], rows(2, 4, 3))})
json.dump(["the", "cat", "and", "the", "<dog>"], open("five.json", "w"))
open("five.txt", "w").write("the\ncat\r\nand\nthe\n<dog>")
json.dump({"source": ["a", "b", "c"], "target": ["d", "e", "f", "g"]}, open("both.json", "w"))
write("large.safetensors", {"layer.%d" % n: layer(2, 513, n, "F16", True) for n in range(2)})
'
python3 -c 'from tools import *
def vectors(heads, count, width, seed):
    return "F32", [heads, count, width], [math.sin(seed + n) for n in range(heads * count * width)]
full = {"layer.0": layer(2, 5, 1), "layer.0.q": vectors(2, 5, 4, 1), "layer.0.k": vectors(2, 5, 4, 2),
        "layer.0.v": vectors(2, 5, 4, 3), "layer.0.norms": ("F32", [2, 5], [0.5] * 10)}
write("vectors.safetensors", full)
write("keyless.safetensors", {name: full[name] for name in full if name != "layer.0.k"})
write("narrow.safetensors", {**full, "layer.0.k": vectors(2, 5, 3, 2)})
write("extra.safetensors", {**full, "layer.1.q": vectors(2, 5, 4, 2)})
write("odd.safetensors", {**full, "layer.0.x": vectors(2, 5, 4, 2)})
json.dump(["[CLS]", "un", "##known", "cat", "[SEP]"], open("marks.json", "w"))
json.dump(["<|endoftext|>", "\u0120un", "known", "\u0120cat", "</s>"], open("bytes.json", "w"))
'
exits 0 view -o vectors.html --weights vectors.safetensors --tokens marks.json
python "vectors, marks and pieces" '
page = data("vectors.html")
s, = page["sentences"]
kind, = s["kinds"]
if kind["width"] != 4 or len(floats(kind["q"])) != 40 or len(floats(kind["value_norms"])) != 10: print("vectors")
if abs(floats(kind["k"])[7] - math.sin(2 + 7)) > 1e-6: print(floats(kind["k"])[7])
if s["source_marks"] != [1, 0, 0, 0, 1] or s["source_continues"] != [0, 0, 1, 0, 0]: print(s)
names = {role["name"] for role in kind["roles"]} | {role["next"] for role in kind["roles"]}
if "sink: first word" in names: print(names)
'
exits 0 view -o bytes.html --weights vectors.safetensors --tokens bytes.json
python "pieces of byte-level BPE" '
s, = data("bytes.html")["sentences"]
if s["source_marks"] != [1, 0, 0, 0, 1] or s["source_continues"] != [0, 0, 1, 0, 0]: print(s)
'
exits 1 view --weights keyless.safetensors
says "queries without keys" "$err" "layer.N.k is in 0 of 1 layers"
exits 1 view --weights narrow.safetensors
says "keys of another width" "$err" "its shape must be [2 heads, 5"
exits 1 view --weights extra.safetensors
says "vectors of no layer" "$err" "there is layer.1.q, but no layer.1"
exits 1 view --weights odd.safetensors
says "an unknown vector" "$err" "is not the name of a layer"
exits 0 view -o plain.html --weights plain.safetensors --tokens five.json
if [ "${out%, *}" = "plain.html: 4 heads, 1 sentence" ]; then ok "what it says"; else bad "what it says" "$out"; fi
exits 0 view -o again.html --weights plain.safetensors --tokens five.json
if cmp -s <(sed s/again.html/plain.html/ again.html) plain.html; then
    ok "the same bytes again"
else
    bad "the same bytes again"
fi
python "weights as they were" '
page = data("plain.html")
kind, = page["sentences"][0]["kinds"]
if (kind["name"], kind["layers"], kind["heads"], kind["rows"], kind["compact"]) != ("encoder", 2, 2, 5, False): print(kind)
for n in range(4):
    wanted = array.array("f", rows(2, 5, 5, 1 + n // 2)[n % 2 * 25:n % 2 * 25 + 25])
    if floats(kind["weights"][n]) != wanted: print(n)
if page["sentences"][0]["source"] != ["the", "cat", "and", "the", "<dog>"]: print(page["sentences"][0]["source"])
if "model" in page or "q" in kind or "losses" in kind: print("more than there is")
if "--weights" not in page["command"] or "--tokens" not in page["command"]: print(page["command"])
'
python "numbers of heads" '
kind = data("plain.html")["sentences"][0]["kinds"][0]
for n in range(4):
    w = rows(2, 5, 5, 1 + n // 2)[n % 2 * 25:n % 2 * 25 + 25]
    m = {name: values[n] for name, values in kind["measures"].items()}
    wanted = {"self": sum(w[i * 5 + i] for i in range(5)) / 5, "first": sum(w[0::5]) / 5, "end": sum(w[4::5]) / 5,
              "prev": sum(w[i * 5 + i - 1] for i in range(1, 5)) / 5, "next": sum(w[i * 5 + i + 1] for i in range(4)) / 5,
              "entropy": -sum(v * math.log(v) for v in w) / 5, "duplicate": w[3 * 5 + 0] / 5,
              "confidence": sum(max(w[i * 5:i * 5 + 5]) for i in range(5)) / 5}
    for name, value in wanted.items():
        if abs(m[name] - value) > 1e-5: print(n, name, m[name], value)
'
exits 0 view -o lines.html --weights plain.safetensors --tokens five.txt
python "words of a text file" '
if data("lines.html")["sentences"][0]["source"] != ["the", "cat", "and", "the", "<dog>"]: print(data("lines.html")["sentences"][0])
'
exits 0 view -o numbers.html --weights plain.safetensors
python "words that are not known" '
if data("numbers.html")["sentences"][0]["source"] != ["1", "2", "3", "4", "5"]: print(data("numbers.html")["sentences"][0])
'
for dtype in F16 BF16 F64; do
    exits 0 view -o $dtype.html --weights $dtype.safetensors
    python "weights of $dtype" '
dtype = "'$dtype'"
wanted = rows(3, 4, 4)
kind = data(dtype + ".html")["sentences"][0]["kinds"][0]
for n in range(3):
    for got, value in zip(floats(kind["weights"][n]), wanted[16 * n:16 * n + 16]):
        if abs(got - value) > value * {"F16": 2 ** -11, "BF16": 2 ** -8, "F64": 2 ** -24}[dtype]: print(n, got, value)
'
done
exits 0 view -o back.html --weights back.safetensors --tokens five.json
python "what only looks back is a decoder" '
kind = data("back.html")["sentences"][0]["kinds"][0]
if (kind["name"], kind["causal"]) != ("decoder", True): print(kind["name"], kind["causal"])
'
exits 0 view -o both.html --weights both.safetensors --tokens both.json
python "three kinds" '
s = data("both.html")["sentences"][0]
if [k["name"] for k in s["kinds"]] != ["encoder", "decoder", "cross"]: print(s["kinds"])
if (s["source"], s["target"]) != (["a", "b", "c"], ["d", "e", "f", "g"]): print(s["source"], s["target"])
'
exits 0 view -o large.html --weights large.safetensors
python "large pages are compact, and as exact as they say" '
kind = data("large.html")["sentences"][0]["kinds"][0]
if not kind["compact"] or not kind["causal"] or len(kind["pictures"]) != 4: print(kind["compact"], kind["causal"])
if len(kind["pictures"][0]) != 64 * 64: print(len(kind["pictures"][0]))
for n in range(4):
    exact = rows(2, 513, 513, n // 2, True)[n % 2 * 513 * 513:(n % 2 + 1) * 513 * 513]
    for i, (most, row) in enumerate(compact(kind["weights"][n], 513, 513, True)):
        for j, value in enumerate(row):
            wanted = struct.unpack("<e", struct.pack("<e", exact[i * 513 + j]))[0]
            if abs(value - wanted) > math.sqrt(wanted * most) / 4095 + most / 6.7e7 + 1e-9: print(n, i, j, value, wanted)
'

# --------------------------------------------------------- bad files -----

refuses "no safetensors" "HeaderTooSmall" 'open("bad.safetensors", "w").write("hello")'
refuses "nothing in it" "there are no layers" 'write("bad.safetensors", {})'
refuses "another name" "is not the name of a layer" 'write("bad.safetensors", {"weights": layer(1, 2)})'
refuses "a layer of no number" "is not the name of a layer" 'write("bad.safetensors", {"layer.x": layer(1, 2)})'
refuses "a layer too far" "is not the name of a layer" 'write("bad.safetensors", {"layer.512": layer(1, 2)})'
refuses "whole numbers" "not I32" 'write("bad.safetensors", {"layer.0": ("I32", [1, 1, 1], [1])})'
refuses "two axes" "the shape of a layer must be" 'write("bad.safetensors", {"layer.0": ("F32", [2, 2], rows(1, 2, 2))})'
refuses "a batch" "one by one" 'write("bad.safetensors", {"layer.0": ("F32", [2, 1, 2, 2], rows(2, 2, 2))})'
refuses "no heads" "from 1 to" 'write("bad.safetensors", {"layer.0": ("F32", [0, 2, 2], [])})'
refuses "a gap" "there is layer.2, but no layer.1" 'write("bad.safetensors", {"layer.0": layer(1, 2), "layer.2": layer(1, 2)})'
refuses "other shapes" "that of others" 'write("bad.safetensors", {"layer.0": layer(1, 2), "layer.1": layer(2, 2)})'
refuses "not square" "only cross.0 may have" 'write("bad.safetensors", {"layer.0": ("F32", [1, 2, 3], rows(1, 2, 3))})'
refuses "twice" "twice" 'write("bad.safetensors", {"layer.0": layer(1, 2), "layer.00": layer(1, 2)})'
refuses "two ways of naming" "name all layers alike" 'write("bad.safetensors", {"layer.0": layer(1, 2), "encoder.0": layer(1, 2)})'
refuses "cross and decoder" "both are what the decoder reads" 'write("bad.safetensors", {"decoder.0": layer(1, 2), "cross.0": layer(1, 3)})'
refuses "cross and encoder" "both are what the encoder reads" 'write("bad.safetensors", {"encoder.0": layer(1, 2), "cross.0": layer(1, 3)})'
refuses "not a number" "layer.0, head 2, row 1, column 2 (all from 1): nan is no weight" 'write("bad.safetensors", {"layer.0": ("F32", [2, 2, 2], [1, 0, .5, .5, 1, math.nan, 0, 1])})'
refuses "infinite" "inf is no weight" 'write("bad.safetensors", {"layer.0": ("F32", [1, 1, 1], [math.inf])})'
refuses "scores" "3 is no weight; weights are from 0 to 1, after the softmax" 'write("bad.safetensors", {"layer.0": ("F32", [1, 2, 2], [3, -2, 0, 1])})'
refuses "dropout" "sum to 0.5000, not to 1" 'write("bad.safetensors", {"layer.0": ("F32", [1, 2, 2], [1, 0, .5, 0])})'
refuses "too many" "a page has room for 100000000" '
import os
size = 2 * 10001 * 10001
text = json.dumps({"layer.0": {"dtype": "F16", "shape": [1, 10001, 10001], "data_offsets": [0, size]}}).encode()
with open("bad.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text)
    f.truncate(8 + len(text) + size)
'
refuses "a hostile name" "is not the name of a layer" 'write("bad.safetensors", {"\x1b[2J": layer(1, 2)})'
if grep -q $'\x1b' <<<"$err"; then bad "control characters of a name"; else ok "no control characters"; fi
python3 -c 'from tools import *
write("zeros.safetensors", {"layer.0": ("F32", [1, 2, 2], [0, 0, .5, .5])})'
exits 0 view -o zeros.html --weights zeros.safetensors

# words_refused NAME MESSAGE FILE TEXT
words_refused() {
    printf '%b' "$4" >"$3"
    exits 1 view -o bad.html --weights plain.safetensors --tokens "$3"
    says "$1" "$err" "$2"
}
words_refused "too few words" "3 words, but the weights are of 5 words" words.txt 'a\nb\nc\n'
words_refused "too many words" "6 words, but the weights are of 5 words" words.txt 'a\nb\nc\nd\ne\nf\n'
words_refused "no UTF-8" "not UTF-8" words.txt 'a\nb\nc\nd\n\xff\n'
words_refused "a byte of 0" "a byte of 0" words.txt 'a\nb\nc\nd\n\0\n'
words_refused "no JSON" "words.json: " words.json '["a", '
words_refused "no array" "an array of strings was expected" words.json '"a"'
words_refused "no strings" "an array of strings was expected" words.json '[1, 2, 3, 4, 5]'
words_refused "other keys" 'only the keys "source" and "target" are allowed' words.json '{"words": []}'
words_refused "no array on a side" '"source" and "target" must be arrays of strings' words.json '{"source": "a"}'
words_refused "one side" 'there is no "source"' words.json '{"target": ["a", "b", "c", "d", "e"]}'
words_refused "trailing text" "words.json: " words.json '["a", "b", "c", "d", "e"] x'
exits 1 view --weights plain.safetensors --tokens /nonexistent
says "no words" "$err" "/nonexistent: cannot be opened"

# ---------------------------------------------------------- ablation -----

train_dull
export MHA_MODEL=$scratch/dull.safetensors
"$mha" ablate --sentences 2 --repair --together --json >cost.json 2>/dev/null
"$mha" ablate --sentences 1 --json >one.json 2>/dev/null
exits 0 view -o cost.html --study 0 --ablation cost.json "the cat sleeps"
python "what ablate found" '
told, page = json.load(open("cost.json")), data("cost.html")
own = page["ablation"]
if own["sentences"] != 2 or own["mode"] != "zero" or own["loss"] != told["plain"]["loss"]: print(own)
seen = {"encoder": 0, "decoder": 0, "cross": 0}
for head in told["heads"]:
    at = (head["layer"] - 1) * 2 + head["head"] - 1
    seen[head["kind"]] += 1
    for name in "delta", "low", "high", "words_right", "exact":
        if own[head["kind"]][at][name] != head[name]: print(head, own[head["kind"]][at])
if list(seen.values()) != [4, 4, 4]: print(seen)
'
exits 0 view -o one.html --study 0 --ablation one.json "the cat sleeps"
python "one sentence has no intervals" '
if data("one.html")["ablation"]["cross"][0]["low"] is not None: print(data("one.html")["ablation"]["cross"][0])
'
# cost_refused NAME MESSAGE SCRIPT: `told` is changed by Python.
cost_refused() {
    python3 -c "from tools import *
told = json.load(open('cost.json'))
$3
json.dump(told, open('bad.json', 'w'))"
    exits 1 view -o bad.html --study 0 --ablation bad.json "the cat sleeps"
    says "$1" "$err" "$2"
    if [ -e bad.html ]; then bad "$1: no page"; rm bad.html; fi
}
cost_refused "another model's heads" "has encoder 3.1, which is not on this page" 'told["heads"][0]["layer"] = 3'
cost_refused "heads that are missing" "has no cross 2.2, which is on this page" 'told["heads"].pop()'
cost_refused "a head twice" "encoder 1.1 occurs twice" 'told["heads"][1] = told["heads"][0]'
cost_refused "a kind of its own" '"kind" must be encoder, decoder or cross' 'told["heads"][0]["kind"] = "x"'
cost_refused "half a head" "a head needs kind" 'told["heads"][0].pop("delta")'
cost_refused "a text as a number" '"delta" must be a number' 'told["heads"][0]["delta"] = "x"'
cost_refused "too large" '"delta" is too large' 'told["heads"][0]["delta"] = 10 ** 400'
cost_refused "no plain" "plain are missing" 'told.pop("plain")'
cost_refused "heads of another form" '"heads" must be an array' 'told["heads"] = {}'
cost_refused "a kind that is a number" '"kind" must be a string' 'told["heads"][0]["kind"] = 1'
cost_refused "numbers for heads" '"heads" must contain objects only' 'told["heads"].append(1)'
cost_refused "plain of another form" '"plain" must be an object' 'told["plain"] = 1'
cost_refused "an array" "an object was expected" 'told = []'
"$mha" heads --sentences 2 --json >heads.json 2>/dev/null
exits 1 view -o bad.html --study 0 --ablation heads.json "the cat sleeps"
says "what mha heads prints" "$err" 'this is not what "mha ablate --json" prints'
echo '{"heads": [' >bad.json
exits 1 view -o bad.html --ablation bad.json "the cat sleeps"
says "half a file" "$err" 'this is not what "mha ablate --json" prints'
exits 1 view --ablation /nonexistent "the cat sleeps"
says "no file of ablate" "$err" "/nonexistent: cannot be opened"
exits 1 view -o bad.html --weights plain.safetensors --ablation cost.json
says "of another model than the file" "$err" "the file belongs to another model"

finish
