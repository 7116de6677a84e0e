#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mha sweep: what it refuses, its tables and files, and that stopping it loses no finished training.
. "$(dirname "$0")/harness.bash"
cd "$scratch" || exit 1

small=(--width 16 --ff 16 --steps 6 --batch 4 --evaluate 10 --points 3)
tiny=(sweep "${small[@]}" --heads 1,4 --data 12,0 --seeds 2)

# same_files NAME FILE FILE: to the bit.
same_files() {
    if cmp "$2" "$3" >difference 2>&1; then ok "$1"; else bad "$1" "$(cat difference)"; fi
}

# ------------------------------------------------------------ what is refused

exits 2 sweep --haeds 1
says "an unknown option: a suggestion" "$err" "did you mean --heads?"
exits 2 sweep extra
exits 2 sweep --heads 1,3
says "heads that do not divide the width" "$err" \
    "sweep: --heads 3: the width 64 cannot be divided into 3 equal heads; leave it out or give another --width"
for heads in 0 -1 x 1, ,1 1,,2 1.5 99999999999999999999 ""; do
    exits 2 sweep --heads "$heads"
done
says "heads that are no list" "$err" "with commas between them"
exits 2 sweep --heads 4,2,4
says "heads twice" "$err" "--heads 4,2,4: 4 is there twice"
exits 2 sweep --data -5
exits 2 sweep --data 64000
says "more data than is seen" "$err" "1000 steps of 64 pairs see 64000 pairs; give fewer, or 0 for no limit"
exits 2 sweep --steps 0
says "no steps" "$err" "sweep: --steps 0: a training must have from 1 to"
exits 2 sweep --dropout 1
exits 2 sweep --layers x
exits 2 sweep --layers 0
exits 2 sweep --seeds 0
exits 2 sweep --target 0
says "no loss" "$err" "--target 0: a loss is a positive number"
exits 2 sweep --target nan
exits 2 sweep -o a --svg a
says "two files in one place" "$err" "a is given for two different files"
exits 1 sweep -o nowhere/a.csv
says "no folder" "$err" "there is no such folder"
exits 1 sweep --resume
says "nothing to resume" "$err" "there is no file sweep.csv to resume from"
export MHA_ISA=pdp11
exits 1 "${tiny[@]}"
says "MHA_ISA that cannot run" "$err" "MHA_ISA=pdp11"
unset MHA_ISA
if [ -z "$(ls -A | grep -vE '^(out|err|diff)$')" ]; then
    ok "nothing was left behind"
else
    bad "something was left behind" "$(ls -A)"
fi

# ---------------------------------------------------------- tables and files

exits 0 "${tiny[@]}" --threads 1 --log curves.csv
says "progress" "$err" "8/8  data 0  heads 4  seed 2  valid "
says "a table for few data" "$out" "12 sentence pairs; width 16, 6 steps of 4; 2 seeds"
says "a table for new data" "$out" "always new sentence pairs; width 16, 6 steps of 4; 2 seeds"
says "differences" "$out" "difference from 1 head, seed by seed"
says "a verdict" "$out" "  smaller gap "
says "where the results are" "$out" "Results: sweep.csv, charts: sweep.svg"
same "results" 12 "$(wc -l <sweep.csv)"
same "learning curves" 25 "$(wc -l <curves.csv)"
says "names of the curves" "$(head -n 1 curves.csv)" "data,heads,seed,step,valid_loss"
if [ "$(LC_ALL=C.UTF-8 awk 'length > 80' <<<"$(sed 's/±/+/g' <<<"$out")" | wc -l)" -eq 0 ]; then
    ok "fits into 80 columns"
else
    bad "fits into 80 columns" "$out"
fi
exits 0 "${tiny[@]}" --threads 2 --quiet -o two.csv
silent "quiet: nothing on stderr" "$err"
same_files "the same results with 2 threads" sweep.csv two.csv
same_files "the same charts with 2 threads" sweep.svg two.svg
if command -v python3 >/dev/null; then
    # Two panels of curves with 2 lines each, two losses by heads, each with training.
    same "the charts are XML" "8 4" "$(python3 -c '
import xml.dom.minidom
svg = xml.dom.minidom.parse("sweep.svg")
print(len(svg.getElementsByTagName("polyline")), len(svg.getElementsByTagName("circle")))' 2>&1)"
    # The interval of two numbers is 12.7062 times half of their difference.
    exits 0 "${tiny[@]}" --resume --json
    json "sweep"
    says "keys" "$keys" "cells results seed seeds settings svg"
    same "intervals by another program" "True" "$(python3 -c '
import json, sys
rows = [line.strip().split(",") for line in open("sweep.csv") if line[0] in "0123456789"]
valid = {(int(r[0]), int(r[1]), int(r[2])): float(r[-1]) for r in rows}
train = {(int(r[0]), int(r[1]), int(r[2])): float(r[3]) for r in rows}
def fits(got, a, b):
    half = 12.7062 * abs(a - b) / 2
    wanted = ((a + b) / 2, (a + b) / 2 - half, (a + b) / 2 + half)
    return all(abs(got[k] - w) < 1e-4 for k, w in zip(("mean", "low", "high"), wanted))
cells = json.load(open(sys.argv[1]))["cells"]
fine = len(cells) == 4
for c in cells:
    d, h = c["data"], c["heads"]
    a, b = valid[d, h, 1], valid[d, h, 2]
    fine &= fits(c["valid_loss"], a, b)
    fine &= fits(c["gap"], a - train[d, h, 1], b - train[d, h, 2])
    if h == 4:
        fine &= fits(c["difference"]["valid_loss"], a - valid[d, 1, 1], b - valid[d, 1, 2])
print(fine)' "$scratch/out" 2>&1)"
fi

# A training of a sweep is the one that "mha train" makes with the same settings.
exits 0 train -o one.safetensors --width 16 --ff 16 --steps 6 --batch 4 --layers 1 --heads 4 --lr 0.005 \
    --sentences 12 --seed 2 --warm-up 0 --evaluate 10 --quiet --log one.csv
loss=$(sed -n 's/^12,4,2,.*,\([0-9.]*\)$/\1/p' sweep.csv)
same "the validation loss of mha train" "$(tail -n 1 one.csv | cut -d, -f4)" \
    "$(printf '%.6g' "$loss")"

# -------------------------------------------------------------- going on

cp sweep.csv before.csv
exits 1 "${tiny[@]}"
says "results that are there" "$err" "the results sweep.csv exist. Continue with --resume"
same_files "they stay" before.csv sweep.csv
exits 0 "${tiny[@]}" --resume
silent "nothing is left to train" "$err"
same_files "nothing changes" before.csv sweep.csv
exits 0 "${tiny[@]}" --resume --target 0.001
says "a loss that is not reached" "$out" "reached: 0/2"
exits 1 "${tiny[@]}" --resume --ff 32
says "other settings" "$err" "these results were made with other settings: ff=16 there, ff=32 now"
exits 1 "${tiny[@]}" --resume --evaluate 11
says "another number of sentences" "$err" "evaluate=10 there, evaluate=11 now"
same_files "results of other settings stay" before.csv sweep.csv
# Six of the eight trainings, and two again: those of seed 2 on new data.
sed '/^0,.,2,/d' before.csv >sweep.csv
exits 0 "${tiny[@]}" --resume
same "only those that are missing" "2" "$(wc -l <<<"$err")"
same_files "the same results as in one run" before.csv sweep.csv
exits 0 sweep "${small[@]}" --heads 1,4,2 --data 0,12 --seeds 3 --resume
says "more heads and seeds" "$err" "18/18  data 12  heads 4  seed 3"
same "only the new ones were trained" "10" "$(wc -l <<<"$err")"
same "all are kept" "22" "$(wc -l <sweep.csv)"
sed -i 's/isa .*/isa z80/' sweep.csv
exits 0 sweep "${small[@]}" --heads 1,4,8 --data 0 --seeds 1 --resume
says "another instruction set" "$err" "note: the results were made with z80, but this is"
echo "1,2,3" >>before.csv
exits 1 "${tiny[@]}" --resume -o before.csv
says "a damaged file" "$err" "before.csv, line 13: not a result of a training with 3 validations"
exits 0 "${tiny[@]}" --force --quiet
same "replaced" 12 "$(wc -l <sweep.csv)"
exits 0 sweep "${small[@]}" --heads 4,2 --data 0 --seeds 1 --quiet -o seed.csv
says "one seed has no interval" "$out" "difference from 2 heads, seed by seed"
case $out in
*±* | *"decided"*) bad "one seed decides nothing" "$out" ;;
*) ok "one seed decides nothing" ;;
esac

# ------------------------------------------------------- the published results

# docs/claims.md has the table of this file; printing it again trains nothing.
published=$here/../../docs/data/heads_sweep.csv
cp "$published" published.csv
exits 0 sweep --heads 1,2,4,8,16 --steps 600 --batch 32 --evaluate 200 --points 20 --seeds 5 -o published.csv --resume
case $err in
*valid*) bad "published results: nothing is trained" "$err" ;;
*) ok "published results: nothing is trained" ;;
esac
same_files "published results stay as they are" "$published" published.csv
missing=
while IFS= read -r line; do
    grep -qxF -- "$line" "$here/../../docs/claims.md" || missing+="$line
"
done < <(grep -E '^ +(1|2|4|8|16) |sentence pairs; width|^  (lower|smaller|fewer)' <<<"$out")
silent "docs/claims.md has every line of the table" "$missing"

# --------------------------------------------------------------- stopping

# After the first result a signal ends it; what is done is kept.
long=(sweep "${small[@]}" --heads 1,2,4,8 --data 12,0 --seeds 400 -o stopped.csv --threads 1)
set -m
"$mha" "${long[@]}" >job.out 2>job.err </dev/null &
job=$!
await stopped.csv $job
exits 1 "${long[@]}" --force
says "two at once" "$err" "stopped.csv"
kill -INT $job
wait $job 2>/dev/null
code=$?
set +m
same "exit code of the signal" 130 "$code"
says "what is kept" "$(cat job.err)" "of 3200 trainings are done and kept in stopped.csv"
says "how to go on" "$(cat job.err)" "-o stopped.csv --threads 1 --resume"
kept=$(grep -c '^[0-9]' stopped.csv)
seeds=$((kept / 8 + 1))
exits 0 sweep "${small[@]}" --heads 1,2,4,8 --data 12,0 --seeds $seeds -o stopped.csv --resume
exits 0 sweep "${small[@]}" --heads 1,2,4,8 --data 12,0 --seeds $seeds -o whole.csv --quiet
same_files "stopped or not: the same results" stopped.csv whole.csv

finish
