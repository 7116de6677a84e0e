/* SPDX-License-Identifier: MIT */
/*
 * Buffers next to memory that must not be touched: a read or write outside ends the program.
 *
 *      GUARD_AFTER                         GUARD_BEFORE
 *      | no access |  ...  [data] | no access |      | no access | [data]  ...  | no access |
 *                                ^ data + size                   ^ data
 *
 * With GUARD_AFTER the alignment of `data` is whatever `size` leaves; a size that is a multiple
 * of the element size keeps elements aligned. The rest of the mapping is filled with a pattern
 * that guard_intact() checks.
 */
#ifndef MHA_GUARD_H
#define MHA_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "problem/problem_spec.h"

typedef enum guard_side { GUARD_AFTER, GUARD_BEFORE } guard_side;

typedef struct guard_buffer {
    void *data;
    size_t size;
    unsigned char *map;
    size_t map_size;
} guard_buffer;

/* Ends the program with a message if out of memory: a test has nothing else to do then. */
guard_buffer guard_new(size_t size, guard_side side);

/* From now on `data` can be read, not written. */
void guard_seal(const guard_buffer *buffer);

/* False if something was written between `data` and the far guard page. */
bool guard_intact(const guard_buffer *buffer);

void guard_free(guard_buffer *buffer);

/* Memory for problems: against an unreadable page at its end or start; and all kinds in a list, of
 * which the first is NULL, the heap. */
extern const problem_memory guard_memory_back, guard_memory_front;
extern const problem_memory *const guard_memories[3];

#endif
