#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_reproducible.sh BUILD: the same sources, built again in another folder at another time and by
# the compiler itself instead of its cache, give the same bytes.
set -u
build=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/checks/check_lib.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$root" || exit 1

generator=$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' "$build/CMakeCache.txt")

build_again() {
    mkdir "$scratch/another-folder" &&
        tar cf - --exclude=./build --exclude=./.git . | tar xf - -C "$scratch/another-folder" &&
        cd "$scratch/another-folder" &&
        cmake --preset release -G "$generator" -DMHA_BUILD_TESTS=OFF &&
        CCACHE_DISABLE=1 nice cmake --build build --parallel 2
}

install_both() {
    cmake --install "$build" --prefix "$scratch/one" &&
        cmake --install "$scratch/another-folder/build" --prefix "$scratch/two"
}

check "it is built again" build_again
check "both are installed" install_both
# The module of live pages is installed where "make wasm" has built it.
check "with the same bytes" diff -r -x mha_page.wasm "$scratch/one" "$scratch/two"
finish
