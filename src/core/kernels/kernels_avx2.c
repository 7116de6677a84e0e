/* SPDX-License-Identifier: MIT */
/* AVX2, FMA, F16C: 16 registers of 8 floats; 12 accumulators, 2 operands, a broadcast. */
#define MHAK_ISA_AVX2
#define MHAK_TABLE mhak_table_avx2
#define MHAK_NAME "avx2"

#define MR_QK 6
#define NV_QK 2
#define HEIGHTS_QK HEIGHT(1) HEIGHT(2) HEIGHT(3) HEIGHT(4) HEIGHT(5)

#define MR_PV 6
#define NV_PV 2
#define HEIGHTS_PV HEIGHT(1) HEIGHT(2) HEIGHT(3) HEIGHT(4) HEIGHT(5)

#define MR_WIDE 1
#define NV_WIDE 8

#define MR_IN_PLACE 4
#define HEIGHTS_IN_PLACE HEIGHT(1) HEIGHT(2) HEIGHT(3) HEIGHT(4)

#define MR_DIGITS 2
#define MR_WHOLE_BYTES 1
#define HEIGHTS_DIGITS HEIGHT(1)

#define EXP_BATCH 2

#include "core/kernels/table.inc"
