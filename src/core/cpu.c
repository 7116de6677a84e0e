/* SPDX-License-Identifier: MIT */
/*
 * Which instruction sets this CPU and its operating system can run. Compiled with baseline flags,
 * since it must run everywhere.
 */
#include "core/internal.h"

#include <string.h>

#if defined(__x86_64__)

#include <cpuid.h>

/* Bits of XCR0: the registers the operating system saves. */
enum { SAVES_YMM = 0x06, SAVES_ZMM = 0xe6 };

static uint32_t saved_registers(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static bool has_all(uint32_t word, uint32_t bits)
{
    return (word & bits) == bits;
}

static bool runs_avx(bool wide)
{
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has_all(c, bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C))
        return false;
    const uint32_t saved = saved_registers();
    if (!has_all(saved, SAVES_YMM) || !__get_cpuid_count(7, 0, &a, &b, &c, &d) ||
        !has_all(b, bit_AVX2))
        return false;
    return !wide || (has_all(saved, SAVES_ZMM) &&
                     has_all(b, bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL));
}

bool mhai_cpu_runs(const char *isa)
{
    if (!strcmp(isa, "avx2"))
        return runs_avx(false);
    if (!strcmp(isa, "avx512"))
        return runs_avx(true);
    return !strcmp(isa, "c");
}

bool mhai_cpu_has_dot(const char *isa)
{
    uint32_t a, b, c, d;
    if (strcmp(isa, "avx512") != 0)
        return true;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && has_all(c, bit_AVX512VNNI);
}

#elif defined(__aarch64__)

bool mhai_cpu_runs(const char *isa)
{
    return !strcmp(isa, "neon") || !strcmp(isa, "c");
}

bool mhai_cpu_has_dot(const char *isa)
{
    (void)isa;
    return true;
}

#else

bool mhai_cpu_runs(const char *isa)
{
    return !strcmp(isa, "c");
}

bool mhai_cpu_has_dot(const char *isa)
{
    (void)isa;
    return true;
}

#endif
