#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_roles.sh MHA MODULES: roles and numbers of heads are the same in "mha heads TEXT", on the page
# of "mha view" and on that of "mha serve", for the model of the repository; and the heads of
# golden/roles.json have theirs on the page. MODULES is the folder of the page's modules.
set -u
mha=$(realpath "$1")
modules=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; wait; rm -rf "$scratch"' EXIT
export MHA_MODEL=$here/../../models/lab-en-fr.safetensors

cd "$scratch" || exit 1
"$mha" serve >address 2>log &
server=$!
while [ ! -s address ] && kill -0 $server 2>/dev/null; do
    sleep 0.1
done
node "$here/test_roles.mjs" "$mha" "$modules" "$here/../golden/roles.json" "$(cat address)"
