#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# uninstall.sh [BUILD]: remove the files that the last "make install" has written, which BUILD (build)
# lists, and folders of ours that are empty then. DESTDIR is that of the installation.
set -u
manifest=${1:-build}/install_manifest.txt
if [ ! -f "$manifest" ]; then
    echo "uninstall.sh: there is no $manifest: nothing was installed from here" >&2
    exit 1
fi
# One file per line; the last line has no end.
while read -r file || [ -n "$file" ]; do
    rm -f "${DESTDIR:-}$file" || exit 1
    folder=$(dirname "$file")
    while [[ $folder == */mha || $folder == */mha/* || $folder == */libmha ]]; do
        rmdir "${DESTDIR:-}$folder" 2>/dev/null || break
        folder=$(dirname "$folder")
    done
done <"$manifest"
