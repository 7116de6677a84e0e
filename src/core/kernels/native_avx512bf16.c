/* SPDX-License-Identifier: MIT */
/* AVX-512 with VNNI and BF16: products of bytes and of bf16. */
#define MHAK_ISA_AVX512
#define MHAK_BASE mhak_table_avx512
#define MHAK_NATIVE mhak_native_avx512bf16
#define MHAK_NATIVE_NAME "avx512bf16"
#define MHAK_DOT_I8 "VPDPBUSD"
#define MHAK_DOT_BF16 "VDPBF16PS"
#define MHAK_PAIRS_OF &mhak_pairs_avx512bf16

#define NV_QK 2
#define MR_NATIVE 8
#define HEIGHTS_NATIVE HEIGHT(1) HEIGHT(2) HEIGHT(3) HEIGHT(4) HEIGHT(5) HEIGHT(6) HEIGHT(7)

#include "core/kernels/native.inc"
