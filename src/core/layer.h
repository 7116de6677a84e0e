/* SPDX-License-Identifier: MIT */
/*
 * The layer's parts.
 *
 *      layer_create.c   the caller's matrices -> packed linears, once
 *      layer_prune.c     those of a layer -> those of one with fewer heads
 *      layer_check.c     a call is checked
 *      layer_work.c      and becomes an mhai_layer_job: buffers, lists of rows, views
 *      layer.c           the job is run: read that one to know the layer
 *      layer_qk.c     norm and rotation of Q and K, forward and backward
 *      layer_backward_check.c, layer_backward.c   the way back, from the tape a job has left
 */
#ifndef MHAI_LAYER_H
#define MHAI_LAYER_H

#include "core/backward.h"
#include "core/cache.h"
#include "core/linear.h"
#include "core/rope.h"

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
    float *extra_key, *extra_value;
    float *norm[2], *norm_bias[2]; /* of Q and of K */
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
    float *plain[2]; /* [rows][heads * D]: Q and K before their norm, on a tape */
    float *lse;      /* on a tape, if the caller wants none */
    float *heads;    /* [rows][H * Dv]: the heads' outputs, side by side */
    ptrdiff_t *x_rows[MHAI_PROJECTIONS],
        *y_rows; /* elements at which rows of inputs, output start */
    void *work;  /* what is left, for products and for the operator in turn */
} mhai_layer_job;

/* Which input a projection reads, as MHAI_Q for the query and so on: one that was left out is
 * another's. */
static inline int mhai_layer_source(const mha_layer_call *call, int which)
{
    if (which == MHAI_Q || (!call->key.data && (which == MHAI_K || !call->value.data)))
        return MHAI_Q;
    return which == MHAI_K || !call->value.data ? MHAI_K : MHAI_V;
}

static inline const mha_view *mhai_layer_input(const mha_layer_call *call, int which)
{
    const int source = mhai_layer_source(call, which);
    return source == MHAI_Q ? &call->query : source == MHAI_K ? &call->key : &call->value;
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
mha_status mhai_layer_check_memory(const mhai_layer_job *job, size_t tape_size, const void *work,
                                   size_t work_size);

/* Can the cache take the new tokens? `lengths` [B] is room to count them. */
mha_status mhai_layer_check_append(const mhai_layer_job *job, int64_t *lengths);

/* Check a call, then carve its workspace and fill in the job. */
mha_status mhai_layer_prepare(mhai_layer_job *job, const mha_layer *layer,
                              const mha_layer_call *call, void *work, size_t work_size,
                              mha_pool *pool);

/* Bytes of workspace for a call that could be prepared; 0 where it could not. */
size_t mhai_layer_needs(const mha_layer *layer, const mha_layer_call *call, int threads);

/* The same in parts, for a job that was checked: bytes of a tape, and of lists of rows. */
size_t mhai_layer_tape_bytes(const mhai_layer_job *job);
size_t mhai_layer_list_bytes(const mhai_layer_job *job);

/* Is this a checked call that can have a backward pass? */
static inline bool mhai_layer_has_back(const mhai_layer_job *job)
{
    return !job->call.cache && !job->attention.options.head_modes;
}

/* Is the tape one for this call? */
mha_status mhai_layer_check_tape(const mhai_layer_job *job, size_t needed);

/* Carve lists and, without a tape, buffers; then fill in rows, starts and views. */
void mhai_layer_carve(mhai_layer_job *job, mhai_work *work);

/* Buffers of some projections side by side, of as many rows as those of the forward pass. */
void mhai_layer_take_projected(const mhai_layer_job *job, int first, int last,
                               float *projected[MHAI_PROJECTIONS], ptrdiff_t *strides,
                               mhai_work *work);

/* Rows of the buffers of a side, padding included. A cache promises room for any later call. */
static inline ptrdiff_t mhai_layer_room(const mhai_layer_job *job, const mhai_side *side)
{
    return side->starts && !job->call.cache ? (ptrdiff_t)(side->starts[side->B] - side->starts[0])
                                            : side->B * side->extent;
}

/* Elements at which the rows of a side start in a tensor. */
void mhai_layer_list_starts(const mhai_side *side, const mha_view *x, ptrdiff_t *list);

/* Rows of a side in a list of regions. */
void mhai_layer_add_rows(mhai_regions *list, bool output, const char *name, mha_view x,
                         mha_dtype type, const mhai_side *side, ptrdiff_t width);

/* Inputs of a call in a list of regions; the query only if it attends. */
void mhai_layer_add_inputs(mhai_regions *list, const mhai_layer_job *job);

/* Do projections a and a + 1 make one product: same rows in, side by side in weights and out? */
bool mhai_layer_joined(const mhai_layer_job *job, int a);

/* Norm and rotation of Q and K. */
void mhai_layer_norm_rope(const mhai_layer_job *job);

/* -------------------------------------------------------------- backward ----- */

/* A backward pass under way. */
typedef struct mhai_layer_back {
    mhai_layer_job job; /* as it was in the forward pass; its buffers are on the tape */
    mha_layer_gradients gradients;
    bool wants[MHAI_PROJECTIONS];         /* is any gradient wanted that needs this one's? */
    float *d_projected[MHAI_PROJECTIONS]; /* laid out as job.projected */
    float *d_heads;                       /* as job.heads */
    ptrdiff_t *d_rows;                    /* elements at which rows of a gradient start */
    ptrdiff_t *live[2];                   /* rows that have a gradient: in buffers, in inputs */
    float *part;                          /* one product of several that an input's gradient has */
    double *norm_sums;                    /* [tasks][2][D] */
    mhai_backward attention;
    void *work; /* what is left */
} mhai_layer_back;

/* Check a backward pass, carve its workspace and fill it in. */
mha_status mhai_layer_back_prepare(mhai_layer_back *back, const mha_layer *layer,
                                   const mha_layer_call *call, const mha_layer_gradients *gradients,
                                   void *work, size_t work_size, mha_pool *pool);
size_t mhai_layer_back_needs(const mha_layer *layer, const mha_layer_call *call, int threads);

static inline bool mhai_layer_is_zero(const float *x, ptrdiff_t count)
{
    ptrdiff_t c = 0;
    while (c < count && x[c] == 0.0f)
        c++;
    return c == count;
}

/* Tasks of mhai_layer_norm_rope() and its way back, at most. */
ptrdiff_t mhai_layer_norm_rope_tasks(const mhai_layer_job *job);
void mhai_layer_norm_rope_back(const mhai_layer_back *back);

#endif
