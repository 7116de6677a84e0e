# SPDX-License-Identifier: MIT
#
# Cross build for 64-bit ARM with Debian's compiler; its programs run under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
# Signed return addresses (cmake/hardening.cmake) cost qemu more than all else, unless it may sign them
# in its own way.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-cpu;max,pauth-impdef=on;-L;/usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
