/* SPDX-License-Identifier: MIT */
/* AArch64: 32 registers of 4 floats; 24 accumulators, 4 operands, the rest broadcasts. */
#define MHAK_ISA_NEON
#define MHAK_TABLE mhak_table_neon
#define MHAK_NAME "neon"

#define MR_QK 6
#define NV_QK 4
#define HEIGHTS_QK HEIGHT(1) HEIGHT(2) HEIGHT(3) HEIGHT(4) HEIGHT(5)

#define MR_PV 6
#define NV_PV 4
#define HEIGHTS_PV HEIGHT(1) HEIGHT(2) HEIGHT(3) HEIGHT(4) HEIGHT(5)

#define MR_WIDE 2
#define NV_WIDE 8

#define MR_IN_PLACE 4
#define HEIGHTS_IN_PLACE HEIGHT(1) HEIGHT(2) HEIGHT(3) HEIGHT(4)

#define EXP_BATCH 4

#include "core/kernels/table.inc"
