/* SPDX-License-Identifier: MIT */
/* Workspaces of models: see work.h. */
#include "model/work.h"

#include <stdint.h>
#include <stdlib.h>

/* Where blocks are while bytes are counted. */
static _Alignas(WORK_ALIGN) char nowhere[WORK_ALIGN];

model_work work_begin(void *buffer)
{
    const uintptr_t at = (uintptr_t)buffer;
    const model_work work = {(char *)buffer + (WORK_ALIGN - at % WORK_ALIGN) % WORK_ALIGN, 0,
                             false};
    return work;
}

void *work_take(model_work *work, ptrdiff_t count, size_t size)
{
    size_t bytes, used;
    if (count < 0 || __builtin_mul_overflow((size_t)count, size, &bytes) || bytes > SIZE_MAX / 4 ||
        __builtin_add_overflow(work->used, bytes + WORK_ALIGN, &used) || used > SIZE_MAX / 4) {
        work->overflow = true;
        return nowhere;
    }
    char *const block = work->base ? work->base + work->used : nowhere;
    work->used += (bytes + WORK_ALIGN - 1) / WORK_ALIGN * WORK_ALIGN;
    return block;
}

void *work_allocate(size_t bytes)
{
    if (bytes > SIZE_MAX / 4)
        return NULL;
    return aligned_alloc(WORK_ALIGN, (bytes + WORK_ALIGN) / WORK_ALIGN * WORK_ALIGN);
}
