/* SPDX-License-Identifier: MIT */
/*
 * Memory: workspaces of calls, carved into aligned blocks (see work.h), and the lasting memory of
 * packed weights and caches.
 */
#include "core/work.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

mhai_work mhai_work_begin(void *buffer)
{
    const uintptr_t misfit = (uintptr_t)buffer % MHAI_ALIGN;
    return (mhai_work){.base = (char *)buffer + (misfit ? MHAI_ALIGN - misfit : 0)};
}

void *mhai_work_take(mhai_work *work, size_t count, size_t size)
{
    char *const at = work->base ? work->base + work->used : NULL;
    work->used += (count * size + MHAI_ALIGN - 1) / MHAI_ALIGN * MHAI_ALIGN;
    return at;
}

mhai_buffer mhai_buffer_get(void *work, size_t size)
{
    void *const owned = work || size == 0 ? NULL : malloc(size);
    return (mhai_buffer){.data = work ? work : owned, .owned = owned};
}

void mhai_buffer_free(mhai_buffer buffer)
{
    free(buffer.owned);
}

void *mhai_memory_take(size_t bytes)
{
    const size_t large = (size_t)2 << 20;
    /* From a quarter of a large page on. The rest of the last page is wasted, but reads are
     * faster. */
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
