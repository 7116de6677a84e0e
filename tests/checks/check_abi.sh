#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_abi.sh BUILD: programs that were compiled against an earlier state of this version of the interface still
# run (scripts/abi.py), and everything that names this version says the same: the shared libraries, CMake,
# Debian's packages and the Python package.
set -u
build=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/checks/check_lib.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$root" || exit 1

major=$(sed -n 's/^#define MHA_VERSION_MAJOR *//p' include/mha/mha.h)
minor=$(sed -n 's/^#define MHA_VERSION_MINOR *//p' include/mha/mha.h)
interface=$major
[ "$major" -eq 0 ] && interface=0.$minor

abi_with() { # SED-SCRIPT: the comparison for changed headers
    rm -rf "$scratch/mha" && cp -r include/mha "$scratch/mha" && sed -i -E "$1" "$scratch/mha/mha.h" &&
        ! cmp -s include/mha/mha.h "$scratch/mha/mha.h" && python3 -B scripts/abi.py --headers "$scratch"
}

breaks_with() { # WHAT SED-SCRIPT
    ! abi_with "$2" >"$scratch/out" 2>&1 && grep -q "^broken: .*$1" "$scratch/out" || { cat "$scratch/out" && false; }
}

exports_them() { # FILE of abi.py, which says what both libraries export together
    nm -D --defined-only "$build/libmha.so" "$build/libmha_model.so" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' |
        sort >"$scratch/exported"
    sed -n 's/^function \(mha_[a-z0-9_]*\) = .*/\1/p' packaging/abi/libmha.txt | sort >"$scratch/named"
    [ -s "$scratch/named" ] && comm -13 "$scratch/exported" "$scratch/named" >"$scratch/missing" &&
        { [ ! -s "$scratch/missing" ] || { cat "$scratch/missing" && false; }; }
}

sonames_agree() {
    local library name
    for library in "$build"/libmha.so "$build"/libmha_model.so "$build"/libmha_mpi-*.so; do
        [ -e "$library" ] || continue
        name=$(basename "$library")
        readelf -d "$library" | grep -F SONAME | grep -qF "[$name.$interface]" ||
            { echo "$name: not $name.$interface" && return 1; }
    done
}

# What find_package() makes of a version: CMake reads the installed file.
cmake_takes() { # VERSION
    cat >"$scratch/try.cmake" <<END
set(PACKAGE_FIND_VERSION $1)
string(REPLACE "." ";" parts "$1.0.0")
list(GET parts 0 PACKAGE_FIND_VERSION_MAJOR)
list(GET parts 1 PACKAGE_FIND_VERSION_MINOR)
set(CMAKE_SIZEOF_VOID_P 8)
include($build/mha-config-version.cmake)
if(NOT PACKAGE_VERSION_COMPATIBLE)
    message(FATAL_ERROR "$1 is not accepted")
endif()
END
    cmake -P "$scratch/try.cmake"
}

cmake_refuses() {
    ! cmake_takes "$1" >/dev/null 2>&1
}

debian_agrees() {
    [ "$(sed -n 's/^Package: \(libmha[-a-z]*[0-9].*\)/\1/p' packaging/debian/control | paste -sd ' ')" = \
        "libmha$interface libmha-model$interface" ] &&
        [ -e "packaging/debian/libmha$interface.install" ] && [ -e "packaging/debian/libmha-model$interface.install" ] &&
        grep -q "libmha$interface libmha-model$interface" tests/checks/check_deb.sh
}

python_agrees() {
    grep -qF "libmha_mpi-{name}.so.$interface\"" python/mha/mpi.py
}

check "compiled programs still run" python3 -B scripts/abi.py
check "both libraries export what the file names" exports_them
check "a function that is gone" breaks_with mha_isa_name 's/^MHA_API const char \*mha_isa_name\(void\);//'
check "a function with other parameters" breaks_with mha_isa_base 's/mha_isa_base\(void\)/mha_isa_base(int which)/'
check "a field that moved" breaks_with "offset mha_shape.H" 's/ptrdiff_t B, H, G/ptrdiff_t B, G, H/'
check "a field of another size" breaks_with "mha_out.sl" '/^typedef struct mha_out/,/^}/s/ptrdiff_t sb/int sb/'
check "another number" breaks_with MHA_TRAINING 's/MHA_TRAINING = 1u << 3/MHA_TRAINING = 1u << 4/'
check "a struct without a size that grew" breaks_with "struct mha_view" 's/^\} mha_view;/    int more; } mha_view;/'
check "a struct with a size may grow" abi_with 's/^\} mha_statistics;/    ptrdiff_t more; } mha_statistics;/'
check "a function may be added" abi_with 's/^(MHA_API const char \*mha_isa_name.*)/\1 MHA_API int mha_more(void);/'
check "a new version may break" abi_with 's/^(#define MHA_VERSION_MINOR).*/\1 99/; s/MHA_TRAINING = 1u << 3/MHA_TRAINING = 1u << 4/'
check "names of the shared libraries" sonames_agree
check "CMake takes this version" cmake_takes "$major.$minor"
check "CMake refuses a later one" cmake_refuses "$major.$((minor + 1))"
[ "$major" -gt 0 ] || [ "$minor" -eq 0 ] || check "CMake refuses another interface" cmake_refuses "0.$((minor - 1))"
check "names of Debian's packages" debian_agrees
check "the name in Python" python_agrees
finish
