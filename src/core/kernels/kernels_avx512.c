/* SPDX-License-Identifier: MIT */
/* AVX-512: 32 registers of 16 floats; 24 accumulators, 2 or 4 operands, the rest broadcasts. */
#define MHAK_ISA_AVX512
#define MHAK_TABLE mhak_table_avx512
#define MHAK_NAME "avx512"

#define MR_QK 12
#define NV_QK 2
#define HEIGHTS_QK HEIGHT(1) HEIGHT(2) HEIGHT(3) HEIGHT(4) HEIGHT(5) HEIGHT(6) HEIGHT(7) HEIGHT(8) HEIGHT(9) HEIGHT(10) HEIGHT(11)

#define MR_PV 6
#define NV_PV 4
#define HEIGHTS_PV HEIGHT(1) HEIGHT(2) HEIGHT(3) HEIGHT(4) HEIGHT(5)

#define MR_NEAR 4
#define HEIGHTS_NEAR HEIGHT(1) HEIGHT(2) HEIGHT(3) HEIGHT(4)

#include "table.inc"
