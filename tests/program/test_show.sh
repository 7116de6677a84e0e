#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mha show: what it refuses, which heads it draws and how, and that its numbers are those of mha view
# and mha translate.
. "$(dirname "$0")/harness.bash"
unset MHA_MODEL
cd "$scratch" || exit 1

# widest: columns of the longest line of the maps printed last; all their characters have one.
widest() {
    python3 -c 'import sys
lines = open(sys.argv[1], encoding="utf-8").read().split("\n")[2:]
print(max(len(line) for line in lines if " attends to " not in line))' "$scratch/out"
}

# ------------------------------------------------------------- mistakes -----

exits 0 help show
golden help_show
exits 2 show
exits 2 show "the cat sleeps" "the dog sleeps"
says "one sentence" "$err" "one sentence at a time, not 2"
exits 2 show --kind encdoer "the cat sleeps"
says "an unknown kind" "$err" 'show: no kind "encdoer"; did you mean "encoder"?'
exits 2 show --values nrom "the cat sleeps"
says "unknown values" "$err" 'did you mean "norm"?'
exits 2 show --values 7 "the cat sleeps"
says "values there are" "$err" "there are raw and norm"
exits 2 show --where 'prve>1' "the cat sleeps"
says "an unknown column" "$err" 'show: no column "prve"; did you mean "prev"?'
exits 2 show --where 'prev' "the cat sleeps"
says "a wrong condition" "$err" "show: --where takes conditions"
exits 2 show --where 'layer=1' --study 0 "the cat sleeps"
says "conditions on nothing" "$err" "a --study above 0"
exits 2 show --where role=xyzzy "the cat sleeps"
says "an unknown role" "$err" 'show: no role "xyzzy"; there are: '
exits 2 show --head x "the cat sleeps"
says "no head: what is one" "$err" 'show: --head x: not a head; use "cross 2.4" or "cross L2 H4"'
exits 2 show --head "cross 2.1" --kind cross "the cat sleeps"
says "a kind twice" "$err" "--kind is given by --head already"
exits 2 show --head "L2 H1" --layer 2 "the cat sleeps"
says "a layer twice" "$err" "--layer is given by --head already"
exits 2 show --head 1 --mean "the cat sleeps"
says "a mean of one" "$err" "--mean is of several heads"
for output in "--svg x.svg" "--tikz x.tex" --json; do
    # shellcheck disable=SC2086
    exits 2 show --width 80 $output "the cat sleeps"
    says "a width of no terminal: $output" "$err" "--width is for maps in the terminal"
done
exits 2 show --width 19 "the cat sleeps"
exits 2 show --layer 0 "the cat sleeps"
exits 1 show --model /nonexistent "the cat sleeps"
says "no model" "$err" "/nonexistent: cannot be opened"

# -------------------------------------------------- a model of no skill -----

if ! "$mha" train -o dull.safetensors --width 16 --heads 2 --ff 16 --encoder-layers 1 \
    --decoder-layers 2 --steps 2 --warm-up 1 --batch 2 --evaluate 1 --quiet >out 2>&1; then
    bad "a small model" "$(cat out)"
    finish
    exit
fi
export MHA_MODEL=$scratch/dull.safetensors

exits 2 show --layer 3 "the cat sleeps"
says "a layer that is not there" "$err" "--layer 3: there are 2 layers"
exits 2 show --kind encoder --layer 2 "the cat sleeps"
says "a layer that this kind has not" "$err" "--layer 2: there is 1 layer"
exits 2 show --head 3 "the cat sleeps"
says "a head that is not there" "$err" "--head 3: a layer has 2 heads"
exits 1 show ""
says "no words" "$err" "there are no words"
exits 1 show "$(printf 'cat %.0s' $(seq 64))"
says "too long" "$err" "the sentence is too long"
exits 1 show --to "$(printf 'chat %.0s' $(seq 64))" "the cat sleeps"
says "a target too long" "$err" "--to: the sentence is too long"
exits 1 show --svg nowhere/maps.svg "the cat sleeps"
says "a folder that is not there" "$err" "nowhere/maps.svg"

exits 0 show --to "le chat dort" the cat sleeps
says "both sentences" "$out" "the cat sleeps
le chat dort
"
same "a sheet for each kind and layer" "encoder, layer 1 of 1
decoder, layer 1 of 2
decoder, layer 2 of 2
cross, layer 1 of 2
cross, layer 2 of 2" "$(sed -n 's/\(.*layer [12] of [12]\): .*/\1/p' <<<"$out")"
same "a map for each head" 10 "$(grep -oE 'head [12]' <<<"$out" | wc -l)"
cp "$scratch/out" all
exits 0 show --to "le chat dort" --threads 1 "The cat sleeps."
same "the same for another number of threads" "" "$(diff <(tail -n +2 all) <(tail -n +2 "$scratch/out"))"
exits 0 show --study 0 --kind cross --layer 2 --head 1 --to "le chat" "the cat"
same "no study, no role" "cross, layer 2 of 2: French attends to English

      head 1
          < 
          e 
      t c n 
      h a d 
      e t > " "$(sed -n '4,11p' <<<"$out")"
cp "$scratch/out" one
for head in "cross 2.1" "Cross L2 H1" "cross.2.1"; do
    exits 0 show --study 0 --head "$head" --to "le chat" "the cat"
    same "a head by its name: $head" "" "$(diff one "$scratch/out")"
done
exits 0 show --study 0 --head "L1 H2" "the cat"
same "a head of each kind" "encoder, layer 1
decoder, layer 1
cross, layer 1" "$(sed -n 's/ of [12]: .*//p' <<<"$out")"
exits 0 show --where 'layer=2 head=1' --mean --kind cross "the cat"
silent "one head has no mean" "$(grep mean <<<"$out")"
exits 0 show --kind cross --mean "the cat sleeps"
same "means" 2 "$(grep -cE '^ +head 1 +head 2 +mean$' <<<"$out")"
exits 0 show --where 'layer=1 head=2' "the cat sleeps"
same "a filter" 3 "$(grep -cE '^ +head 2$' <<<"$out")"
silent "only these" "$(grep 'head 1' <<<"$out")"
exits 0 show --where 'layer>7' "the cat sleeps"
says "no head" "$out" "no head matches"
exits 1 show --where 'layer>7' --svg none.svg "the cat sleeps"
if [ -e none.svg ]; then bad "a picture of nothing"; else ok "no picture of nothing"; fi
exits 0 show --values norm "the cat sleeps"
says "norms" "$out" "weight x norm"
exits 0 show "the wug sees"
says "an unknown word" "$err" 'unknown word "wug"'

# --------------------------------------------------------------- colours -----

# escape NAME PATTERN: the colours of what was printed last are of this form, and only of it.
escape() {
    local all
    all=$(grep -oE $'\033\\[[0-9;]*m' "$scratch/out" | grep -vE '\[[012]m')
    if [ -n "$all" ] && ! grep -qvE "$2" <<<"$all"; then ok "$1"; else bad "$1" "$all"; fi
}

exits 0 show "the cat sleeps"
silent "no colours without a terminal" "$(grep -c $'\033' "$scratch/out" | grep -v '^0$')"
export CLICOLOR_FORCE=1
COLORTERM=truecolor run show "the cat sleeps"
escape "true colours" '\[48;2;[0-9]+;[0-9]+;[0-9]+m$'
run show "the cat sleeps"
escape "256 colours" '\[48;5;[0-9]+m$'
TERM=linux run show "the cat sleeps"
escape "16 colours" '\[(4|10)[0-7]m$'
NO_COLOR=1 run show "the cat sleeps"
silent "no colours if asked for" "$(grep -c $'\033' "$scratch/out" | grep -v '^0$')"
unset CLICOLOR_FORCE
LC_ALL=C run show --to "le chat dort" "the cat sleeps"
silent "plain characters" "$(LC_ALL=C grep -P '[^\x00-\x7f]' "$scratch/out")"

# --------------------------------------------------------------- numbers -----

if ! command -v python3 >/dev/null; then
    skip "numbers" "no python3"
    finish
    exit
fi

for width in 32 40 80 200; do
    exits 0 show --mean --width $width --to "le chat s'est enfui" \
        "the cat that i saw yesterday ran away"
    wide=$(widest)
    if [ "$wide" -le $width ]; then ok "width $width"; else bad "width $width" "$wide"; fi
done
same "wide: one line of maps" 1 "$(grep -c 'head 1' <<<"$(sed -n '/encoder/,/decoder/p' <<<"$out")")"
COLUMNS=40 run show --kind encoder --mean "the cat that i saw yesterday ran away"
cp "$scratch/out" narrow
run show --width 40 --kind encoder --mean "the cat that i saw yesterday ran away"
same "--width is like COLUMNS" "" "$(diff narrow "$scratch/out")"

exits 0 show --json --to "le chat dort" --mean "the cat sleeps"
json "show"
same "keys" "expected maps model source study target text values" "$keys"
same "words" "the cat sleeps <end>, <begin> le chat dort, le chat dort <end>" \
    "$(of '", ".join(" ".join(j[k]) for k in ("source", "target", "expected"))')"
same "heads and means" 15 "$(of 'len(j["maps"])')"
same "rows sum to 1" True "$(of 'all(abs(sum(r) - 1) < 1e-4 for m in j["maps"] for r in m["cells"])')"
same "the decoder does not look ahead" True "$(of 'all(not any(r[i + 1:]) for m in j["maps"]
    if m["kind"] == "decoder" for i, r in enumerate(m["cells"]))')"
same "a mean is one" True "$(of 'all(abs((a + b) / 2 - c) < 1e-5 for n in range(0, 15, 3)
    for x, y, z in zip(*(m["cells"] for m in j["maps"][n:n + 3])) for a, b, c in zip(x, y, z))')"
same "roles of heads, not of means" True "$(of 'all(("role" in m) == ("head" in m) for m in j["maps"])')"
cp "$scratch/out" raw.json
exits 0 show --json --to "le chat dort" --values norm "the cat sleeps"
same "norm" norm "$(of 'j["values"]')"
cp "$scratch/out" norm.json

# Roles are those of mha heads, cells the bits of mha view.
"$mha" heads --json >heads.json 2>/dev/null
"$mha" view -o page.html --to "le chat dort" --study 0 "the cat sleeps" >/dev/null
wrong=$(python3 -c '
import base64, json, struct
raw = [m for m in json.load(open("raw.json"))["maps"] if "head" in m]
norm = json.load(open("norm.json"))["maps"]
for own, other in zip(raw, json.load(open("heads.json"))["heads"], strict=True):
    if any(own[k] != other[k] for k in ("kind", "layer", "head", "role")): print(own, other)
text = open("page.html", encoding="utf-8").read()
begin = "<script id=\"data\" type=\"application/json\">"
at = text.index(begin) + len(begin)
kinds = json.loads(text[at:text.index("</script>", at)])["sentences"][0]["kinds"]
def floats(text):
    data = base64.b64decode(text)
    return struct.unpack("<%df" % (len(data) // 4), data)
n = 0
for kind in kinds:
    w = sum((floats(head) for head in kind["weights"]), ())
    norms = floats(kind["value_norms"])
    rows, columns = kind["rows"], kind["columns"]
    for h in range(kind["layers"] * kind["heads"]):
        for i in range(rows):
            for j in range(columns):
                a = w[(h * rows + i) * columns + j]
                b = a * norms[h * columns + j]
                if struct.unpack("<f", struct.pack("<f", raw[n]["cells"][i][j]))[0] != a: print(kind["name"], h, i, j)
                if abs(norm[n]["cells"][i][j] - b) > 1e-5 * b: print("norm", kind["name"], h, i, j)
        n += 1
if n != 10: print(n)
' 2>&1)
if [ -z "$wrong" ]; then ok "numbers of mha view"; else bad "numbers of mha view" "$(head -n 5 <<<"$wrong")"; fi

exits 0 show --svg maps.svg --mean --to "le <chat> & dort" "the cat sleeps"
silent "svg: nothing on stdout" "$out"
says "svg: what was written" "$err" "mha: wrote maps.svg"
same "svg: all sheets" 5 "$(python3 -c '
import xml.etree.ElementTree as e
print(sum(" attends to " in (t.text or "") for t in e.parse("maps.svg").iter("{http://www.w3.org/2000/svg}text")))')"
exits 0 show --tikz maps.tex --json --mean --to 'le <chat> & 100%_$#{}~^\' "the cat sleeps"
wrong=$(python3 - maps.tex "$scratch/out" 2>&1 <<'END'
import json, re, sys
text = open(sys.argv[1], encoding="utf-8").read()
j = json.load(open(sys.argv[2]))
cells = [(int(x), int(y), float(v)) for x, y, v in
         re.findall(r"^  \\mhacell\{(\d+)\}\{(\d+)\}\{\d+\}\{([^}]*)\}$", text, re.M)]
wanted = [(x, y, float("%.6g" % v)) for m in j["maps"] for y, row in enumerate(m["cells"])
          for x, v in enumerate(row) if m["kind"] != "decoder" or x <= y]
if cells != wanted: print("other numbers than JSON:", len(cells), len(wanted))
plain = re.sub(r"\\[\\{}%]", "", re.sub(r"(?m)^%.*$", "", text))
depth = 0
for c in plain:
    depth += (c == "{") - (c == "}")
    if depth < 0: break
if depth: print("braces", depth)
open_ = []
for what, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
    if what == "begin": open_.append(name)
    elif not open_ or open_.pop() != name: print("ends", name)
if open_: print("open", open_)
if text.count(r"\begin{tikzpicture}") != 5 or text.count(r"\begin{scope}") != 15: print("pictures")
if r"{\textless{}chat\textgreater{}}" not in text: print("words")
if "100\\%\\_\\$\\#\\{\\}\\textasciitilde{}\\textasciicircum{}\\textbackslash{}" not in text: print("signs")
END
)
if [ -z "$wrong" ]; then ok "tikz: sound, with the numbers"; else bad "tikz" "$wrong"; fi
exits 1 show --tikz nowhere/maps.tex "the cat sleeps"
cp maps.svg first.svg
exits 0 show --svg maps.svg --json --mean --to "le <chat> & dort" "the cat sleeps"
json "svg and JSON"
if cmp -s maps.svg first.svg; then ok "svg: the same bytes again"; else bad "svg: the same bytes again"; fi

finish
