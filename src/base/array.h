/* SPDX-License-Identifier: MIT */
/* Arrays that grow, and a hash of texts. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Returns the array, perhaps moved, with room for `needed` elements of `size` bytes. Returns NULL
 * if out of memory; the old array is then still valid. */
static inline void *mhai_array_grow(void *array, size_t *room, size_t needed, size_t size)
{
    if (needed <= *room)
        return array;
    size_t more = *room < 16 ? 16 : *room + *room / 2, bytes;
    more = more < needed ? needed : more;
    if (__builtin_mul_overflow(more, size, &bytes))
        return NULL;
    void *const moved = realloc(array, bytes);
    if (moved)
        *room = more;
    return moved;
}

/* FNV-1a: finds names quickly. Names can be chosen to collide, so equal hashes must be followed by
 * a comparison. */
static inline uint64_t mhai_text_hash(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

#endif
