/* SPDX-License-Identifier: MIT */
/* Chooses the kernel tables for this machine. */
#include "core/block_types.h"
#include "core/internal.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Best first. Each has a base table with all other kernels. */
static const mhak_native *const tables[] = {
#ifdef MHA_HAVE_AVX512
    &mhak_native_avx512bf16, &mhak_native_avx512vnni, &mhak_native_avx512,
#endif
#ifdef MHA_HAVE_AVX2
    &mhak_native_avx2vnni,   &mhak_native_avx2,
#endif
#ifdef MHA_HAVE_NEON
    &mhak_native_neonbf16,   &mhak_native_neondot,    &mhak_native_neon,
#endif
#ifdef MHA_HAVE_WASM
    &mhak_native_wasm,
#endif
    &mhak_native_c,
};

enum { TABLES = sizeof tables / sizeof tables[0] };

/* Querying the CPU is slow in a virtual machine, so the answer is kept: bit n + 1 for tables[n],
 * and bit 0. This is the only writable global of the library: it changes once, from 0 to one value.
 */
static atomic_uint runnable;

static bool runs(int n)
{
    unsigned known = atomic_load_explicit(&runnable, memory_order_relaxed);
    if (known == 0) {
        known = 1;
        for (int t = 0; t < TABLES; t++)
            known |= (unsigned)mhai_cpu_runs(tables[t]->name) << (t + 1);
        atomic_store_explicit(&runnable, known, memory_order_relaxed);
    }
    return (known >> (n + 1) & 1u) != 0;
}

mha_status mhai_native(const mhak_native **native)
{
    const char *const forced = getenv("MHA_ISA");
    *native = NULL;
    for (int n = 0; n < TABLES && !*native; n++)
        if ((!forced || !*forced || !strcmp(forced, tables[n]->name)) && runs(n))
            *native = tables[n];
    return *native ? MHA_OK : MHA_ERR_ISA;
}

mha_status mhai_kernels(const mhak_table **kernels)
{
    const mhak_native *native;
    const mha_status status = mhai_native(&native);
    *kernels = native ? native->base : NULL;
    return status;
}

const char *mha_isa_name(void)
{
    const mhak_native *native;
    return mhai_native(&native) == MHA_OK ? native->name : NULL;
}

const char *mha_isa_base(void)
{
    const mhak_native *native;
    return mhai_native(&native) == MHA_OK ? native->base->name : NULL;
}

const char *mha_arithmetic_explain(mha_arithmetic arithmetic, mha_dtype stored, ptrdiff_t inputs)
{
    const mhak_native *native;
    if (mhai_native(&native) != MHA_OK)
        return NULL;
    if (arithmetic != MHA_NATIVE)
        return "exact: products and sums in f32";
    if (stored == MHA_I8 && inputs > MHAK_I8_INPUTS)
        return "exact, in f32: sums of so many inputs do not fit into int32";
    if (mhai_is_block(stored) && mhai_has_digits(native->base))
        return "native: rows rounded to 8 bits with a scale for 32 inputs, sums in int32";
    return stored == MHA_BF16 ? native->bf16_words
           : stored == MHA_I8 ? native->i8_words
                              : "exact, in f32: weights of this type have no native products";
}
