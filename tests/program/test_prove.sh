#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mha prove: the claims and their numbers, as text and as JSON.
. "$(dirname "$0")/harness.bash"

exits 0 prove --svg "$scratch/data.svg"
silent "prove: nothing on stderr" "$err"
says "prove: all claims" "$out" "8 of 8 claims hold, seed 1"
says "prove: the first" "$out" "1 scores: "
says "prove: the last" "$out" "8 data: "
says "data: with few pictures the convolution is better" "$out" "the convolution is better with 16, 256 pictures"
says "data: with far taps attention is" "$out" "attention is better with 16, 256 pictures"
says "data: multiply-adds, convolution" "$out" "multiply-adds: convolution                           3888"
says "data: multiply-adds, attention" "$out" "multiply-adds: attention                           110160"
if command -v python3 >/dev/null; then
    says "data: the chart" "$(python3 -c '
import sys, xml.etree.ElementTree as xml
names = [node.tag.split("}")[1] for node in xml.parse(sys.argv[1]).iter()]
print(names.count("polyline"), "curves,", names.count("circle"), "points")' "$scratch/data.svg")" \
        "6 curves, 12 points"
fi
case $out in
*FAIL*) bad "prove: no assertion fails" "$(grep FAIL <<<"$out")" ;;
*) ok "prove: no assertion fails" ;;
esac
if [ "$(awk 'length > 80' <<<"$out" | wc -l)" -eq 0 ]; then
    ok "prove: fits into 80 columns"
else
    bad "prove: fits into 80 columns" "$(awk 'length > 80' <<<"$out")"
fi

exits 0 prove scores
says "one claim" "$out" "1 of 1 claims hold"
says "the popular wording is false" "$out" "FALSE, although often stated: a_ij <= max(a_ii, a_jj)"
says "counterexample: a_01" "$out" "a_01 = 0.575975"
says "counterexample: a_00" "$out" "a_00 = 0.283995"
says "counterexample: a_11" "$out" "a_11 = 0.055436"
says "the share that violates it" "$out" "share of 2000 random X violating it"
says "the symmetric part decides" "$out" "exactly if the symmetric part of W has a"
says "a part without a negative eigenvalue" "$out" "3000 pairs of tokens: mutual preferences              0  <= 0"
says "a part with one: both prefer the other" "$out" "smallest a_01 / a_00, a_10 / a_11 of these      7.38"
exits 0 prove convolution
says "two heads for one channel" "$out" "ok   f64 7x7 random, replicate: 2 heads"
says "one head for one sign" "$out" "ok   f64 5x5 all taps positive: 1 head "
says "one head for zeros" "$out" "ok   f64 3x3 all taps 0: 1 head "
says "never more than two" "$out" "largest number of heads                                 2  <= 2"
says "nine heads for nine taps" "$out" "ok   9 heads, one per tap: share lost"
says "eight are not enough" "$out" "ok   8 heads, any weights: lost at least"
says "rank + 1 are enough" "$out" "ok   13 heads instead of 25: largest error"
exits 0 prove 4
says "the condition of the title" "$(head -n 1 <<<"$out")" "4 places: one number per token: one head cannot read two places, two can"
says "one head loses the places" "$out" "ok   one head: change by the swap, largest"
says "two heads keep the places" "$out" "ok   two heads: change by the swap, smallest"
exits 0 prove 7
says "heads: the condition of the title" "$(head -n 1 <<<"$out")" "7 heads: several heads are better than one where the task needs them"
says "heads: better for two places" "$out" '"several heads are better than one": supported here'
says "heads: not better for one place" "$out" '"several heads are better than one": NOT supported, it is the opposite here'
says "heads: no regulariser there" "$out" '"several heads regularise": NOT supported, it is the opposite here'
says "heads: not faster there" "$out" '"several heads learn faster": NOT supported, it is the opposite here'
says "heads: one never learns two places" "$out" "1 head: starts of 8 that reach a loss of 0.1            0"
exits 0 prove 6 pointwise 6
says "by number, by name, twice" "$out" "2 of 2 claims hold"
exits 0 prove --seed 123 fold pointwise scores
says "another seed" "$out" "3 of 3 claims hold, seed 123"
says "in their order, not the user's" "$(head -n 1 <<<"$out")" "1 scores"

exits 0 prove --json scores fold
json "prove"
says "prove: keys" "$keys" "assertions claim failed holds number rows seconds seed title"
if command -v python3 >/dev/null; then
    says "prove: rows" "$(python3 -c '
import json, sys
claims = json.load(open(sys.argv[1]))
fine = [c["claim"] for c in claims] == ["scores", "fold"]
for c in claims:
    rows = [r for r in c["rows"] if "holds" in r]
    fine &= len(rows) == c["assertions"] and c["failed"] == 0 and c["holds"]
    for r in rows:
        fine &= r["value"] <= r["bound"] if r["relation"] == "<=" else r["value"] >= r["bound"]
print(fine)' "$scratch/out")" "True"
fi

exits 2 prove scroes
says "an unknown claim: a suggestion" "$err" 'no claim "scroes"; did you mean "scores"?'
exits 2 prove 9
says "an unknown number" "$err" 'no claim "9"'
silent "an unknown claim: nothing on stdout" "$out"
exits 2 prove 1 2 3 4 5 6 7 8 1
exits 2 prove fold --full
says "more of a claim that is not chosen" "$err" '--full and --svg belong to the claim "data"'
exits 2 prove fold --svg "$scratch/none.svg"
exits 1 prove data --svg /nonexistent/data.svg
says "a chart in no folder" "$err" "there is no such folder"
silent "a chart in no folder: nothing is run" "$out"
exits 2 prove --seed x
export MHA_ISA=pdp11
exits 1 prove scores
says "MHA_ISA that cannot run" "$err" "MHA_ISA=pdp11"
unset MHA_ISA

finish
