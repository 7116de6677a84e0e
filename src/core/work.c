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

/* A page of the large size that Linux has on most machines. */
#define LARGE_PAGE ((size_t)2 << 20)

/* MADV_COLLAPSE of Linux 6.1, which the headers may not have yet. */
enum { COLLAPSE = 25 };

static void *take_aligned(size_t bytes, size_t align)
{
    if (bytes > SIZE_MAX - align)
        return NULL;
    const size_t whole = bytes > 0 ? (bytes + align - 1) / align * align : align;
    return aligned_alloc(align, whole);
}

void *mhai_memory_take(size_t bytes)
{
    /* From a quarter of a large page on. The rest of the last page is wasted, but reads are
     * faster. */
    const bool large = bytes >= LARGE_PAGE / 4;
    void *const memory = take_aligned(bytes, large ? LARGE_PAGE : MHAI_ALIGN);
#ifdef MADV_HUGEPAGE
    if (memory && large)
        madvise(memory, (bytes + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE);
#endif
    return memory;
}

void *mhai_memory_reserve(size_t bytes)
{
    const size_t small = bytes < LARGE_PAGE ? bytes : LARGE_PAGE;
    char *const memory = take_aligned(bytes, bytes > small ? LARGE_PAGE : MHAI_ALIGN);
#ifdef MADV_HUGEPAGE
    if (memory && bytes > small) {
        /* Said explicitly: some systems use large pages without being asked. */
        madvise(memory, small, MADV_NOHUGEPAGE);
        madvise(memory + small, bytes - small, MADV_HUGEPAGE);
    }
#endif
    return memory;
}

void mhai_memory_grow(void *memory, size_t before, size_t after)
{
#ifdef MADV_HUGEPAGE
    if (before > LARGE_PAGE || after <= LARGE_PAGE)
        return;
    madvise(memory, LARGE_PAGE, MADV_HUGEPAGE);
    madvise(memory, LARGE_PAGE, COLLAPSE); /* at once; older systems do it in a while */
#else
    (void)memory;
    (void)before;
    (void)after;
#endif
}
