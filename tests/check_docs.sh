#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check_docs.sh BUILD: every example runs, the README shows examples/readme.c as it is, links lead to
# files that exist, the manual knows every name and every field of the header, and the constants in
# docs/numerics.md are those of the sources.
set -u
build=$1
root=$(dirname "$0")/..
. "$root/tests/check_lib.sh"

readme_shows_example() {
    diff <(sed -n '/^```c$/,/^```$/p' "$root/README.md" | sed '1d;/^```$/,$d') \
        <(tail -n +2 "$root/examples/readme.c")
}

links_lead_somewhere() {
    local page link status=0
    for page in "$root"/*.md "$root"/docs/*.md; do
        for link in $(grep -oE '\]\([^)#]+' "$page" | sed 's/^](//' | grep -v '://'); do
            [ -e "$(dirname "$page")/$link" ] || { echo "$page: $link"; status=1; }
        done
    done
    return $status
}

# Everything but the include guard, the export attribute and the three version numbers.
manual_is_complete() {
    local name status=0
    for name in $(grep -ohE '\b(mha|MHA)_[A-Za-z0-9_]+' "$root/include/mha/mha.h" | sort -u |
        grep -vE '^(MHA_MHA_H|MHA_API|MHA_VERSION_[A-Z]+)$'); do
        cat "$root"/man/*.3 | grep -qw "$name" || { echo "no manual page has $name"; status=1; }
    done
    return $status
}

# The fields of all structs of the header, a line each.
fields() {
    sed -n '/^typedef struct [a-z_]* {/,/^}/p' "$root/include/mha/mha.h" |
        sed -e '/^[}t]/d' -e 's|/\*.*\*/||' | sed -e '/\/\*/,/\*\//d' -e 's/(\*\([a-z_]*\)).*/\1;/' |
        grep -oE '[A-Za-z_]+[,;]' | tr -d ',;' | sort -u
}

manual_knows_fields() {
    local name status=0
    [ "$(fields | wc -l)" -gt 50 ] || return 1
    for name in $(fields); do
        cat "$root"/man/*.3 | grep -qw "$name" || { echo "no manual page has $name"; status=1; }
    done
    return $status
}

# The lines of the table look like: | `NAME` | 128 | ...
numerics_has_the_constants() {
    local sources name value count=0
    sources=$(cat "$root/src/core/kernels/kernels.h" "$root/src/core/internal.h" | tr -s '\n ' ' ')
    while read -r name value; do
        count=$((count + 1))
        grep -qwE "$name = $value" <<<"$sources" || { echo "$name is not $value"; return 1; }
    done < <(sed -nE 's/^\| `(MHA[A-Z_]+)` \| ([0-9]+) \|.*/\1 \2/p' "$root/docs/numerics.md")
    [ $count -ge 4 ]
}

check readme_shows_example readme_shows_example
check links_lead_somewhere links_lead_somewhere
check manual_is_complete manual_is_complete
check manual_knows_fields manual_knows_fields
check numerics_has_the_constants numerics_has_the_constants
for source in "$root"/examples/*.c; do
    name=$(basename -s .c "$source")
    check "example_$name" "$build/examples/$name"
done
finish
