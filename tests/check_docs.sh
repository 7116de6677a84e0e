#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check_docs.sh BUILD: every example runs, the README shows examples/readme.c as it is and links to
# files that exist, and the manual knows every name of the header.
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

check readme_shows_example readme_shows_example
check links_lead_somewhere links_lead_somewhere
check manual_is_complete manual_is_complete
for source in "$root"/examples/*.c; do
    name=$(basename -s .c "$source")
    check "example_$name" "$build/examples/$name"
done
finish
