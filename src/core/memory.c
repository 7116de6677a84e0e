/* SPDX-License-Identifier: MIT */
/* Memory for weights and caches. */
#include "core/internal.h"

#include <stdlib.h>
#include <sys/mman.h>

void *mhai_memory_take(size_t bytes)
{
    const size_t large = (size_t)2 << 20;
    /* From a quarter of a large page on: the rest of the last page is the price of reading fast. */
    const size_t align = bytes >= large / 4 ? large : MHAI_ALIGN;
    if (bytes > SIZE_MAX - align)
        return NULL;
    const size_t whole = bytes > 0 ? (bytes + align - 1) / align * align : align;
    void *const memory = aligned_alloc(align, whole);
#ifdef MADV_HUGEPAGE
    if (memory && align == large)
        madvise(memory, whole, MADV_HUGEPAGE);
#endif
    return memory;
}
