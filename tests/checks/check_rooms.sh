#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_rooms.sh BUILD: rooms of src/ use only the rooms they may use. A room's CMakeLists.txt says
# with "add_room(NAME USES ...)" which these are; "core" there stands for the public header
# and the library behind it, never for the core's internal headers.
#
#   - every file of src/ is in a room, and every room has a README.md and a CMakeLists.txt
#   - a room uses only rooms that come before it in the top CMakeLists.txt
#   - includes name the room, and only one that may be used; *_parts.h never leave their room
#   - what a room's library links from another one comes from a room that may be used
set -u
build=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/checks/check_lib.sh"
cd "$root/src" || exit 1

# In the order of the top CMakeLists.txt. The room windows is built on Windows only, and all others use
# it by the names of POSIX.
rooms="windows base core $(sed -n 's/^foreach(room IN ITEMS \(.*\))$/\1/p' ../CMakeLists.txt)"

# uses ROOM: the rooms it may use. The core may replace files, which is in base. libmha_mpi is not
# one library but one for every MPI, so its CMakeLists.txt has no add_room().
uses() {
    [ "$1" != core ] || echo base
    [ "$1" != mpi ] || echo core
    [ "$1" != mpi_program ] || echo base core mpi translator program
    sed -n "/^add_room($1\$/,/SOURCES/s/^ *USES //p" "$1/CMakeLists.txt"
}

may_use() {
    [ "$1" = "$2" ] || grep -qw "$2" <<<"$(uses "$1")"
}

every_file_has_a_room() {
    diff <(ls -A) <(tr ' ' '\n' <<<"$rooms" | sort) || return 1
    local room status=0
    for room in $rooms; do
        for file in README.md CMakeLists.txt; do
            [ -f "$room/$file" ] || { echo "src/$room has no $file"; status=1; }
        done
    done
    return $status
}

# Also: nothing in the folder is left out of its CMakeLists.txt.
sources_are_listed() {
    local file status=0
    for file in */*.c; do
        grep -qw "$(basename "$file")" "$(dirname "$file")/CMakeLists.txt" ||
            { echo "src/$file is not in its CMakeLists.txt"; status=1; }
    done
    return $status
}

rooms_are_in_order() {
    local room used before="" status=0
    for room in $rooms; do
        for used in $(uses "$room"); do
            grep -qw "$used" <<<"$before" || { echo "$room uses $used, a later room"; status=1; }
        done
        before+=" $room"
    done
    return $status
}

# Only files of known kinds, so that the checks below see every include.
kinds_of_files_are_known() {
    local strange
    strange=$(find . -mindepth 1 \( -name '.*' -o -type f ! -name '*.[ch]' \
        ! -path './core/kernels/*.inc' ! -path './page/web/*' ! -path './page/lecture*.txt' ! -name README.md \
        ! -name CMakeLists.txt ! -path ./core/libmha.map \))
    [ -z "$strange" ] || { echo "no room expects $strange"; return 1; }
}

# Every include is written as #include "room/name.h" or #include <name.h>, on one line and without
# "..", and angle brackets never reach into src/.
includes_are_plain() {
    local line header status=0
    while IFS= read -r line; do
        echo "src/$line"
        status=1
    done < <(grep -rnE '^[[:space:]]*(#|%:|\?\?=)[[:space:]]*(/\*.*\*/[[:space:]]*)?(include|import|[a-z]*\\$)' \
        --include='*.[ch]' --include='*.inc' . |
        grep -vE ':[0-9]+: *# *include ("[a-z0-9_]+(/[a-z0-9_]+)+\.(h|inc)"|<[a-z0-9_/-]+\.h>)( */[/*].*)?$' |
        grep -vE ':[0-9]+: *# *define')
    while IFS= read -r line; do
        header=${line##*<}
        header=${header%>}
        [ ! -e "$header" ] || { echo "src/$line: a header of src/ in angle brackets"; status=1; }
    done < <(grep -rnoE '# *include <[^>]+>' --include='*.[ch]' --include='*.inc' .)
    return $status
}

# The public headers belong to rooms that may use the core, and to format and text for their codes
# and types.
public_header_is_allowed() {
    local room status=0
    for room in $rooms; do
        [ "$room" = format ] || [ "$room" = text ] || may_use "$room" core ||
            ! grep -rn '# *include <mha/' "$room" || status=1
    done
    return $status
}

# "FILE HEADER" for every include in quotes.
includes() {
    grep -rnoE '^ *# *include "[^"]+"' --include='*.[ch]' --include='*.inc' "$1" |
        sed -E 's/^([^:]+):[0-9]+: *# *include "([^"]+)"/\1 \2/'
}

includes_stay_inside() {
    local room file header other status=0
    for room in $rooms; do
        while read -r file header; do
            other=${header%%/*}
            if [ ! -f "$header" ] && [ "$header" != page/page_template.h ]; then
                echo "src/$file includes \"$header\", which names no room"
            elif [ "$other" = core ] && [ "$room" != core ]; then
                echo "src/$file includes \"$header\"; the core is used through <mha/mha.h>"
            elif ! may_use "$room" "$other"; then
                echo "src/$file includes \"$header\", but $room may not use $other"
            elif [ "$other" != "$room" ] && [[ $header == *_parts.h ]]; then
                echo "src/$file includes \"$header\", which is private to $other"
            else
                continue
            fi
            status=1
        done < <(includes "$room")
    done
    return $status
}

# The archive of a room. The core's also holds what it uses of base.
archive() {
    case $1 in
    core) echo "$build/libmha.a" ;;
    # Built once for every MPI; one is enough.
    mpi) compgen -G "$build/libmha_mpi-*.a" | head -n 1 ;;
    *) echo "$build/src/$1/libmha_$1.a" ;;
    esac
}

# "SYMBOL ROOM" for what each archive defines; base comes first and keeps what the core shares.
definitions() {
    local room
    for room in $rooms; do
        nm --defined-only --extern-only --format=posix "$(archive "$room")" 2>/dev/null |
            awk -v room="$room" 'NF > 1 { print $1, room }'
    done | awk '!seen[$1]++'
}

links_stay_inside() {
    local room symbol other table status=0
    table=$(definitions)
    [ "$(wc -l <<<"$table")" -gt 500 ] || { echo "too few symbols in $build"; return 1; }
    for room in $rooms; do
        [ "$room" != windows ] || continue
        [ "$room" != mpi_program ] || continue # programs, one for every MPI
        [ "$room" != mpi ] || [ -n "$(archive mpi)" ] || continue # no MPI is installed
        [ -f "$(archive "$room")" ] || { echo "src/$room is not built"; status=1; continue; }
        while read -r symbol other; do
            if ! may_use "$room" "$other"; then
                echo "$room links $symbol of $other, which it may not use"
                status=1
            elif [ "$other" = core ] && [ "$room" != core ] &&
                ! grep -qw "$symbol" ../include/mha/mha.h; then
                echo "$room links $symbol, which the public header does not have"
                status=1
            fi
        done < <(nm --undefined-only --format=posix "$(archive "$room")" 2>/dev/null |
            awk 'NF > 1 { print $1 }' | sort -u |
            awk 'NR == FNR { room[$1] = $2; next } $1 in room { print $1, room[$1] }' \
                <(echo "$table") -)
    done
    return $status
}

check every_file_has_a_room every_file_has_a_room
check sources_are_listed sources_are_listed
check rooms_are_in_order rooms_are_in_order
check kinds_of_files_are_known kinds_of_files_are_known
check includes_are_plain includes_are_plain
check public_header_is_allowed public_header_is_allowed
check includes_stay_inside includes_stay_inside
check links_stay_inside links_stay_inside
finish
