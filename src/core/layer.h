/* SPDX-License-Identifier: MIT */
/*
 * The layer's parts.
 *
 *      layer_weights.c   the caller's matrices -> packed linears, once
 *      layer_check.c     a call is checked
 *      layer_work.c      and becomes an mhai_layer_job: buffers, lists of rows, views
 *      layer.c           the job is run: read that one to know the layer
 */
#ifndef MHAI_LAYER_H
#define MHAI_LAYER_H

#include "cache.h"
#include "linear.h"
#include "rope.h"

enum { MHAI_Q, MHAI_K, MHAI_V, MHAI_PROJECTIONS };

/* Q, K or V: some panels of a linear, perhaps beside others. */
typedef struct mhai_projection {
    const mha_linear *linear;
    ptrdiff_t first_panel, last_panel;
    ptrdiff_t columns; /* of the panels: heads * width, rounded up to whole panels */
} mhai_projection;

struct mha_layer {
    mha_layer_config config; /* defaults filled in, no message */
    const mhak_table *kernels;
    mha_linear *linears[MHAI_PROJECTIONS]; /* those with the same input width are packed as one */
    mhai_projection in[MHAI_PROJECTIONS];
    mha_linear *out;
    float *vectors; /* one block for all below, NULL where there is none */
    const float *extra_key, *extra_value;
    const float *norm[2], *norm_bias[2]; /* of Q and of K */
};

/* Rows of one side of a call, queries or keys: how many there are and where they lie. */
typedef struct mhai_side {
    ptrdiff_t B, extent;      /* extent: L or S */
    const int64_t *lengths;   /* [B] or NULL */
    const int64_t *starts;    /* [B+1] or NULL */
    const int64_t *positions; /* for RoPE, or NULL */
    ptrdiff_t count;          /* rows in all, without padding */
    ptrdiff_t *numbers;       /* [count] their rows of the buffers; NULL: one after another */
} mhai_side;

/* Rows of a batch. */
static inline ptrdiff_t mhai_side_rows(const mhai_side *side, ptrdiff_t b)
{
    if (side->lengths)
        return (ptrdiff_t)side->lengths[b];
    return side->starts ? (ptrdiff_t)(side->starts[b + 1] - side->starts[b]) : side->extent;
}

/* The row of the buffers that holds the first row of a batch. */
static inline ptrdiff_t mhai_side_first(const mhai_side *side, ptrdiff_t b)
{
    return side->starts ? (ptrdiff_t)(side->starts[b] - side->starts[0]) : b * side->extent;
}

/* One call, checked: where everything is. Buffers hold f32, one row a token. */
typedef struct mhai_layer_job {
    const mha_layer *layer;
    mha_layer_call call; /* all its fields */
    mha_pool *pool;
    bool self;             /* one input for Q, K and V */
    bool attends, appends; /* what a cache leaves to do; without one only the first */
    mhai_side queries, keys;
    mhai_side both;                          /* rows that queries or keys need, if self */
    const mhai_side *rows[MHAI_PROJECTIONS]; /* one of the three */
    mhai_call attention;                     /* the operator's part */
    int64_t *packed[2];                      /* [B+1] starts of queries and keys, from 0 on */
    int64_t *joined;                         /* [B] lengths of both */
    int64_t *past;                           /* [B] tokens a cache had before; NULL: none */

    float *projected[MHAI_PROJECTIONS]; /* Q, K and V: column 0 of row 0 */
    ptrdiff_t stride[MHAI_PROJECTIONS]; /* floats from row to row */
    float *heads;                       /* [rows][H * Dv]: the heads' outputs, side by side */
    ptrdiff_t *x_rows[MHAI_PROJECTIONS],
        *y_rows; /* elements at which rows of inputs, output start */
    void *work;  /* what is left, for products and for the operator in turn */
} mhai_layer_job;

/* Which input a projection reads. */
static inline const mha_view *mhai_layer_input(const mha_layer_call *call, int which)
{
    if (which == MHAI_Q || (!call->key.data && (which == MHAI_K || !call->value.data)))
        return &call->query;
    return which == MHAI_K || !call->value.data ? &call->key : &call->value;
}

/* Are K and V of new tokens made in this call? */
static inline bool mhai_layer_makes_keys(const mhai_layer_job *job)
{
    return job->appends || !job->call.cache;
}

/* Are these the same rows? */
static inline bool mhai_layer_same(const mha_view *a, const mha_view *b)
{
    return a->data == b->data && a->sb == b->sb && a->sl == b->sl;
}

/* Tokens of a batch's sequence before this call. */
static inline ptrdiff_t mhai_layer_past(const mhai_layer_job *job, ptrdiff_t b)
{
    const ptrdiff_t sequence = job->call.sequences ? (ptrdiff_t)job->call.sequences[b] : b;
    return (ptrdiff_t)job->call.cache->lengths[sequence];
}

/* Check a call and fill in what needs no workspace. */
mha_status mhai_layer_check(mhai_layer_job *job, const mha_layer *layer,
                            const mha_layer_call *call);

/* Check everything the call points to against itself and the workspace. */
mha_status mhai_layer_check_memory(const mhai_layer_job *job, const void *work, size_t work_size);

/* Can the cache take the new tokens? `lengths` [B] is room to count them. */
mha_status mhai_layer_check_append(const mhai_layer_job *job, int64_t *lengths);

/* Check a call, then carve its workspace and fill in the job. */
mha_status mhai_layer_prepare(mhai_layer_job *job, const mha_layer *layer,
                              const mha_layer_call *call, void *work, size_t work_size,
                              mha_pool *pool);

/* Bytes of workspace for a call that could be prepared; 0 where it could not. */
size_t mhai_layer_needs(const mha_layer *layer, const mha_layer_call *call, int threads);

#endif
