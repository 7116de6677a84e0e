/* SPDX-License-Identifier: MIT */
/* Native arithmetic in WebAssembly, in f32: the bits of native_c.c. */
#define MHAK_ISA_WASM
#define MHAK_BASE mhak_table_wasm
#define MHAK_NATIVE mhak_native_wasm
#define MHAK_NATIVE_NAME "wasm"

#define NV_QK 2
#define MR_NATIVE 4
#define HEIGHTS_NATIVE HEIGHT(1) HEIGHT(2) HEIGHT(3)

#include "core/kernels/native.inc"
