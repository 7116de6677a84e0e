#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_deb.sh FOLDER: the packages of "make deb" in a new Debian: they install, programs are compiled
# against them, the commands and the module work, and nothing is left when they are removed. Needs root
# and the mirror that this machine's apt uses.
set -u
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/check_lib.sh

skip() {
    echo "skip $1"
    echo "check_deb: 0 passed, 0 failed, 1 skipped"
    exit 0
}

[ "$(id -u)" -eq 0 ] || skip "a chroot needs root"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
compgen -G "$folder/mha_*.deb" >/dev/null || skip "no packages in $folder; make deb builds them"
# shellcheck source=/dev/null
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
# The fields are names of apt's, not variables of the shell.
# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' |
    awk -v suite="$suite" '$2 == suite { print $1; exit }')
[ -n "$mirror" ] || skip "apt has no mirror for $suite"

root=$(mktemp -d)
trap 'umount "$root/proc" 2>/dev/null; rm -rf --one-file-system "$root"' EXIT

inside() {
    DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 chroot "$root" "$@"
}

install() {
    inside apt-get -qq install -y --no-install-recommends "$@"
}

prepare() {
    cp /etc/resolv.conf "$root/etc/" && cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/" &&
        mkdir "$root/packages" "$root/programs" && cp "$folder"/*.deb "$root/packages/" &&
        cp tests/consumer/consumer.c tests/consumer/consumer_model.c "$root/programs/" &&
        mount -t proc proc "$root/proc" && install gcc libc6-dev pkg-config python3-numpy
}

# compiles NAME LIBRARY ARGUMENT...: a program of tests/consumer is compiled and runs.
compiles() {
    local name=$1 library=$2
    shift 2
    inside sh -c "cd programs && gcc $name.c \$(pkg-config --cflags --libs $library) -o $name" &&
        inside "/programs/$name" "$@"
}

translates() {
    "$@" | tee /dev/stderr | grep -q "Je t'aime"
}

nothing_is_left() {
    ! find "$root/usr" "$root/etc" "$root/var/lib/dpkg/info" -name '*mha*' | grep .
}

mapfile -t packages < <(cd "$folder" && printf '/packages/%s\n' ./*.deb)
check "a new Debian" debootstrap --variant=minbase "$suite" "$root" "$mirror"
check "a compiler" prepare
check "the packages are installed" install "${packages[@]}"
check "the program translates" translates inside mha translate "I love you."
check "the program verifies the library" inside mha verify --configs 50
check "a program in C" compiles consumer libmha
check "a program in C that opens a model" compiles consumer_model libmha_model \
    /usr/share/mha/models/en-fr
check "the Python module translates" translates inside python3 -c \
    'import mha; print(mha.Model.open("/usr/share/mha/models/en-fr").generate("I love you.", 20, beams=4))'
check "the packages are removed" inside apt-get -qq purge -y libmha0.1 libmha-model0.1 libmha-dev mha \
    mha-data python3-mha
check "and nothing of them is left" nothing_is_left
finish
