#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# run.sh [PROGRAM]: the demonstration of `make run`: a few translations, and what the heads attended
# to in one of them.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
mha=${1:-build/mha}
model=$root/models/en-fr
unset MHA_MODEL

sentences="I love you.
Where is the station?
I would like a cup of coffee, please.
Tom lives in Boston.
If it rains tomorrow, we will stay at home.
We should have told him the truth.
The old man was sitting under a tree."

echo "English to French, by a transformer that this library trained from scratch on real sentences:"
echo
paste <(printf '%s\n' "$sentences") <("$mha" translate --model "$model" <<<"$sentences") |
    awk -F '\t' '{ printf "  %-44s %s\n", $1, $2 }'
echo
echo "What its heads attend to, in the last layer of the decoder:"
"$mha" translate --model "$model" --attention "The old man was sitting under a tree." | tail -n +2
cat <<EOF
Try next
  $mha translate                          type sentences of your own
  $mha translate --best 4 "She gave me a book."
  $mha show --words "The cat ran away."   all heads on a sentence
  $mha view "The cat ran away."           the same as a page for a browser
  $mha serve --open                       the same live: type a sentence, disable heads
  $mha inspect en-fr                      what the model is, with a drawing of one layer
  $mha heads                              roles of heads in the laboratory, whose grammar is known
  $mha ablate                             what disabling each of its heads costs
  $mha translate --gold "She gives the boy a book"    compared with the grammar
  $mha scenes --split test --count 3 -o scenes
  $mha see scenes/test-*[0-9].png --heads -    what a model says of pictures, and where it looks
  $mha view --model captions scenes/test-000000.png    the same as a page
  $mha prove                              what is true of attention, with numbers
  $mha train -o small.safetensors --width 64 --heads 4 --ff 256 --steps 2000    train one yourself
EOF
