/* SPDX-License-Identifier: MIT */
/* Any machine: vectors of 4 floats as the compiler implements them, no fused multiply-add. */
#define MHAK_ISA_C
#define MHAK_TABLE mhak_table_c
#define MHAK_NAME "c"

#define MR_QK 4
#define NV_QK 2
#define HEIGHTS_QK HEIGHT(1) HEIGHT(2) HEIGHT(3)

#define MR_PV 4
#define NV_PV 2
#define HEIGHTS_PV HEIGHT(1) HEIGHT(2) HEIGHT(3)

#define MR_WIDE 1
#define NV_WIDE 8

#define MR_IN_PLACE 2
#define HEIGHTS_IN_PLACE HEIGHT(1) HEIGHT(2)

#define EXP_BATCH 2

#include "core/kernels/table.inc"
