#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mha tensors: what is in a safetensors file, and what is not one.
. "$(dirname "$0")/harness.bash"

# make FILE HEADER DATA: a file; the header has fewer than 256 bytes.
make() {
    { printf "\\x$(printf %02x ${#2})\0\0\0\0\0\0\0"; printf '%s%s' "$2" "$3"; } >"$1"
}

cd "$scratch" || exit 1
make two.safetensors '{"__metadata__":{"format":"pt"},"encoder.weight":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"bias":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}}' 12345678abc
make scalar.safetensors '{"s":{"dtype":"BF16","shape":[],"data_offsets":[0,2]}}' ab
make none.safetensors '{}' ''
make extra.safetensors '{"s":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":0}}' a
make hole.safetensors '{"s":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}' ab
make long.safetensors '{"s":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' ab
make control.safetensors '{"\u001b[31m\u009b\u007f":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' a

exits 0 tensors two.safetensors scalar.safetensors none.safetensors
golden tensors
silent "tensors: nothing on stderr" "$err"
exits 0 tensors --json two.safetensors
json "tensors"
says "tensors: keys" "$keys" "data_bytes file header_bytes metadata tensors"
golden tensors_json
exits 0 tensors --json none.safetensors two.safetensors
json "tensors of two files"

exits 0 tensors extra.safetensors
says "a warning" "$err" 'warning: "s": unknown field'
exits 1 tensors --strict extra.safetensors
says "strict: an error" "$err" 'InvalidHeaderDeserialization: "s": unknown field'
silent "strict: nothing on stdout" "$out"
exits 1 tensors hole.safetensors
says "a hole" "$err" 'mha: hole.safetensors: InvalidOffset: "s" has the bytes 1 to 2'
exits 1 tensors long.safetensors
says "a byte too many" "$err" "MetadataIncompleteBuffer"
exits 1 tensors hole.safetensors two.safetensors long.safetensors
says "the good one among bad ones" "$out" "encoder.weight"
exits 1 tensors --json hole.safetensors
says "tensors of none: an empty array" "$out" "[]"
exits 1 tensors /nonexistent
says "no such file" "$err" "/nonexistent: cannot be opened"
exits 1 tensors "$scratch"
says "a folder" "$err" "not a regular file"
exits 1 tensors "$mha"
exits 2 tensors
exits 2 tensors --jsno two.safetensors
says "wrong option" "$err" "did you mean --json?"

exits 0 tensors control.safetensors
case $out$err in
*"$(printf '\033')"* | *"$(printf '\302\233')"*) bad "control characters stay out" ;;
*) ok "control characters stay out" ;;
esac

# The verdicts of the format's own package, on files changed at random.
if python3 -c 'import safetensors' 2>/dev/null; then
    if python3 -B "$here/compare_safetensors.py" "$mha" 5000 >compared 2>&1; then
        ok "the same verdicts as safetensors"
    else
        bad "the same verdicts as safetensors" "$(tail -n 20 compared)"
    fi
else
    skip "the same verdicts as safetensors" "python3 has no safetensors"
fi

finish
