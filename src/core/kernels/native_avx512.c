/* SPDX-License-Identifier: MIT */
/* Native arithmetic with AVX-512 alone, in f32. */
#define MHAK_ISA_AVX512
#define MHAK_BASE mhak_table_avx512
#define MHAK_NATIVE mhak_native_avx512
#define MHAK_NATIVE_NAME "avx512"

#define NV_QK 2
#define MR_NATIVE 8
#define HEIGHTS_NATIVE HEIGHT(1) HEIGHT(2) HEIGHT(3) HEIGHT(4) HEIGHT(5) HEIGHT(6) HEIGHT(7)

#include "core/kernels/native.inc"
