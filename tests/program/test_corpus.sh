#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mha corpus: pairs, their truth as JSON, statistics, and what it refuses.
. "$(dirname "$0")/harness.bash"

exits 0 corpus
golden corpus
silent "corpus: nothing on stderr" "$err"
exits 0 corpus --seed 1 --split train --count 10
golden corpus
exits 0 corpus --split test --count=10 --seed 0x7
golden corpus_test
exits 0 corpus --json "The cat that I saw yesterday ran away."
golden corpus_json
exits 0 corpus "the quick brown fox jumps"
says "a sentence" "$out" "$(printf 'the quick brown fox jumps\tle renard brun rapide saute')"
exits 0 corpus "did she sleep?"
says "a question" "$out" "est-ce qu'elle a dormi ?"
exits 0 corpus --stats --count 500
golden corpus_stats

exits 0 corpus --json --count 200 --split valid
json "corpus"
says "corpus: keys" "$keys" "alignment english english_tokens french french_tokens roles"
if command -v python3 >/dev/null; then
    says "corpus: positions are positions" "$(python3 -c '
import json, sys
pairs = json.load(open(sys.argv[1]))
fine = len(pairs) == 200
for pair in pairs:
    size = [len(pair["english_tokens"]), len(pair["french_tokens"])]
    fine &= {e for e, f in pair["alignment"]} == set(range(size[0]))
    fine &= {f for e, f in pair["alignment"]} == set(range(size[1]))
    for role in pair["roles"]:
        fine &= max(role["english"]) < size[0] and max(role["french"]) < size[1]
print(fine)' "$scratch/out")" "True"
fi
exits 0 corpus --json --stats --count 100
json "corpus --stats"
says "corpus --stats: keys" "$keys" "english_vocabulary french_vocabulary sentences"
if command -v python3 >/dev/null; then
    says "corpus --stats: no overlap" "$(value shared_combinations) $(value shared_sentences)" "0 0"
fi

exits 1 corpus "the cat sleep"
says "a wrong form: which" "$err" '"sleep" should be "sleeps"'
silent "a wrong form: nothing on stdout" "$out"
exits 1 corpus "the wug sleeps"
says "an unknown word: which" "$err" 'unexpected word "wug"'
exits 1 corpus "the cat saw the dog because it was tired"
says "a pronoun with two nouns" "$err" "does not refer to exactly one noun"
exits 0 corpus "they were giving it to him"
says "pronouns before the verb" "$out" "ils le lui donnaient"
exits 0 corpus "she is giving the boy a book"
says "two objects" "$out" "elle donne un livre au garçon"
exits 1 corpus "$(printf 'the cat %.0s' $(seq 400))"
says "too long a sentence" "$err" "too long"
exits 1 corpus ""
exits 2 corpus --split tset
says "an unknown split: a suggestion" "$err" 'did you mean "test"?'
exits 2 corpus --split everything
says "an unknown split: those there are" "$err" "train, valid and test"
exits 2 corpus --count 0
exits 2 corpus --stats "the cat sleeps"
says "statistics of a sentence" "$err" "leave out"
exits 2 corpus the cat

exits 2 corpus --count 3 "the cat sleeps"
says "an option that would do nothing beside a sentence" "$err" "--count selects sentences"
exits 2 corpus --stats --split test
says "a split of all" "$err" "--stats counts all of them"

finish
