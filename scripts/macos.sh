#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# macos.sh [FILE...]: compiles the sources of both libraries, or these, for macOS on AArch64 and x86-64, with the
# headers that PyPI's package ziglang brings (macos.sh --install puts it into build/zig, 100 MB). Nothing is linked.
set -u
cd "$(dirname "$0")/.."
python=build/zig/bin/python

if ! "$python" -c "import ziglang" 2>/dev/null; then
    { python3 -m venv build/zig && build/zig/bin/pip install --quiet ziglang; } || exit 1
fi
[ "${1:-}" != --install ] || exit 0
export ZIG_GLOBAL_CACHE_DIR=$PWD/build/zig/cache ZIG_LOCAL_CACHE_DIR=$PWD/build/zig/cache
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/include" # of the libraries of tokenizers: these headers depend on no system
cp /usr/include/pcre2.h /usr/include/utf8proc.h "$scratch/include/" || exit 1

# The sources as CMake takes them on macOS; kernels of instruction sets need flags of their own.
sources=("$@")
if [ $# -eq 0 ]; then
    for source in src/{core,base,format,text,model}/*.c src/core/kernels/{kernels,native}_c.c; do
        case $source in
        *_windows.c | */libraries_none.c) continue ;;
        *_apple.c) ;;
        *) [ ! -e "${source%.c}_apple.c" ] || continue ;;
        esac
        sources+=("$source")
    done
fi

failed=0
for machine in aarch64 x86_64; do
    for source in "${sources[@]}"; do
        "$python" -m ziglang cc -target $machine-macos -std=gnu11 -Wall -Wextra -Iinclude -Isrc \
            -I"$scratch/include" -c -o "$scratch/object.o" "$source" >"$scratch/log" 2>&1 && [ -s "$scratch/object.o" ] &&
            rm "$scratch/object.o" && continue
        failed=$((failed + 1))
        echo "FAIL $machine $source"
        grep -E 'error|warning' "$scratch/log" | head -n 5
    done
done
echo "macos: $((2 * ${#sources[@]} - failed)) passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
