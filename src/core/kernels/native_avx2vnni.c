/* SPDX-License-Identifier: MIT */
/* AVX2 with AVX-VNNI: products of bytes. */
#define MHAK_ISA_AVX2
#define MHAK_BASE mhak_table_avx2
#define MHAK_NATIVE mhak_native_avx2vnni
#define MHAK_NATIVE_NAME "avx2vnni"
#define MHAK_DOT_I8 "VPDPBUSD"

#define NV_QK 2
#define MR_NATIVE 6
#define HEIGHTS_NATIVE HEIGHT(1) HEIGHT(2) HEIGHT(3) HEIGHT(4) HEIGHT(5)

#include "core/kernels/native.inc"
