/* SPDX-License-Identifier: MIT */
/*
 * Workspaces. A function that needs memory for a call gets one buffer, the caller's or its own, and
 * carves it into aligned blocks. The same code, run with no buffer, counts the bytes it needs:
 *
 *      mhai_work count = {0};                            mhai_work work = mhai_work_begin(buffer);
 *      take_blocks(&count);                              take_blocks(&work);
 *      bytes = count.used + MHAI_ALIGN - 1;              the blocks are ready for use
 */
#ifndef MHAI_WORK_H
#define MHAI_WORK_H

#include <stdbool.h>
#include <stddef.h>

enum { MHAI_ALIGN = 64 }; /* alignment of every block carved out of a workspace */

/* Carves aligned blocks out of a buffer. With base NULL it only counts their bytes. */
typedef struct mhai_work {
    char *base;
    size_t used;
} mhai_work;

/* Starts carving at the first aligned byte of a buffer. Up to MHAI_ALIGN - 1 bytes are skipped. */
mhai_work mhai_work_begin(void *buffer);

/* A block of count * size bytes; NULL while counting. */
void *mhai_work_take(mhai_work *work, size_t count, size_t size);

/* The buffer of a call: the caller's, or one allocated for the call and freed at its end. */
typedef struct mhai_buffer {
    void *data;  /* NULL: no memory */
    void *owned; /* what mhai_buffer_free() frees; NULL: the buffer is the caller's */
} mhai_buffer;

/* Takes the caller's `work`, or allocates `size` bytes where it is NULL. With size 0 nothing is
 * allocated. */
mhai_buffer mhai_buffer_get(void *work, size_t size);
void mhai_buffer_free(mhai_buffer buffer);

/* For blocks that are used one after another and share their place. */
static inline size_t mhai_larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/*
 * At least `bytes` bytes aligned to MHAI_ALIGN, to be freed with free(); never NULL for 0 bytes.
 * Large amounts are requested in large pages where the system has them, since packed weights and
 * caches are read from end to end.
 */
void *mhai_memory_take(size_t bytes);

/*
 * The same for memory that is used from its beginning on and perhaps never completely, such as the
 * pages of a cache. The first bytes are in small pages: a cache that stays almost empty uses no
 * more than it holds, and one that grows has most of its memory in large pages.
 */
void *mhai_memory_reserve(size_t bytes);

/* To be called when the use of reserved memory grows from `before` to `after` bytes: when the small
 * pages are full, they become a large one. */
void mhai_memory_grow(void *memory, size_t before, size_t after);

/* The same for packed weights: in an arena of mha.h, which frees them, or with arena NULL for
 * free(). */
struct mha_arena;
void *mhai_weights_take(struct mha_arena *arena, size_t bytes);

#endif
