#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check_format.sh: every C file is as .clang-format says. "make format" makes it so.
set -u
root=$(dirname "$0")/..
. "$root/tests/check_lib.sh"

for folder in include src/core src/cli src/format src/heads src/model python/src tests \
    examples; do
    mapfile -t files < <(find "$root/$folder" -name '*.[ch]' -o -name '*.inc' | sort)
    check "format_of_$folder" clang-format --dry-run --Werror "${files[@]}"
done
finish
