/* SPDX-License-Identifier: MIT */
/* AArch64 with DOTPROD: products of bytes. */
#define MHAK_ISA_NEON
#define MHAK_BASE mhak_table_neon
#define MHAK_NATIVE mhak_native_neondot
#define MHAK_NATIVE_NAME "neondot"
#define MHAK_DOT_I8 "SDOT"

#define NV_QK 4
#define MR_NATIVE 6
#define HEIGHTS_NATIVE HEIGHT(1) HEIGHT(2) HEIGHT(3) HEIGHT(4) HEIGHT(5)

#include "core/kernels/native.inc"
