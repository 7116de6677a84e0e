#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# run.sh [PROGRAM]: the demonstration of `make run`: a few translations, and what every head
# attended to in one of them. Without a model, the heads of an untrained layer.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
mha=${1:-build/mha}
export MHA_MODEL=${MHA_MODEL:-$root/models/lab-en-fr.safetensors}
if [ ! -f "$MHA_MODEL" ]; then
    exec "$mha" demo
fi

sentences="The cat that I saw yesterday ran away
The quick brown fox jumps
The turtle sleeps because it is tired
We never eat the big red apples
The queens that we know have a small white mouse
The old women will look for their dogs tomorrow
They were giving it to him
She gives the boy a book
Who ate the red apple?"

echo "English to French, by a transformer that this library trained from scratch:"
echo
paste <(printf '%s\n' "$sentences") <("$mha" translate <<<"$sentences") |
    awk -F '\t' '{ printf "  %-49s %s\n", $1, $2 }'
echo
"$mha" translate --attention "${sentences%%$'\n'*}"
cat <<EOF
Try next
  $mha translate --attention "The small white mouse that you saw is tired"
  $mha translate --beam 4 --best 4 --gold "Did she sleep?"
  $mha show "The quick brown fox jumps"    all heads on a sentence, with their roles
  $mha view "The quick brown fox jumps"    the same as a page for a browser
  $mha serve --open                        the same live: type a sentence, disable heads
  $mha heads                               the role of every head
  $mha ablate                              what disabling each head costs
  $mha prove                               what is true of attention, with numbers
  $mha translate --evaluate 1000           how many held-out sentences are exact
  $mha corpus --split test                 sentences it has not seen; it knows no other words
  $mha train -o small.safetensors --width 64 --heads 4 --ff 256 --steps 2000    how it learnt
EOF
