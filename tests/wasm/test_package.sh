#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# test_package.sh PACKAGE MODEL: packs the folder PACKAGE with npm, installs it in a new project, and
# runs test_package.mjs there. MODEL is the folder of a translator.
set -u
package=$1 model=$(realpath "$2") script=$(realpath "$(dirname "$0")/test_package.mjs")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
(npm pack --silent --pack-destination "$folder" "$package" &&
    mkdir "$folder/project" && cd "$folder/project" &&
    echo '{ "name": "project", "type": "module" }' >package.json &&
    npm install --silent --offline --no-audit --no-fund "$folder"/libmha-*.tgz) >/dev/null ||
    { echo "npm cannot pack or install the package"; exit 1; }
cp "$script" "$folder/project/"
cd "$folder/project" && node --expose-gc test_package.mjs "$model"
