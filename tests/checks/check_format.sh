#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check_format.sh: every C file follows .clang-format; "make format" applies it.
set -u
root=$(dirname "$0")/../..
. "$root/tests/checks/check_lib.sh"

cd "$root" || exit 1
for folder in include src/* python/src tests/* examples; do
    mapfile -t files < <(find "$folder" -name '*.[ch]' -o -name '*.inc' | sort)
    [ ${#files[@]} -eq 0 ] || check "format_of_$folder" clang-format --dry-run --Werror "${files[@]}"
done
finish
