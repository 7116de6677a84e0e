#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# dist.sh [FOLDER]: what a release consists of, from the last commit, in build/dist or the folder:
# libmha-VERSION.tar.gz, its bill of materials libmha-VERSION.spdx.json, and SHA256SUMS of both. The same
# commit gives the same bytes, whenever and wherever it is run.
set -eu
cd "$(dirname "$0")/.."
folder=${1:-build/dist}

if ! git rev-parse --git-dir >/dev/null 2>&1; then
    echo "dist.sh: this is not a git repository; a release is made from a commit" >&2
    exit 1
fi
if ! git diff --quiet HEAD; then
    echo "dist.sh: changes that are not committed are left out" >&2
fi
version=$(git show HEAD:include/mha/mha.h |
    sed -n 's/^#define MHA_VERSION_\(MAJOR\|MINOR\|PATCH\) *//p' | paste -sd .)
name=libmha-$version
mkdir -p "$folder"
# Times are those of the commit, owners are root, and gzip keeps neither name nor time.
git -c tar.umask=0022 archive --format=tar --prefix="$name/" HEAD | gzip -9n >"$folder/$name.tar.gz"
python3 scripts/sbom.py "$folder/$name.tar.gz" "$version" "$(git log -1 --format=%ct)" \
    >"$folder/$name.spdx.json"
(cd "$folder" && sha256sum "$name.tar.gz" "$name.spdx.json" >SHA256SUMS)
echo "$folder: $(cd "$folder" && echo "$name"*) SHA256SUMS"
