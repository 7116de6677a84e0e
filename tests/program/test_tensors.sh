#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mha tensors: what is in a safetensors, GGUF or llama2.c file, and what is not one.
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

# gguf FILE: pairs of a number, a string with control characters and bytes that are not UTF-8, and an
# array; a tensor of two rows and one block of 32 each.
zero='\0\0\0\0\0\0\0'
gguf() {
    {
        printf "GGUF\3\0\0\0\1${zero}\3$zero"
        printf "\5${zero}count\4\0\0\0\7\0\0\0"
        printf "\4${zero}text\10\0\0\0\7${zero}a\033\302\233\233\0z"
        printf "\4${zero}list\11\0\0\0\1\0\0\0\11${zero}\1\2\3\4\5\6\7\10\377"
        printf "\1${zero}w\2\0\0\0\40${zero}\2${zero}\2\0\0\0\0$zero"
    } >"$1"
    truncate -s %32 "$1"
    printf '%036d' 0 >>"$1"
}
gguf model.gguf
gguf model
exits 0 tensors model.gguf
golden tensors_gguf
exits 0 tensors model
says "a GGUF file of any name" "$out" "Q4_0"
exits 0 tensors --json model.gguf two.safetensors
json "tensors of a GGUF file"
says "GGUF: the type" "$out" '"format": "gguf"'
says "GGUF: an array" "$out" '"count": 9'
truncate -s -1 model.gguf
exits 1 tensors model.gguf
says "GGUF: a byte is missing" "$err" 'mha: model.gguf: the tensor "w" of 36 bytes'

# Width 2, one head, one layer, one word, one position: 7 numbers and 32 elements.
{
    printf '\2\0\0\0'
    for _ in 1 2 3 4 5 6; do printf '\1\0\0\0'; done
    printf '%0128d' 0
} >model.bin
exits 0 tensors model.bin
golden tensors_llama2c
exits 0 tensors --json model.bin
json "tensors of a llama2.c file"
says "llama2.c: the type" "$out" '"format": "llama2.c"'
printf 0 >>model.bin
exits 1 tensors model.bin
says "llama2.c: a byte too many" "$err" "mha: model.bin: not a model of llama2.c: its header asks for 156 bytes, the file has 157"

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
