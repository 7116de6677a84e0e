/* SPDX-License-Identifier: MIT */
/* Arrays that grow, for the readers and writers beside this file. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* The array, perhaps moved, with room for `needed` elements of `size` bytes. NULL: there is no
 * memory for it, and the array is where it was. */
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

/* FNV-1a: finds names quickly. Whoever chooses names can make them collide, so that what is equal
 * is decided by comparing. */
static inline uint64_t mhai_text_hash(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

#endif
