#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# site.sh MHA FOLDER: write the static site: live pages of both translators, and everything that
# scripts/site/make_site.py makes of the sources. Fails if a link is broken.
set -eu
mha=$(realpath "$1")
folder=$2
cd "$(dirname "$0")/.."
rm -rf "$folder"
mkdir -p "$folder"
"$mha" view --live --model lab -o "$folder/live.html" "the cat that i saw ran away"
"$mha" view --live --model en-fr -o "$folder/live-en-fr.html"
python3 -B scripts/site/make_site.py . "$folder"
