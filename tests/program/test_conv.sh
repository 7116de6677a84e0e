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

# The figure: valid XML whose taps, arrows and sums are those of the filter.
printf '0.5 -2 0\n3.25 1 -0.125\n7 0.1 -1\n' >"$scratch/odd"
exits 0 conv "$cat" --kernel "$scratch/odd" --figure "$scratch/odd.svg" --pixel 21,102
says "figure: without a picture, its pixel" "$out" "odd.svg  pixel 21,102"
says "figure: products are counted" "$out" "multiply-adds per pixel, loop 81"
exits 0 conv "$cat" --kernel sobel --figure "$scratch/sobel.svg" --json
json "conv --figure"
# The picture of the documentation, but for the last bits.
exits 0 conv "$cat" --kernel edge --figure "$scratch/edge.svg"
plain() { sed -E 's/ data-[a-z]*="[^"]*"//g' "$1"; }
if cmp -s <(plain "$scratch/edge.svg") <(plain "$here/../../docs/images/conv_heads.svg"); then
    ok "conv_heads.svg is what edge gives"
else
    bad "conv_heads.svg is what edge gives"
fi
# A name that XML does not allow: a control character, half a letter, and markup.
strange=$scratch/$'\x01<&\xc3.txt'
cp "$scratch/odd" "$strange"
exits 0 conv "$cat" --kernel "$strange" --figure "$scratch/strange.svg"
says "figure: a strange name" "$(cat "$scratch/strange.svg")" ">kernel: ?&lt;&amp;?.txt<"
if command -v python3 >/dev/null; then
    says "figure: its numbers" "$(python3 - "$scratch" <<'END'
import struct, sys, xml.etree.ElementTree as xml

def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]

def check(name, kernels):
    nodes = list(xml.parse(f"{sys.argv[1]}/{name}.svg").iter())
    taken = lambda key: [float(n.get(key)) for n in nodes if n.get(key) is not None]
    wanted = [f32(tap) for kernel in kernels for tap in kernel]
    assert taken("data-tap") == wanted, (taken("data-tap"), wanted)
    shown = [n.text for n in nodes if n.get("data-tap") is not None]
    assert shown == ["%.4g" % (tap + 0.0) for tap in wanted], shown
    heads = [tuple(int(n.get("data-" + key)) for key in ("head", "row", "column"))
             for n in nodes if n.get("data-head")]
    assert heads == [(n + 1, n // 3 - 1, n % 3 - 1) for n in range(9)], heads
    products, sums = taken("data-product"), taken("data-sum")
    for n, total in enumerate(sums):
        assert abs(sum(products[9 * n:9 * n + 9]) - total) < 1e-5, (products, sums)
    assert len(sums) == len(kernels) and max(abs(a - b) for a, b in zip(sums, taken("data-loop"))) < 1e-4

check("strange", [[0.5, -2, 0, 3.25, 1, -0.125, 7, 0.1, -1]])
check("odd", [[0.5, -2, 0, 3.25, 1, -0.125, 7, 0.1, -1]])
check("sobel", [[-1, 0, 1, -2, 0, 2, -1, 0, 1], [-1, -2, -1, 0, 0, 0, 1, 2, 1]])
print("as computed")
END
)" "as computed"
fi
exits 2 conv "$cat" --kernel edge --pixel 1,1 -o "$to"
says "a pixel without a figure" "$err" "--pixel selects what --figure draws"
for pixel in 1 1,2,3 -1,2 x,y 1,2x 99999999999999999999,1; do
    exits 2 conv "$cat" --kernel edge --figure "$scratch/no.svg" --pixel=$pixel
    says "a pixel that is none: $pixel" "$err" "not ROW,COLUMN"
done
exits 1 conv "$cat" --kernel edge --figure "$scratch/no.svg" --pixel 216,0
says "a pixel beyond the picture" "$err" "the output has 216 rows and 288 columns"
if [ -e "$scratch/no.svg" ]; then bad "no figure after an error"; else ok "no figure after an error"; fi
exits 1 conv "$cat" --kernel edge --figure /nonexistent/out.svg
says "figure: no such folder" "$err" "there is no such folder"
for n in 1 2 3 4 5 6; do echo "1 1 1 1 1 1"; done >"$scratch/large"
exits 2 conv "$cat" --kernel "$scratch/large" --figure "$scratch/no.svg"
says "figure: a large kernel" "$err" "--figure draws kernels up to 5 x 5, not 6 x 6"

exits 2 conv
exits 2 conv "$cat"
says "no kernel" "$err" "--kernel is missing"
exits 2 conv "$cat" --kernel sobel
says "no output" "$err" "-o OUT.png is missing, or --figure OUT.svg"
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
