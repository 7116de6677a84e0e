/* SPDX-License-Identifier: MIT */
/*
 * Memory of packed weights. Matrices of some size are put side by side on shelves of large pages,
 * since reads are faster there, and a matrix with large pages of its own would waste most of the
 * last one. A shelf is freed with its last matrix; before that only the place that was taken last
 * is used again.
 *
 *      | shelf | head, matrix | head, matrix | ...                       room |
 */
#include "core/work.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum {
    SHELF_BYTES = 32 << 20,
    LEAST_BYTES = 64 << 10, /* a smaller matrix is not worth a place on a shelf */
    MOST_BYTES = 8 << 20    /* of a larger one the last page is a small part */
};

typedef struct shelf {
    size_t used, matrices;
} shelf;

/* Before every matrix, MHAI_ALIGN bytes in all. */
typedef struct head {
    shelf *owner; /* NULL: the matrix has memory of its own, which begins with this head */
    size_t bytes; /* with this head */
} head;

static pthread_mutex_t shelf_lock = PTHREAD_MUTEX_INITIALIZER;
static shelf *newest_shelf; /* the shelf that is filled now; NULL: none */

/* A place of `bytes` bytes on a shelf; NULL: out of memory. The lock is held. */
static char *take_place(size_t bytes)
{
    if (!newest_shelf || SHELF_BYTES - newest_shelf->used < bytes) {
        shelf *const made = mhai_memory_take(SHELF_BYTES);
        if (!made)
            return NULL;
        *made = (shelf){MHAI_ALIGN, 0};
        newest_shelf = made;
    }
    char *const place = (char *)newest_shelf + newest_shelf->used;
    newest_shelf->used += bytes;
    newest_shelf->matrices++;
    return place;
}

/* Sanitizers see reads past a matrix only if it has memory of its own. */
static bool fits_on_shelf(size_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
    (void)bytes;
    return false;
#else
    return bytes >= LEAST_BYTES && bytes <= MOST_BYTES;
#endif
}

void *mhai_weights_take(size_t bytes)
{
    if (bytes > SIZE_MAX - 2 * MHAI_ALIGN)
        return NULL;
    const size_t whole = (bytes + MHAI_ALIGN - 1) / MHAI_ALIGN * MHAI_ALIGN + MHAI_ALIGN;
    const bool shared = fits_on_shelf(bytes);
    char *place;
    shelf *owner = NULL;
    if (shared) {
        pthread_mutex_lock(&shelf_lock);
        place = take_place(whole);
        owner = newest_shelf;
        pthread_mutex_unlock(&shelf_lock);
    } else {
        place = mhai_memory_take(whole);
    }
    if (!place)
        return NULL;
    *(head *)place = (head){shared ? owner : NULL, whole};
    return place + MHAI_ALIGN;
}

void mhai_weights_free(void *memory)
{
    if (!memory)
        return;
    head *const at = (head *)((char *)memory - MHAI_ALIGN);
    shelf *const owner = at->owner;
    if (!owner) {
        free(at);
        return;
    }
    pthread_mutex_lock(&shelf_lock);
    const bool empty = --owner->matrices == 0;
    if ((char *)at + at->bytes == (char *)owner + owner->used)
        owner->used -= at->bytes;
    if (empty && owner == newest_shelf)
        newest_shelf = NULL;
    pthread_mutex_unlock(&shelf_lock);
    if (empty)
        free(owner);
}
