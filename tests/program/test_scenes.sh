#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mha scenes: captions, truth, pictures, statistics, and what it refuses.
. "$(dirname "$0")/harness.bash"

exits 0 scenes
golden scenes
silent "scenes: nothing on stderr" "$err"
exits 0 scenes --seed 1 --split train --count 10
golden scenes
exits 0 scenes --stats --count 300
golden scenes_stats
exits 0 scenes --json --split test --count 2
golden scenes_json
json "scenes"
says "scenes: keys" "$keys" "english french picture relations shapes shapes_picture"
exits 0 scenes --json --stats --count 200
json "scenes --stats"
if command -v python3 >/dev/null; then
    same "scenes --stats: no overlap" 0 "$(value shared_combinations)"
fi

# Pictures and masks agree with truth.json.
if "$mha" scenes --count 1 -o "$scratch/one" 2>&1 | grep -q "built without libpng"; then
    skip "pictures" "built without libpng"
else
    exits 0 scenes --split test --count 6 -o "$scratch/pictures"
    silent "scenes -o prints nothing" "$out"
    same "two pictures for each scene, and the truth" 13 "$(find "$scratch/pictures" -type f | wc -l)"
    exits 0 scenes --json --split test --count 6
    if cmp -s "$scratch/out" "$scratch/pictures/truth.json"; then
        ok "truth.json is what --json prints"
    else
        bad "truth.json is what --json prints"
    fi
    if command -v python3 >/dev/null; then
        says "boxes and pixels of the masks" "$(python3 "$here/scene_truth.py" "$scratch/pictures")" \
            "6 pictures agree"
    fi
    exits 0 scenes --split test --count 6 -o "$scratch/pictures"
    exits 1 scenes -o "$scratch/out/nowhere"
    says "a folder that cannot be" "$err" "cannot make the folder"
fi

exits 2 scenes --split tset
says "an unknown split: a suggestion" "$err" 'did you mean "test"?'
exits 2 scenes --count 0
exits 2 scenes --stats --split test
says "a split of all" "$err" "--stats counts all of them"
exits 2 scenes --stats -o "$scratch/x"
exits 2 scenes --json -o "$scratch/x"
says "truth twice" "$err" "truth.json"
exits 2 scenes "a red circle"

finish
