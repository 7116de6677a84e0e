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

/* A chunk is as large as all before it, within these bounds: the fewer there are, the less is left
 * at their ends. The rest of the last one is reserved, not used. */
enum {
    CHUNK_LEAST = 32 << 20,
    CHUNK_MOST = 256 << 20,
    MATRIX_MOST = 8 << 20 /* a larger matrix gets a chunk of its own size */
};

/* At the beginning of its memory, MHAI_ALIGN bytes in all. */
typedef struct chunk {
    struct chunk *next;
    size_t used, bytes;
} chunk;

struct mha_arena {
    chunk *chunks; /* NULL: none yet */
    size_t bytes;  /* of all chunks */
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

/* The bytes of a new chunk for a matrix. Sanitizers see reads past a matrix only if it has memory
 * of its own. */
static size_t chunk_bytes(const mha_arena *arena, size_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
    (void)arena;
    return bytes + MHAI_ALIGN;
#else
    const size_t page = (size_t)2 << 20; /* a large page, which is not divided */
    if (bytes > MATRIX_MOST)
        return (bytes + MHAI_ALIGN + page - 1) / page * page;
    return arena->bytes < CHUNK_LEAST  ? CHUNK_LEAST
           : arena->bytes > CHUNK_MOST ? CHUNK_MOST
                                       : arena->bytes / page * page;
#endif
}

/* A chunk with room for so many bytes, in the list of the arena; NULL: out of memory. There are few
 * chunks, and small matrices fill what large ones have left. */
static chunk *chunk_for(mha_arena *arena, size_t bytes)
{
    for (chunk *at = arena->chunks; at; at = at->next)
        if (at->bytes - at->used >= bytes)
            return at;
    chunk *const made = chunk_new(chunk_bytes(arena, bytes));
    if (made) {
        made->next = arena->chunks;
        arena->chunks = made;
        arena->bytes += made->bytes;
    }
    return made;
}

void *mhai_weights_take(mha_arena *arena, size_t bytes)
{
    if (!arena)
        return mhai_memory_take(bytes);
    if (bytes > SIZE_MAX / 2)
        return NULL;
    const size_t whole = (bytes + MHAI_ALIGN - 1) / MHAI_ALIGN * MHAI_ALIGN;
    chunk *const at = chunk_for(arena, whole);
    if (!at)
        return NULL;
    char *const place = (char *)at + at->used;
    at->used += whole;
    return place;
}
