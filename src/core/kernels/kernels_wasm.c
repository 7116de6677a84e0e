/* SPDX-License-Identifier: MIT */
/* WebAssembly with 128-bit vectors: the 4 lanes and the arithmetic of kernels_c.c, so the same
 * bits. Its tiles too: larger ones were not faster under node 20 (docs/wasm.md). */
#define MHAK_ISA_WASM
#define MHAK_TABLE mhak_table_wasm
#define MHAK_NAME "wasm"

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
