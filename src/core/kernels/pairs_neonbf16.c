/* SPDX-License-Identifier: MIT */
/* Attention in pairs of bf16 for AArch64 with BF16. */
#define MHAK_ISA_NEON
#define MHAK_DOT_BF16 "BFDOT"
#define MHAK_PAIRS mhak_pairs_neonbf16

#define EXP_BATCH 4

#include "core/kernels/pairs.inc"
