#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# run_wine.sh PROGRAM [ARGUMENT...]: run a program for Windows, PROGRAM.exe, under wine, with a
# configuration of its own in build/wine, which wine makes at the first time. The current folder is one of drive Z, as which
# wine shows the root folder: paths such as /tmp/file mean the same as here.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$root/build"
export WINEPREFIX="$root/build/wine" WINEDEBUG=${WINEDEBUG:--all} WINEDLLOVERRIDES="mscoree,mshtml="
program=${1%.exe}.exe
shift
exec wine "$program" "$@"
