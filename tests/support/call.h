/* SPDX-License-Identifier: MIT */
/*
 * A complete call with its memory, for tests that bend one argument, or run the same call in
 * another way and want the same bits.
 *
 *      arena:  | outputs: o, lse, weights, statistics | inputs: q, k, v, masks, arrays |
 *
 * Every block starts 64-byte aligned, with unused bytes between blocks. The workspace is apart.
 */
#ifndef MHA_CALL_H
#define MHA_CALL_H

#include "mha/mha.h"

#include <stdbool.h>

typedef enum call_kind {
    CALL_PLAIN,  /* no options but their size */
    CALL_FULL,   /* every option that goes with a dense batch, and all outputs */
    CALL_PACKED, /* packed sequences, every option that goes with them */
    CALL_KINDS
} call_kind;

typedef struct call {
    mha_shape shape;
    mha_view q, k, v;
    mha_out o;
    mha_options options;
    uint64_t after_options; /* not zero: what options.size finds when it is too large */
    void *work;
    size_t work_size;

    unsigned char *arena;
    size_t arena_size, outputs_size;
} call;

/* 2 batches, 4 heads on 2, 5 queries, 7 keys, widths 8 and 12, f32. */
mha_shape call_small_shape(void);

/* Fills inputs from `seed`. G and Dv of `shape` must be given. Ends the program if memory fails. */
call *call_new(call_kind kind, const mha_shape *shape, uint64_t seed);
void call_free(call *c);

/* Fill the outputs with a pattern, so that what a call leaves alone compares equal too. */
void call_clear(call *c);

/* mha_attention(). */
mha_status call_attend(const call *c, mha_pool *pool);
/* mha_plan_run() with the call's workspace. */
mha_status call_run_plan(const call *c, const mha_plan *plan, mha_pool *pool);
/* mha_plan_create(), mha_plan_run(), mha_plan_free(). */
mha_status call_plan(const call *c, mha_pool *pool);

/* Whether the library has a name for it. */
bool call_status_known(mha_status status);

/* Outputs of both to the bit; the calls must be of the same kind and shape. */
bool call_equal(const call *a, const call *b);

#endif
