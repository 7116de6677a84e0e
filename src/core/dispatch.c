/* SPDX-License-Identifier: MIT */
/* Chooses the kernel table for this machine. */
#include "core/internal.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Best first. A machine that runs one of them runs all that follow it. */
static const mhak_table *const tables[] = {
#ifdef MHA_HAVE_AVX512
    &mhak_table_avx512,
#endif
#ifdef MHA_HAVE_AVX2
    &mhak_table_avx2,
#endif
#ifdef MHA_HAVE_NEON
    &mhak_table_neon,
#endif
    &mhak_table_c,
};

enum { TABLES = sizeof tables / sizeof tables[0] };

/* Querying the CPU is slow in a virtual machine, so the answer is kept. This is the only writable
 * global of the library: it changes once, from 0 to one value. */
static atomic_int best_plus_one;

static int best_table(void)
{
    const int known = atomic_load_explicit(&best_plus_one, memory_order_relaxed);
    if (known > 0)
        return known - 1;
    int best = 0;
    for (int n = TABLES - 1; n >= 0; n--)
        if (mhai_cpu_runs(tables[n]->name))
            best = n;
    atomic_store_explicit(&best_plus_one, best + 1, memory_order_relaxed);
    return best;
}

mha_status mhai_kernels(const mhak_table **kernels)
{
    const char *const forced = getenv("MHA_ISA");
    *kernels = NULL;
    if (!forced || !*forced) {
        *kernels = tables[best_table()];
        return MHA_OK;
    }
    for (int i = best_table(); i < TABLES; i++)
        if (!strcmp(forced, tables[i]->name))
            *kernels = tables[i];
    return *kernels ? MHA_OK : MHA_ERR_ISA;
}

const char *mha_isa_name(void)
{
    const mhak_table *kernels;
    return mhai_kernels(&kernels) == MHA_OK ? kernels->name : NULL;
}
