#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check_site.sh: scripts/site/make_site.py makes a site of the documentation without broken links, the
# reference has every function of the headers, and a link that leads nowhere is found.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/checks/check_lib.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
make_site() {
    python3 -B "$root/scripts/site/make_site.py" "$@"
}

# All links are checked as the site is made; this is that it has what it is for.
pages_are_there() {
    local page status=0
    make_site "$root" "$scratch/site" || return 1
    for page in index.html docs/view.html docs/benchmarks.html api/mha.html api/mha_model.html \
        docs/images/view.png include/mha/mha.h.html site.css docs/course/index.html \
        docs/course/01_operator.html docs/course/11_pytorch.html examples/01_operator.c.html; do
        [ -s "$scratch/site/$page" ] || { echo "there is no $page"; status=1; }
    done
    return $status
}

reference_is_complete() {
    local name status=0
    for name in $(grep -ohE '\bmha_[a-z0-9_]+\(' "$root"/include/mha/*.h | tr -d '(' | sort -u); do
        cat "$scratch"/site/api/*.html | grep -q "id=\"$name\"" ||
            { echo "the reference has no $name"; status=1; }
    done
    return $status
}

# finds_broken NAME MARKDOWN: a site with this page is refused, and the message has the link.
finds_broken() {
    local tree=$scratch/$1
    mkdir -p "$tree"
    for page in README CONTRIBUTING CHANGELOG SECURITY; do
        printf '# %s\n\n## A place\n' "$page" >"$tree/$page.md"
    done
    mkdir -p "$tree/docs"
    for page in benchmarks benchmarks-peers speed-log; do
        printf '# %s\n' "$page" >"$tree/docs/$page.md"
    done
    make_site "$tree" "$tree/site" || return 1
    echo "$2" >>"$tree/README.md"
    ! make_site "$tree" "$tree/site" 2>"$tree/log" && grep -q "nowhere" "$tree/log"
}

# Chapters stand in the navigation in their order, and a state of the page is a link to the live page
# exactly if there is one.
course_is_there() {
    local page=$scratch/site/docs/course/01_operator.html
    grep -q '<h2>Course</h2>' "$page" && grep -q '<a href="02_self_attention.html">2. ' "$page" &&
        grep -q '<code>#view=' "$page" && ! grep -q 'live.html' "$page" || return 1
    mkdir "$scratch/live"
    echo '<!doctype html><title>live</title>' >"$scratch/live/live.html"
    make_site "$root" "$scratch/live" || return 1
    grep -q '<a href="../../live.html#view=compute&amp;kind=encoder&amp;step=scores"><code>#view=' \
        "$scratch/live/docs/course/01_operator.html"
}

check pages_are_there pages_are_there
check course_is_there course_is_there
check reference_is_complete reference_is_complete
check finds_a_missing_file finds_broken file '[x](docs/nowhere.md)'
check finds_a_missing_place finds_broken place '[x](SECURITY.md#nowhere)'
finish
