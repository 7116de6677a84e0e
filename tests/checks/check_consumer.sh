#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check_consumer.sh BUILD: install what was built, move it, and build programs against it as a
# stranger would: with CMake and pkg-config, in C and C++, shared and static.
set -u
build=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/checks/check_lib.sh"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
prefix=$stage/root/opt/mha

installs() {
    DESTDIR=$stage/root flock "$build/install.lock" cmake --install "$build" --prefix /opt/mha
}


builds_with_cmake() {
    cmake -S "$root/tests/consumer" -B "$stage/build" -DCMAKE_PREFIX_PATH="$prefix" &&
        cmake --build "$stage/build"
}

# with_pkg_config OUTPUT COMPILER SOURCE [MODULE]: the shared library.
with_pkg_config() {
    local flags
    flags=$(pkg-config --cflags --libs "${4:-libmha}") &&
        $2 -Wall -Wextra -Wpedantic -Werror "$root/tests/consumer/$3" -o "$stage/$1" $flags &&
        LD_LIBRARY_PATH=$(pkg-config --variable=libdir libmha) "$stage/$1"
}

# The same with everything, libc too, in one file.
with_pkg_config_static() {
    local flags
    flags=$(pkg-config --static --cflags --libs "${4:-libmha}") &&
        $2 -static "$root/tests/consumer/$3" -o "$stage/$1" $flags && "$stage/$1"
}

# A program of several machines, with the wrapper of its MPI; one rank needs no mpirun.
with_mpi() {
    local flags
    flags=$(pkg-config --cflags --libs "libmha_mpi-$1") &&
        "mpicc.$1" -Wall -Wextra -Wpedantic -Werror "$root/tests/consumer/consumer_mpi.c" \
            -o "$stage/mpi-$1" $flags &&
        LD_LIBRARY_PATH=$(pkg-config --variable=libdir libmha) OMPI_ALLOW_RUN_AS_ROOT=1 \
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$stage/mpi-$1"
}

# The same by CMake's component of that MPI.
cmake_mpi() {
    cmake -S "$root/tests/consumer/mpi" -B "$stage/build-$1" -DMPI="$1" -DCMAKE_C_COMPILER="mpicc.$1" \
        -DCMAKE_PREFIX_PATH="$prefix" && cmake --build "$stage/build-$1" || return
    local program
    for program in consumer_mpi consumer_mpi_static; do
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$stage/build-$1/$program" || return
    done
}

# A component for an MPI that libmha was not built with is not found, which is said.
cmake_has_no_other_mpi() {
    ! cmake -S "$root/tests/consumer/mpi" -B "$stage/build-other" -DMPI=other -DCMAKE_PREFIX_PATH="$prefix" \
        >"$stage/other.log" 2>&1 && grep -q 'without the component "mpi-other"' "$stage/other.log"
}

# What programs are compiled with is the folder of our headers, and nothing of other libraries.
cflags_are_our_own() {
    ! pkg-config --cflags libmha_model | tr ' ' '\n' | grep -v -e '^-I' -e '^$'
}

check installs installs
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name libmha.pc)")
export PKG_CONFIG_PATH
for file in bin/mha include/mha/mha.h include/mha/mha_model.h share/man/man1/mha.1 share/man/man3/mha_attention.3 \
    share/man/man3/mha_plan_run.3 share/doc/libmha/LICENSE \
    share/bash-completion/completions/mha share/zsh/site-functions/_mha \
    share/fish/vendor_completions.d/mha.fish; do
    check "installed_$file" test -e "$prefix/$file"
done
check builds_with_cmake builds_with_cmake
for name in consumer_c consumer_c_static consumer_cpp consumer_cpp_static; do
    check "cmake_$name" "$stage/build/$name"
done
for name in consumer_model consumer_model_static; do
    check "cmake_$name" "$stage/build/$name" "$prefix/share/mha/models/lab-en-fr.safetensors"
done
check pkg_config_c with_pkg_config c gcc consumer.c
check pkg_config_cpp with_pkg_config cpp g++ consumer.cpp
check pkg_config_model with_pkg_config model gcc consumer_model.c libmha_model
check pkg_config_model_cpp with_pkg_config model_cpp "g++ -x c++" consumer_model.c libmha_model
check pkg_config_static with_pkg_config_static static gcc consumer.c
check pkg_config_model_static with_pkg_config_static model_static gcc consumer_model.c libmha_model
for mpi in openmpi mpich; do
    [ -e "$build/libmha_mpi-$mpi.so" ] || continue
    check "pkg_config_mpi_$mpi" with_mpi $mpi
    check "cmake_mpi_$mpi" cmake_mpi $mpi
    check "manual_page_mpi_$mpi" grep -qx ".so man1/mha-mpi.1" "$prefix/share/man/man1/mha-mpi-$mpi.1"
    check "manual_page_mpi_target" test -e "$prefix/share/man/man1/mha-mpi.1"
done
check cmake_has_no_other_mpi cmake_has_no_other_mpi
check cflags_are_our_own cflags_are_our_own
finish
