/* SPDX-License-Identifier: MIT */
/*
 * Memory of packed weights. Alone, a matrix has memory of its own. In an arena, which belongs to
 * the caller, matrices lie side by side in chunks of large pages: reads are faster there, and a
 * matrix with large pages of its own would waste most of the last one. Chunks are freed with the
 * arena.
 *
 *      arena -> | chunk | matrix | matrix | ...     room | -> | chunk | matrix ... |
 */
#include "core/work.h"

#include <mha/mha.h>
#include <stdint.h>
#include <stdlib.h>

enum {
    CHUNK_BYTES = 32 << 20,
    MOST_BYTES = 8 << 20 /* a larger matrix gets a chunk for itself: little of it is wasted */
};

/* At the beginning of its memory, MHAI_ALIGN bytes in all. */
typedef struct chunk {
    struct chunk *next;
    size_t used, bytes;
} chunk;

struct mha_arena {
    chunk *chunks; /* the first one is filled; NULL: none yet */
};

mha_status mha_arena_create(mha_arena **arena)
{
    if (!arena)
        return MHA_ERR_NULL;
    *arena = calloc(1, sizeof **arena);
    return *arena ? MHA_OK : MHA_ERR_MEMORY;
}

void mha_arena_free(mha_arena *arena)
{
    if (!arena)
        return;
    for (chunk *at = arena->chunks, *next; at; at = next) {
        next = at->next;
        free(at);
    }
    free(arena);
}

/* A chunk with nothing in it; NULL: out of memory. */
static chunk *chunk_new(size_t bytes)
{
    chunk *const made = mhai_memory_take(bytes);
    if (made)
        *made = (chunk){NULL, MHAI_ALIGN, bytes};
    return made;
}

/* Sanitizers see reads past a matrix only if it has memory of its own. */
static bool has_own_chunk(size_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
    (void)bytes;
    return true;
#else
    return bytes > MOST_BYTES;
#endif
}

/* A chunk with room for so many bytes, in the list of the arena; NULL: out of memory. */
static chunk *chunk_for(mha_arena *arena, size_t bytes)
{
    chunk *const first = arena->chunks;
    if (has_own_chunk(bytes)) {
        chunk *const made = chunk_new(bytes + MHAI_ALIGN);
        if (made && first) {
            made->next = first->next;
            first->next = made;
        } else if (made) {
            arena->chunks = made;
        }
        return made;
    }
    if (first && first->bytes - first->used >= bytes)
        return first;
    chunk *const made = chunk_new(CHUNK_BYTES);
    if (made) {
        made->next = first;
        arena->chunks = made;
    }
    return made;
}

void *mhai_weights_take(mha_arena *arena, size_t bytes)
{
    if (!arena)
        return mhai_memory_take(bytes);
    if (bytes > SIZE_MAX - 2 * MHAI_ALIGN)
        return NULL;
    const size_t whole = (bytes + MHAI_ALIGN - 1) / MHAI_ALIGN * MHAI_ALIGN;
    chunk *const at = chunk_for(arena, whole);
    if (!at)
        return NULL;
    char *const place = (char *)at + at->used;
    at->used += whole;
    return place;
}
