/* SPDX-License-Identifier: MIT */
/*
 * Carves a workspace into aligned blocks. The same code, run without a workspace, counts the bytes
 * that it needs; blocks are then all at one place, which can be named but not used.
 */
#ifndef MODEL_WORK_H
#define MODEL_WORK_H

#include <stdbool.h>
#include <stddef.h>

enum { WORK_ALIGN = 64 };

typedef struct model_work {
    char *base; /* NULL: only count */
    size_t used;
    bool overflow; /* more bytes than any memory has */
} model_work;

/* Starts at the first aligned byte of `buffer`; up to WORK_ALIGN - 1 bytes are skipped. */
model_work work_begin(void *buffer);

/* count * size bytes, not initialised. */
void *work_take(model_work *work, ptrdiff_t count, size_t size);

/* Aligned memory for free(); NULL: out of memory. */
void *work_allocate(size_t bytes);

#endif
