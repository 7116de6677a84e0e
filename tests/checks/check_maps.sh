#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_maps.sh: docs/design.md, "File by file", names every file of src/ exactly once, and no file
# that does not exist. There, "### src/ROOM" is followed by a block whose lines begin with two spaces
# and one or more file names. A .c file stands for the header of the same name too. And every .c file
# begins, after its licence line, with a comment that says what it does; not the two examples that the
# README shows as they are.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/checks/check_lib.sh"
cd "$root/src" || exit 1

# The files that a map has to name, as "ROOM FILE".
existing() {
    find . -name '*.[ch]' -o -name '*.inc' -o -path '*/web/*' -type f | sed 's|^\./||' |
        while read -r file; do
            [[ $file != *.h || ! -f ${file%.h}.c ]] || continue
            echo "${file%%/*} $(basename "$file")"
        done
}

named() {
    awk '/^## / { inside = $0 == "## File by file" }
         !inside { next }
         /^### src\// { room = substr($2, 5) }
         /^```/ { block = !block }
         block && /^  [a-z0-9_]+\.[a-z]+/ {
             for (n = 1; n <= NF && $n ~ /^[a-z0-9_]+\.(c|h|inc|js|css|html)$/; n++) print room, $n
         }' "$root/docs/design.md"
}

# Lines that are a file name: it has no comment in its second line.
sources_without_a_map() {
    local file
    for file in "$root"/src/*/*.c "$root"/src/core/kernels/* "$root"/tests/*/*.c \
        "$root"/python/src/*.c "$root"/examples/*.c; do
        [[ $file == */examples/readme*.c || $(sed -n 2p "$file") == "/*"* ]] ||
            echo "${file#"$root"/}"
    done
}

every_source_begins_with_a_map() {
    diff /dev/null <(sources_without_a_map)
}

check every_source_begins_with_a_map every_source_begins_with_a_map
check every_file_is_in_one_map diff <(existing | sort) <(named | sort)
finish
