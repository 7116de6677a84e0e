#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# deb.sh [FOLDER]: the Debian packages of the last commit, in build/deb or the folder: libmha0.1,
# libmha-model0.1, libmha-dev, mha, mha-data and python3-mha, checked by lintian. packaging/debian
# describes them; its changelog is written here, since the version stands in the header alone.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "${1:-build/deb}"
folder=$(realpath "${1:-build/deb}")

if ! git rev-parse --git-dir >/dev/null 2>&1; then
    echo "deb.sh: this is not a git repository; packages are made from a commit" >&2
    exit 1
fi
if ! git diff --quiet HEAD; then
    echo "deb.sh: changes that are not committed are left out" >&2
fi
version=$(git show HEAD:include/mha/mha.h |
    sed -n 's/^#define MHA_VERSION_\(MAJOR\|MINOR\|PATCH\) *//p' | paste -sd .)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
source=$scratch/libmha-$version
git archive --prefix="libmha-$version/" HEAD | tar -x -C "$scratch"
cp -r "$source/packaging/debian" "$source/debian"
{
    printf 'libmha (%s) unstable; urgency=medium\n\n' "$version"
    printf '  * Version %s; changelog.gz beside this file lists the changes.\n\n' "$version"
    printf ' -- %s  %s\n' "$(sed -n 's/^Maintainer: //p' "$source/debian/control")" \
        "$(git log -1 --format=%cD)"
} >"$source/debian/changelog"

export SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
if ! (cd "$source" && dpkg-buildpackage -us -uc -b -j"$(nproc)" >"$folder/build.log" 2>&1); then
    tail -30 "$folder/build.log" >&2
    echo "deb.sh: the build failed; the whole log is $folder/build.log" >&2
    exit 1
fi
rm -f "$folder"/*.deb
cp "$scratch"/*.deb "$folder"
lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$scratch"/*.changes
(cd "$folder" && ls -l -- *.deb)
