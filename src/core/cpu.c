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

static bool has_vnni(void)
{
    uint32_t a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && has_all(c, bit_AVX512VNNI);
}

/* Bits of the first word of leaf 7, part 1. */
enum { HAS_AVX_VNNI = 1 << 4, HAS_AVX512_BF16 = 1 << 5 };

static bool has_more(uint32_t bit)
{
    uint32_t a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && has_all(a, bit);
}

bool mhai_cpu_runs(const char *isa)
{
    if (!strcmp(isa, "avx2"))
        return runs_avx(false);
    if (!strcmp(isa, "avx2vnni"))
        return runs_avx(false) && has_more(HAS_AVX_VNNI);
    if (!strcmp(isa, "avx512"))
        return runs_avx(true);
    if (!strcmp(isa, "avx512vnni"))
        return runs_avx(true) && has_vnni();
    if (!strcmp(isa, "avx512bf16"))
        return runs_avx(true) && has_vnni() && has_more(HAS_AVX512_BF16);
    return !strcmp(isa, "c");
}

bool mhai_cpu_has_dot(const char *isa)
{
    return strcmp(isa, "avx512") != 0 || has_vnni();
}

#elif defined(__aarch64__)

bool mhai_cpu_runs(const char *isa)
{
    const bool dot = mhai_cpu_has_arm_dot();
    if (!strcmp(isa, "neondot"))
        return dot;
    if (!strcmp(isa, "neonbf16"))
        return dot && mhai_cpu_has_arm_bf16();
    return !strcmp(isa, "neon") || !strcmp(isa, "c");
}

bool mhai_cpu_has_dot(const char *isa)
{
    (void)isa;
    return true;
}

#elif defined(__wasm_simd128__)

/* An engine without vectors rejects the whole module: what runs has them. */
bool mhai_cpu_runs(const char *isa)
{
    return !strcmp(isa, "wasm") || !strcmp(isa, "c");
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
