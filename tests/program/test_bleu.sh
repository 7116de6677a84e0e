#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mha bleu: lines and pairs, messages. The numbers were computed by sacrebleu 2.6.0.
. "$(dirname "$0")/harness.bash"
cd "$scratch" || exit

printf 'le chat dort .\nil mange\nelle lit un livre\n' >said
printf 'le chat dort .\nil mange une pomme\nelle lit le livre\n' >one
printf "le chat est endormi .\nil mange des pommes\nelle lit un livre\n" >two

exits 0 bleu said one
same "one reference" "BLEU    51.84  precisions 90.0/71.4/50.0/50.0, brevity penalty 0.819
chrF2   62.77
3 sentences, 10 words, 12 in the references (ratio 0.833), 1 reference each" "$out"
exits 0 bleu said one two
same "two references" "BLEU    81.87  precisions 100.0/100.0/100.0/100.0, brevity penalty 0.819
chrF2   78.72
3 sentences, 10 words, 12 in the references (ratio 0.833), 2 references each" "$out"

paste <(printf 'the cat\nhe eats\nshe reads\n') one >pairs.tsv
printf 'she reads\telle lit un livre\nthe cat\tle chat est endormi .\n' >>pairs.tsv
exits 0 bleu --tsv said pairs.tsv
says "pairs" "$out" "BLEU    81.87  "
says "pairs: numbers of references" "$out" "1 to 2 references each"
exits 0 bleu --json --tsv said pairs.tsv
json "bleu --json"
same "keys" "bleu brevity_penalty chrf2 matches precisions ratio reference_words references_max references_min sentences totals words" "$keys"
same "exact numbers" "True" "$(of 'abs(j["bleu"] - 81.87307530779823) < 1e-12')"

printf 'Il est 5,5 heures, dit-il.\n' >said.13a
printf 'Il est 5,5 heures , dit-il.\n' >one.13a
exits 0 bleu said.13a one.13a
says "words of 13a" "$out" "BLEU   100.00  "
exits 0 bleu --tokenize 13a said.13a one.13a
says "13a by name" "$out" "BLEU   100.00  "
exits 0 bleu --tokenize none said.13a one.13a
says "words as given" "$out" "BLEU    34.98  precisions"
exits 2 bleu --tokenize words said one
says "an unknown tokenizer" "$err" '--tokenize "words": it must be 13a or none'

exits 2 bleu said
exits 2 bleu --tsv said pairs.tsv one
says "one file of pairs" "$err" "--tsv takes one file of references, not 2"
exits 1 bleu said none
says "no such file" "$err" "none: cannot be opened"
head -n 2 one >short
exits 1 bleu said short
says "fewer references" "$err" "said has 3 lines, but short has 2 lines"
exits 1 bleu said one short
says "references of different lengths" "$err" "short has 2 lines, but one has 3"
exits 1 bleu --tsv short pairs.tsv
says "fewer hypotheses than sources" "$err" "short has 2 lines, but pairs.tsv has 3 different sources"
exits 1 bleu --tsv said one
says "no tab" "$err" "one:1: has no tab"
: >empty
exits 1 bleu empty empty
says "no sentences" "$err" "empty: there are no sentences in it"
printf 'a\xff\n' >bytes
exits 1 bleu bytes bytes
says "not UTF-8" "$err" "bytes: not UTF-8 text"
finish
