/* SPDX-License-Identifier: MIT */
/* Attention in pairs of bf16 for AVX-512 with BF16. */
#define MHAK_ISA_AVX512
#define MHAK_DOT_BF16 "VDPBF16PS"
#define MHAK_PAIRS mhak_pairs_avx512bf16

#define EXP_BATCH 4
#define VEXP_STEPS 16

#include "core/kernels/pairs.inc"
