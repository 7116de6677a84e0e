#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_dist.sh BUILD: a release has the same bytes whenever it is made, and its checksums and bill of
# materials agree with it; what is installed is removed again, and nothing else.
set -u
build=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/checks/check_lib.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$root" || exit 1

# All files of the tarball and no others, with their checksums, and one licence for each.
bill_agrees() {
    mkdir "$scratch/tree" && tar xzf "$scratch"/one/libmha-*.tar.gz --strip-components=1 -C "$scratch/tree" &&
        python3 - "$scratch"/one/libmha-*.spdx.json "$scratch/tree" <<'END'
import hashlib, json, pathlib, sys
bill, tree = json.load(open(sys.argv[1])), pathlib.Path(sys.argv[2])
listed = {f["fileName"][2:]: f["checksums"][1]["checksumValue"] for f in bill["files"]}
there = {str(p.relative_to(tree)): hashlib.sha256(p.read_bytes()).hexdigest()
         for p in tree.rglob("*") if p.is_file() and not p.is_symlink()}
ids = [f["SPDXID"] for f in bill["files"]] + [p["SPDXID"] for p in bill["packages"]]
sys.exit(listed != there or len(set(ids)) != len(ids) or bill["spdxVersion"] != "SPDX-2.3")
END
}

# The header is the one place of the version; everything else that says it agrees.
versions_agree() {
    local version
    version=$(sed -n 's/^#define MHA_VERSION_\(MAJOR\|MINOR\|PATCH\) *//p' include/mha/mha.h | paste -sd .)
    grep -q "^version = \"$version\"$" python/pyproject.toml &&
        grep -q "Version $version[;.]" README.md && grep -q "^## $version " CHANGELOG.md &&
        [ "$(grep -L "mha $version\"" man/*.[13] | wc -l)" -eq 0 ]
}

# While another check installs too, the list of files would be its own.
uninstalls() {
    exec 9>"$build/install.lock" && flock 9 || return
    mkdir -p "$scratch/to/usr/lib" && echo "not ours" >"$scratch/to/usr/lib/other" &&
        DESTDIR="$scratch/to" cmake --install "$build" --prefix /usr >/dev/null &&
        [ -e "$scratch/to/usr/include/mha/mha.h" ] &&
        DESTDIR="$scratch/to" scripts/uninstall.sh "$build" &&
        [ "$(cd "$scratch/to" && find . -type f)" = ./usr/lib/other ] &&
        [ -z "$(find "$scratch/to" -type d \( -name mha -o -name libmha \))" ]
}

# As a project of a stranger, which fetches the release.
fetches() {
    cmake -S tests/consumer/fetch -B "$scratch/fetch" -DCMAKE_BUILD_TYPE=Debug \
        -DLIBMHA_RELEASE="$(echo "$scratch"/one/libmha-*.tar.gz)" &&
        cmake --build "$scratch/fetch" --parallel 2 && "$scratch/fetch/fetch"
}

check "one version everywhere" versions_agree
if git rev-parse --git-dir >/dev/null 2>&1; then
    check "a release is made" scripts/dist.sh "$scratch/one"
    check "and again" env TZ=Asia/Tokyo scripts/dist.sh "$scratch/two"
    check "with the same bytes" diff -r "$scratch/one" "$scratch/two"
    check "its checksums are right" sh -c "cd '$scratch/one' && sha256sum --quiet -c SHA256SUMS"
    check "its bill of materials agrees with it" bill_agrees
    check "CMake fetches it as a part of another project" fetches
fi
check "what is installed is removed again" uninstalls
finish
