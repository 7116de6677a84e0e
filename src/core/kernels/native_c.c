/* SPDX-License-Identifier: MIT */
/* Native arithmetic on any machine, in f32. */
#define MHAK_ISA_C
#define MHAK_BASE mhak_table_c
#define MHAK_NATIVE mhak_native_c
#define MHAK_NATIVE_NAME "c"

#define NV_QK 2
#define MR_NATIVE 4
#define HEIGHTS_NATIVE HEIGHT(1) HEIGHT(2) HEIGHT(3)

#include "core/kernels/native.inc"
