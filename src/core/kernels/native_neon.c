/* SPDX-License-Identifier: MIT */
/* Native arithmetic with the baseline of AArch64, in f32. */
#define MHAK_ISA_NEON
#define MHAK_BASE mhak_table_neon
#define MHAK_NATIVE mhak_native_neon
#define MHAK_NATIVE_NAME "neon"

#define NV_QK 4
#define MR_NATIVE 6
#define HEIGHTS_NATIVE HEIGHT(1) HEIGHT(2) HEIGHT(3) HEIGHT(4) HEIGHT(5)

#include "core/kernels/native.inc"
