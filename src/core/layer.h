/* SPDX-License-Identifier: MIT */
/*
 * The parts of the layer.
 *
 *      layer_create.c    the caller's matrices -> packed linears, once
 *      layer_prune.c     a layer -> a layer with fewer heads
 *      layer_check.c     checks a call
 *      layer_work.c      makes it an mhai_layer_job: buffers, lists of rows, views
 *      layer.c           runs the job: read this file to know the layer
 *      layer_halves.c    runs what comes before the heads, or after them
 *      layer_qk.c        norm and rotation of Q and K, forward and backward
 *      layer_backward_check.c, layer_backward.c   gradients, from the tape that a job has left
 */
#ifndef MHAI_LAYER_H
#define MHAI_LAYER_H

#include "core/backward.h"
#include "core/cache.h"
#include "core/linear.h"
#include "core/rope.h"

enum { MHAI_Q, MHAI_K, MHAI_V, MHAI_PROJECTIONS };

/* Q, K or V: some panels of a linear, which may hold other projections too. */
typedef struct mhai_projection {
    const mha_linear *linear;
    ptrdiff_t first_panel, last_panel;
    ptrdiff_t columns; /* columns of the panels: heads * width, rounded up to whole panels */
} mhai_projection;

struct mha_layer {
    mha_layer_config config; /* defaults filled in, no message */
    const mhak_table *kernels;
    const mhak_native *native; /* whose base they are; used if config.arithmetic is MHA_NATIVE */
    mha_linear
        *linears[MHAI_PROJECTIONS]; /* projections of the same input width and type are one */
    mhai_projection in[MHAI_PROJECTIONS];
    mha_linear *out;
    float *vectors; /* one block for all vectors below; NULL where there are none */
    float *extra_key, *extra_value;
    float *norm[2], *norm_bias[2]; /* of Q and of K */
};

/* The rows of queries or of keys of a call: how many there are and where they lie. */
typedef struct mhai_side {
    ptrdiff_t B, extent;      /* extent: L or S */
    const int64_t *lengths;   /* [B] or NULL */
    const int64_t *starts;    /* [B+1] or NULL */
    const int64_t *positions; /* for RoPE, or NULL */
    ptrdiff_t count;          /* rows in all, without padding */
    ptrdiff_t *numbers;       /* [count] their rows in the buffers; NULL: consecutive */
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

/* What is done of a layer: all of it, what comes before the heads, or what comes after them. */
typedef enum mhai_layer_part { MHAI_WHOLE, MHAI_PROJECT, MHAI_OUTPUT } mhai_layer_part;

/* What the caller gives and takes between the halves of a layer, f32. NULL data: nothing. */
typedef struct mhai_layer_between {
    mhai_layer_part part;
    mha_view d_q, d_k, d_v; /* MHAI_PROJECT: given */
    mha_view heads;         /* MHAI_OUTPUT: given */
    mha_out d_heads;        /* MHAI_OUTPUT: requested */
} mhai_layer_between;

/* One call, checked, with the places of everything. Buffers hold f32, one row per token. */
typedef struct mhai_layer_job {
    const mha_layer *layer;
    mha_layer_call call; /* the caller's, all fields */
    mha_pool *pool;
    mhai_layer_part part;
    mha_view given;        /* MHAI_OUTPUT: the heads of the caller */
    bool self;             /* one input for Q, K and V */
    bool attends, appends; /* what is to be done; without a cache only the first */
    mhai_side queries, keys;
    mhai_side both;                          /* if self: rows that are queries or keys */
    const mhai_side *rows[MHAI_PROJECTIONS]; /* one of the three sides */
    mhai_call attention;                     /* the call of the operator */
    int64_t *packed[2];                      /* [B+1] starts of queries and keys, from 0 on */
    int64_t *joined;                         /* [B] lengths of both */
    int64_t *past; /* [B] tokens a cache had before this call; NULL: none */

    float *projected[MHAI_PROJECTIONS]; /* Q, K and V: column 0 of row 0 */
    ptrdiff_t stride[MHAI_PROJECTIONS]; /* floats from row to row */
    float *plain[2]; /* [rows][heads * D]: Q and K before their norm, on the tape */
    float *lse;      /* on the tape, if the caller does not request it */
    float *heads;    /* [rows][H * Dv]: the heads' outputs, side by side */
    ptrdiff_t *x_rows[MHAI_PROJECTIONS],
        *y_rows; /* elements at which rows of inputs and output start */
    void *work;  /* the rest of the workspace, for products and the operator in turn */
} mhai_layer_job;

/* Which input a projection reads: MHAI_Q for the query and so on. An omitted input is replaced by
 * another one. */
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

/* Does this call make K and V of new tokens? */
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

/* Checks a call and fills in what needs no workspace. */
mha_status mhai_layer_check(mhai_layer_job *job, const mha_layer *layer,
                            const mha_layer_call *call);

/* Checks everything the call points to for overlaps with each other and with the workspace. The
 * tape has tape_size bytes. */
mha_status mhai_layer_check_memory(const mhai_layer_job *job, size_t tape_size, const void *work,
                                   size_t work_size);

/* Does the cache have room for the new tokens? `lengths` [B] is scratch to count them. */
mha_status mhai_layer_check_append(const mhai_layer_job *job, int64_t *lengths);

/* Checks a call, then carves its workspace and fills in the job. */
mha_status mhai_layer_prepare(mhai_layer_job *job, const mha_layer *layer,
                              const mha_layer_call *call, const mhai_layer_between *between,
                              void *work, size_t work_size, mha_pool *pool);

/* Bytes of workspace for a valid call; 0 for an invalid one. */
size_t mhai_layer_needs(const mha_layer *layer, const mha_layer_call *call, int threads);

/* Parts of it, for a checked job: bytes of a tape, and of the lists of rows. */
size_t mhai_layer_tape_bytes(const mhai_layer_job *job);
size_t mhai_layer_list_bytes(const mhai_layer_job *job);

/* Bytes of Q, K, V and heads, which are on the tape if there is one. */
size_t mhai_layer_buffer_bytes(const mhai_layer_job *job);

/* A linear of the layer whose weights are of a block type, or NULL. */
static inline const mha_linear *mhai_layer_in_blocks(const mha_layer *layer)
{
    for (int p = 0; p < MHAI_PROJECTIONS; p++)
        if (mhai_is_block(layer->in[p].linear->stored))
            return layer->in[p].linear;
    return mhai_is_block(layer->out->stored) ? layer->out : NULL;
}

/* Is this a checked call that can have a backward pass? */
static inline bool mhai_layer_has_back(const mhai_layer_job *job)
{
    return !job->call.cache && !job->attention.options.head_modes &&
           !mhai_layer_in_blocks(job->layer);
}

/* Is the tape usable for this call, which needs that many bytes? */
mha_status mhai_layer_check_tape(const mhai_layer_job *job, size_t needed);

/* Carves lists and, without a tape, buffers; then fills in rows, starts and views. */
void mhai_layer_carve(mhai_layer_job *job, mhai_work *work);

/* Carves buffers of some projections side by side, with as many rows as in the forward pass. */
void mhai_layer_take_projected(const mhai_layer_job *job, int first, int last,
                               float *projected[MHAI_PROJECTIONS], ptrdiff_t *strides,
                               mhai_work *work);

/* Rows of the buffers of one side, with padding. With a cache they suffice for any later call. */
static inline ptrdiff_t mhai_layer_room(const mhai_layer_job *job, const mhai_side *side)
{
    return side->starts && !job->call.cache ? (ptrdiff_t)(side->starts[side->B] - side->starts[0])
                                            : side->B * side->extent;
}

/* Elements at which the rows of a side start in a tensor. */
void mhai_layer_list_starts(const mhai_side *side, const mha_view *x, ptrdiff_t *list);

/* Adds rows of one side to a list of regions. */
void mhai_layer_add_rows(mhai_regions *list, bool output, const char *name, mha_view x,
                         mha_dtype type, const mhai_side *side, ptrdiff_t width);

/* Adds the inputs of a call to a list of regions; the query only if it attends. */
void mhai_layer_add_inputs(mhai_regions *list, const mhai_layer_job *job);

/* Are projections a and a + 1 one product: same rows in, side by side in weights and output? */
bool mhai_layer_joined(const mhai_layer_job *job, int a);

/* Q, K and V of the inputs; norm and rotation of Q and K; the output of the heads. */
void mhai_layer_project(const mhai_layer_job *job);
void mhai_layer_norm_rope(const mhai_layer_job *job);
void mhai_layer_combine(const mhai_layer_job *job);

/* Rows of heads of the caller, element (b, h, i, c) with packed sequences packed, to a buffer with
 * `stride` floats from row to row, or from it. */
void mhai_layer_rows_in(const mhai_side *side, const mha_view *from, ptrdiff_t heads,
                        ptrdiff_t width, float *to, ptrdiff_t stride);
void mhai_layer_rows_out(const mhai_side *side, const float *from, ptrdiff_t stride,
                         ptrdiff_t heads, ptrdiff_t width, const mha_out *to);

/* Are all copies that the call requests made by it? Adds those to a list of regions. */
mha_status mhai_layer_check_captured(const mhai_layer_job *job);
void mhai_layer_add_captured(mhai_regions *list, const mhai_layer_job *job);

/* Copies Q, K and V, and the heads' outputs. */
void mhai_layer_capture_projected(const mhai_layer_job *job);
void mhai_layer_capture_heads(const mhai_layer_job *job);

/* -------------------------------------------------------------- backward ----- */

/* One backward pass. */
typedef struct mhai_layer_back {
    mhai_layer_job job; /* as in the forward pass; its buffers are on the tape */
    mha_layer_gradients gradients;
    bool wants[MHAI_PROJECTIONS]; /* is a gradient requested that depends on this projection's? */
    float *d_projected[MHAI_PROJECTIONS]; /* laid out as job.projected */
    float *d_heads;                       /* as job.heads */
    ptrdiff_t *d_rows;                    /* elements at which rows of a gradient start */
    ptrdiff_t *live[2]; /* rows that have a gradient: their indices in buffers and in inputs */
    float *part;        /* one product, where an input's gradient is a sum of several */
    double *norm_sums;  /* [tasks][2][D] */
    mhai_backward attention;
    void *work; /* the rest of the workspace */
} mhai_layer_back;

/* Checks a backward pass, carves its workspace and fills it in. */
mha_status mhai_layer_back_prepare(mhai_layer_back *back, const mha_layer *layer,
                                   const mha_layer_call *call, const mha_layer_gradients *gradients,
                                   const mhai_layer_between *between, void *work, size_t work_size,
                                   mha_pool *pool);

/* Gradients of the output's matrix and of the heads; then those before the heads. */
void mhai_layer_back_output(const mhai_layer_back *back);
void mhai_layer_back_inputs(const mhai_layer_back *back);

size_t mhai_layer_back_needs(const mha_layer *layer, const mha_layer_call *call, int threads);

static inline bool mhai_layer_is_zero(const float *x, ptrdiff_t count)
{
    ptrdiff_t c = 0;
    while (c < count && x[c] == 0.0f)
        c++;
    return c == count;
}

/* An upper bound of the tasks of mhai_layer_norm_rope() and mhai_layer_norm_rope_back(). */
ptrdiff_t mhai_layer_norm_rope_tasks(const mhai_layer_job *job);
void mhai_layer_norm_rope_back(const mhai_layer_back *back);

#endif
