/* SPDX-License-Identifier: MIT */
/* How many CPUs this process may use, and what those of AArch64 have: on Linux, and in WebAssembly,
 * which has one. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "core/internal.h"

#include <sched.h>

int mhai_cpu_count(void)
{
#if defined(__EMSCRIPTEN__)
    return 1;
#else
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
#endif
}

#if defined(__aarch64__)
#include <sys/auxv.h>

/* Bits of AT_HWCAP and AT_HWCAP2, as Linux defines them. */
#define HAS_DOTPROD (1ul << 20)
#define HAS_BF16 (1ul << 14)

bool mhai_cpu_has_arm_dot(void)
{
    return (getauxval(AT_HWCAP) & HAS_DOTPROD) != 0;
}

bool mhai_cpu_has_arm_bf16(void)
{
    return (getauxval(AT_HWCAP2) & HAS_BF16) != 0;
}
#endif
