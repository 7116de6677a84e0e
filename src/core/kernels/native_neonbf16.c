/* SPDX-License-Identifier: MIT */
/* AArch64 with DOTPROD and BF16: products of bytes and of bf16. */
#define MHAK_ISA_NEON
#define MHAK_BASE mhak_table_neon
#define MHAK_NATIVE mhak_native_neonbf16
#define MHAK_NATIVE_NAME "neonbf16"
#define MHAK_DOT_I8 "SDOT"
#define MHAK_DOT_BF16 "BFDOT"
#define MHAK_PAIRS_OF &mhak_pairs_neonbf16

#define NV_QK 4
#define MR_NATIVE 6
#define HEIGHTS_NATIVE HEIGHT(1) HEIGHT(2) HEIGHT(3) HEIGHT(4) HEIGHT(5)

#include "core/kernels/native.inc"
