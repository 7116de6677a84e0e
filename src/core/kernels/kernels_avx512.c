/* SPDX-License-Identifier: MIT */
/* AVX-512: 32 registers of 16 floats. 16 accumulators hide the latency of the multiply-add;
 * taller tiles were slower (docs/speed-log.md). */
#define MHAK_ISA_AVX512
#define MHAK_TABLE mhak_table_avx512
#define MHAK_NAME "avx512"

#define MR_QK 8
#define NV_QK 2
#define HEIGHTS_QK HEIGHT(1) HEIGHT(2) HEIGHT(3) HEIGHT(4) HEIGHT(5) HEIGHT(6) HEIGHT(7)

#define MR_PV 4
#define NV_PV 4
#define HEIGHTS_PV HEIGHT(1) HEIGHT(2) HEIGHT(3)

#define MR_WIDE 2
#define NV_WIDE 8

#define MR_IN_PLACE 4
#define HEIGHTS_IN_PLACE HEIGHT(1) HEIGHT(2) HEIGHT(3) HEIGHT(4)

#define MR_DIGITS 4
#define MR_WHOLE_BYTES 4
#define HEIGHTS_DIGITS HEIGHT(1) HEIGHT(2) HEIGHT(3)

#define EXP_BATCH 4
#define VEXP_STEPS 16

#include "core/kernels/table.inc"
