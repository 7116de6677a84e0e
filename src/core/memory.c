/* SPDX-License-Identifier: MIT */
/* Memory for weights and caches. */
#include "internal.h"

#include <stdlib.h>
#include <sys/mman.h>

void *mhai_memory_take(size_t bytes)
{
    const size_t large = (size_t)2 << 20;
    const size_t align = bytes > large ? large : MHAI_ALIGN;
    if (bytes > SIZE_MAX - align)
        return NULL;
    const size_t whole = bytes / align * align + align;
    void *const memory = aligned_alloc(align, whole);
#ifdef MADV_HUGEPAGE
    if (memory && align == large)
        madvise(memory, whole, MADV_HUGEPAGE);
#endif
    return memory;
}
