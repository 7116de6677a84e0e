#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# install-deps.sh GROUP...: install the Debian packages of these groups that are missing.
# Prints nothing if none is missing. Without the rights to install, it lists them and exits with 1.
#
# The complete list of what this project needs. A package counts as installed if its probe (a
# command, or the path of a file) exists, however it was installed. A package may be in two groups.
#   group  package                 probe
packages="
    build  gcc                     gcc
    build  libc6-dev               /usr/include/stdio.h
    build  make                    make
    build  cmake                   cmake
    build  libpcre2-dev            /usr/include/pcre2.h
    build  libutf8proc-dev         /usr/include/utf8proc.h
    extra  libpng-dev              /usr/include/png.h
    extra  libmicrohttpd-dev       /usr/include/microhttpd.h
    extra  zlib1g-dev              /usr/include/zlib.h
    test   ninja-build             ninja
    test   pkg-config              pkg-config
    test   binutils                objdump
    test   g++                     g++
    test   clang                   clang
    test   clang-format            clang-format
    test   libclang-rt-14-dev      /usr/lib/llvm-*/lib/clang/*/lib/linux
    test   valgrind                valgrind
    test   strace                  strace
    test   gcc-aarch64-linux-gnu   aarch64-linux-gnu-gcc
    test   libc6-dev-arm64-cross   /usr/aarch64-linux-gnu/include/stdio.h
    test   qemu-user               qemu-aarch64
    test   chromium                chromium
    test   firefox-esr             firefox-esr
    test   cmark-gfm               cmark-gfm
    test   nodejs                  node
    test   npm                     npm
    test   python3                 python3
    test   python3-dev             /usr/include/python3*/Python.h
    test   python3-venv            /usr/lib/python3*/ensurepip
    test   libopenmpi-dev          mpicc.openmpi
    test   openmpi-bin             mpirun.openmpi
    test   libmpich-dev            mpicc.mpich
    test   mpich                   mpirun.mpich
    test   iproute2                ip
    test   dataset-fashion-mnist   /usr/share/datasets/fashion-mnist
    deb    dpkg-dev                dpkg-buildpackage
    deb    debhelper               dh
    deb    dh-python               dh_python3
    deb    fakeroot                fakeroot
    deb    lintian                 lintian
    deb    python3-dev             /usr/include/python3*/Python.h
    deb-test  debootstrap          debootstrap
    wheels python3-dev             /usr/include/python3*/Python.h
    wheels python3-venv            /usr/lib/python3*/ensurepip
    wasm   cmake                   cmake
    wasm   emscripten              emcc
    wasm   nodejs                  node
    wasm   npm                     npm
    i686   gcc-i686-linux-gnu      i686-linux-gnu-gcc
    i686   libc6-dev-i386-cross    /usr/i686-linux-gnu/include/stdio.h
    musl   musl-tools              musl-gcc
    windows  gcc-mingw-w64-x86-64-posix x86_64-w64-mingw32-gcc-posix
    windows  wine                 wine
    windows  wine64               /usr/lib/wine/wine64
    riscv64  gcc-riscv64-linux-gnu   riscv64-linux-gnu-gcc
    riscv64  libc6-dev-riscv64-cross /usr/riscv64-linux-gnu/include/stdio.h
    riscv64  qemu-user               qemu-riscv64
    s390x  gcc-s390x-linux-gnu     s390x-linux-gnu-gcc
    s390x  libc6-dev-s390x-cross   /usr/s390x-linux-gnu/include/stdio.h
    s390x  qemu-user               qemu-s390x
    site   cmark-gfm               cmark-gfm
    site   python3                 python3
    lint   clang                   clang
    lint   clang-format            clang-format
    lint   clang-tidy              clang-tidy
    lint   cppcheck                cppcheck
    lint   python3                 python3
    lint   python3-dev             /usr/include/python3*/Python.h
    bench  libopenblas0-pthread    /usr/lib/*/libopenblas.so.0
"
set -u

present() {
    case $1 in
    /*) compgen -G "$1" >/dev/null ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

missing_of() {
    local group package probe wanted
    while read -r group package probe; do
        for wanted in "$@"; do
            if [ "$group" = "$wanted" ] && ! present "$probe"; then
                echo "$package"
            fi
        done
    done <<<"$packages"
}

mapfile -t missing < <(missing_of "$@")
[ ${#missing[@]} -eq 0 ] && exit 0

give_up() {
    echo "$1" >&2
    echo "Missing packages: ${missing[*]}" >&2
    echo "Install them with: apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
}

as_root=()
if ! command -v apt-get >/dev/null; then
    give_up "This system has no apt-get; look for its own names of these Debian packages."
elif [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo -n)
    sudo -n true 2>/dev/null || give_up "No rights to install packages."
fi

apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq \
        -o DPkg::Lock::Timeout=600 "$@" >&2
}

echo "Installing ${missing[*]}" >&2
install=(install -y --no-install-recommends "${missing[@]}")
apt "${install[@]}" 2>/dev/null || { apt update && apt "${install[@]}"; } ||
    give_up "apt-get could not install them."
