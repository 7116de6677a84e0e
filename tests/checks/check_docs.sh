#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check_docs.sh BUILD: every example runs, the README and the manual show examples as they are,
# links lead to files that exist, the manual has every name and every field of the headers,
# the constants in docs/numerics.md are those of the sources, and the tests that pages name exist.
set -u
build=$1
root=$(dirname "$0")/../..
. "$root/tests/checks/check_lib.sh"
headers=("$root/include/mha/mha.h" "$root/include/mha/mha_model.h" "$root/include/mha/mha_mpi.h")

# All blocks of C in the README, one after another.
readme_shows_examples() {
    diff <(sed -n '/^```c$/,/^```$/p' "$root/README.md" | sed '/^```/d') \
        <(tail -q -n +2 "$root"/examples/{readme,readme_model,readme_layer}.c)
}

links_lead_somewhere() {
    local page link status=0
    for page in "$root"/*.md "$root"/docs/*.md "$root"/docs/course/*.md; do
        for link in $(grep -oE '\]\([^)#]+' "$page" | sed 's/^](//' | grep -v '://'); do
            [ -e "$(dirname "$page")/$link" ] || { echo "$page: $link"; status=1; }
        done
    done
    return $status
}

# Everything but the include guards, the export attribute and the three version numbers.
manual_is_complete() {
    local name status=0
    for name in $(grep -ohE '\b(mha|MHA)_[A-Za-z0-9_]+' "${headers[@]}" | sort -u |
        grep -vE '^(MHA_MHA_H|MHA_MHA_MODEL_H|MHA_MHA_MPI_H|MHA_API|MHA_VERSION_[A-Z]+)$'); do
        cat "$root"/man/*.3 | grep -qw "$name" || { echo "no manual page has $name"; status=1; }
    done
    return $status
}

# The fields of all structs of the headers, one line each: "struct field".
fields() {
    sed -e 's|/\*.*\*/||' -e '/\/\*/,/\*\//s|/\*.*||' -e '/^ *\*/d' "${headers[@]}" |
        sed -e 's/(\*\([a-z_]*\)).*/\1;/' -e 's/\[[A-Z_]*\]//g' | awk '
            /^typedef struct [a-z_]+ \{/ { name = $3; next }
            /^}/ { name = "" }
            name { while (match($0, /[A-Za-z_0-9]+[,;]/)) {
                print name, substr($0, RSTART, RLENGTH - 1)
                $0 = substr($0, RSTART + RLENGTH)
            } }'
}

# A field counts as known where its struct is named on the same page.
manual_knows_fields() {
    local struct name status=0
    [ "$(fields | wc -l)" -gt 230 ] && fields | grep -qx "mha_gradients d_gates" &&
        fields | grep -qx "mha_head_settings means" || return 1
    while read -r struct name; do
        cat /dev/null $(grep -lw "$struct" "$root"/man/*.3) | grep -qw "$name" ||
            { echo "no manual page of $struct has $name"; status=1; }
    done < <(fields)
    return $status
}

# Functions of the headers, and the pages that are installed for them.
functions_have_pages() {
    local name status=0
    for name in $(grep -ohE '\bmha_[a-z0-9_]+\(' "${headers[@]}" | tr -d '(' | sort -u); do
        grep -qw "$name" "$root/cmake/install.cmake" || { echo "no page for $name"; status=1; }
    done
    return $status
}

# manual_shows_example PAGE EXAMPLE
manual_shows_example() {
    diff <(sed -n '/^#include <mha/,/^\.fi/p' "$root/man/$1.3" |
        sed -e '/^\.fi/d' -e 's/\\e/\\/g') <(tail -n +2 "$root/examples/$2.c")
}

# Pages name the tests that enforce a statement.
tests_exist() {
    local name status=0
    for name in $(grep -ohE '\btest_[a-z0-9_]*[a-z0-9]\b' "$root"/*.md "$root"/docs/*.md "$root"/docs/course/*.md | sort -u); do
        compgen -G "$root/tests/*/$name.*" >/dev/null || compgen -G "$root/python/tests/$name.py" \
            >/dev/null || { echo "no test $name"; status=1; }
    done
    return $status
}

# The lines of the table look like: | `NAME` | 128 | ...
numerics_has_the_constants() {
    local sources name value count=0
    sources=$(cat "$root"/src/core/{kernels/kernels,internal,backward}.h | tr -s '\n ' ' ')
    while read -r name value; do
        count=$((count + 1))
        grep -qwE "$name = $value" <<<"$sources" || { echo "$name is not $value"; return 1; }
    done < <(sed -nE 's/^\| `(MHA[A-Z_]+)` \| ([0-9]+) \|.*/\1 \2/p' "$root/docs/numerics.md")
    [ $count -ge 6 ]
}

check readme_shows_examples readme_shows_examples
check links_lead_somewhere links_lead_somewhere
check manual_is_complete manual_is_complete
check manual_knows_fields manual_knows_fields
check functions_have_pages functions_have_pages
check manual_shows_example manual_shows_example libmha readme_layer
check manual_shows_example_model manual_shows_example libmha_model readme_model
check numerics_has_the_constants numerics_has_the_constants
check tests_exist tests_exist
for source in "$root"/examples/*.c; do
    name=$(basename -s .c "$source")
    [ "$name" != 15_many_machines ] || [ -e "$build/examples/$name" ] || continue # no MPI here
    check "example_$name" "$build/examples/$name"
done
finish
