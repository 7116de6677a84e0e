#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mha conv: the project's own picture through all kernels, and what it refuses.
. "$(dirname "$0")/harness.bash"
cat=$here/../../docs/images/cat.png
to=$scratch/out.png

run conv "$cat" --kernel identity -o "$to"
case $err in
*"built without libpng"*)
    says "without libpng: the package" "$err" "libpng-dev"
    skip conv "built without libpng"
    finish
    exit
    ;;
esac

for kernel in identity blur sharpen edge emboss sobel; do
    exits 0 conv "$cat" --kernel $kernel -o "$to"
    says "$kernel: within its bound" "$out" "from a direct convolution, at most"
    says "$kernel: no byte differs" "$out" " 0 of 186624 differ"
    silent "$kernel: nothing on stderr" "$err"
done
# The picture of the documentation, through the same compressor.
exits 0 conv "$here/../../docs/images/cat_sobel.png" --kernel identity -o "$scratch/shown.png"
if cmp -s "$scratch/shown.png" "$to"; then
    ok "cat_sobel.png is what sobel gives"
else
    bad "cat_sobel.png is what sobel gives"
fi
for padding in replicate zero circular valid; do
    exits 0 conv "$cat" --kernel sobel --heads hard --padding $padding -o "$to"
    says "hard heads, padding $padding: bit-equal" "$out" "(white is 1): bit-equal"
done
says "valid: smaller" "$out" "286 x 214"

# A picture that went through nothing is the same picture, and the bits do not depend on threads.
exits 0 conv "$cat" --kernel identity --threads 1 -o "$scratch/one.png"
says "threads: one" "$out" "1 thread"
exits 0 conv "$scratch/one.png" --kernel identity --threads 3 -o "$scratch/two.png"
if cmp -s "$scratch/one.png" "$scratch/two.png"; then
    ok "identity: the same file"
else
    bad "identity: the same file"
fi
exits 0 conv "$cat" --kernel identity --alpha 1 -o "$to"
says "soft heads: far from the convolution, and said so" "$out" "of 186624 differ"
case $out in
*" 0 of 186624 differ"*) bad "soft heads blur" "$out" ;;
*) ok "soft heads blur" ;;
esac

printf '# shift to the left\n0 0 0\n0 0 1\n0 0 0\n' >"$scratch/kernel"
exits 0 conv "$cat" --kernel "$scratch/kernel" --json -o "$to"
json "conv"
says "conv: keys" "$keys" "alpha bound bytes bytes_changed channels columns difference head_count heads"
if command -v python3 >/dev/null; then
    says "conv: nine heads" "$(value head_count) $(value within_bound) $(value kernel_size)" "9 True 3"
fi

exits 2 conv
exits 2 conv "$cat"
says "no kernel" "$err" "--kernel is missing"
exits 2 conv "$cat" --kernel sobel
says "no output" "$err" "-o OUT.png is missing"
exits 2 conv "$cat" --kernel sobl -o "$to"
says "an unknown kernel: a suggestion" "$err" 'did you mean "sobel"?'
exits 2 conv "$cat" --kernel sobel --heads soft -o "$to"
says "unknown heads" "$err" "no heads \"soft\"; there are gauss and hard"
exits 2 conv "$cat" --kernel sobel --padding circle -o "$to"
says "unknown padding: a suggestion" "$err" 'did you mean "circular"?'
exits 2 conv "$cat" --kernel sobel --alpha 0 -o "$to"
says "alpha" "$err" "not a number from 0.25 to 1000"
exits 2 conv "$cat" --kernel sobel --alpha nan -o "$to"
printf '1 2\n3\n' >"$scratch/kernel"
exits 2 conv "$cat" --kernel "$scratch/kernel" -o "$to"
says "a kernel that is not square: the line" "$err" "line 2: a kernel is square"
exits 1 conv "$scratch/none.png" --kernel sobel -o "$to"
says "no such picture" "$err" "No such file"
exits 1 conv "$here/harness.bash" --kernel sobel -o "$to"
says "no picture" "$err" "not a PNG file"
head -c 4000 "$cat" >"$scratch/cut.png"
rm -f "$to"
exits 1 conv "$scratch/cut.png" --kernel sobel -o "$to"
says "half a picture" "$err" "is damaged"
silent "half a picture: nothing on stdout" "$out"
if [ -e "$to" ]; then bad "half a picture: nothing written"; else ok "half a picture: nothing written"; fi
exits 1 conv "$cat" --kernel sobel -o /nonexistent/out.png
says "no such folder" "$err" "there is no such folder"
exits 1 conv "$cat" --kernel sobel -o "$scratch"
says "a folder" "$err" "cannot write"

exits 2 conv "$cat" --kernel sobel --heads hard --alpha 3 -o "$to"
says "a sharpness of hard heads" "$err" "--alpha is the sharpness of gauss heads"

finish
