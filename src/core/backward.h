/* SPDX-License-Identifier: MIT */
/*
 * The backward pass of the operator.
 *
 *      backward.c             the public function: checks, then the phases
 *      attention_backward.c   one unit: all rows of some heads and all their keys
 *      backward_extras.c      the extra key and value of a layer
 */
#ifndef MHAI_BACKWARD_H
#define MHAI_BACKWARD_H

#include "core/region.h"
#include "core/tile.h"

/* Sums per batch and head. */
enum { MHAI_SLOPE, MHAI_SINK, MHAI_GATE, MHAI_SUMS };

enum { MHAI_BACK_ROWS = 64 }; /* rows of a tile. The bits of results depend on it */

/* The scratch of one worker. */
typedef struct mhai_back_scratch {
    mhai_scratch tile; /* rows, q, s (weights), keep and k_panels, for one tile of rows */
    float *d;          /* [rows][MHAK_BLOCK] gradients of weights, then of scores */
    float *capped;     /* [rows][MHAK_BLOCK] scores before bias, with a soft cap */
    uint32_t *dropout; /* [rows][MHAK_WORDS] keep bits of dropout; all 1 without dropout */
    float *d_o;        /* [rows][ldo] gradients of the output */
    float *v_panels;   /* a block of values as panels of rows, like keys */
    float *k_columns;  /* a block of keys, scaled, as panels of columns */
    float *cleaned;    /* the same with masked keys replaced by 0 */
    float *d_q;        /* [rows][columns of d_q, whole panels] */
    float *d_k, *d_v;  /* [MHAK_BLOCK][ldq], [MHAK_BLOCK][ldo] of the current block */
} mhai_back_scratch;

/* One backward pass. */
typedef struct mhai_backward {
    mha_plan plan; /* plan of the forward pass: kernels, lengths of rows */
    mhai_call call;
    mha_gradients gradients; /* the caller's, all fields */
    mha_view o;              /* output of the forward pass */
    mha_view lse;
    float *delta;   /* [B][H][L]: d_o . o - d_lse of every row */
    double *sums;   /* [B][H][3]: gradients of slope, sink and gate per batch */
    double *extras; /* [B][G][D + Dv]: gradients of the extra key and value per batch */
    float *d_extra_key, *d_extra_value; /* [G][D], [G][Dv] or NULL */
    ptrdiff_t units; /* tasks: each has whole heads and is alone in adding to their gradients */
    bool joins_heads, joins_batches; /* one unit spans these, since they share a bias */
    char *scratches;
    size_t scratch_size;
} mhai_backward;

static inline double mhai_back_dot(const float *a, const float *b, ptrdiff_t count)
{
    double sum = 0.0;
    for (ptrdiff_t c = 0; c < count; c++)
        sum += (double)a[c] * (double)b[c];
    return sum;
}

/* The log-sum-exp of a row; and the deltas of the rows of a batch and head. */
static inline float mhai_back_lse(const mhai_backward *pass, const mhai_batch *batch, ptrdiff_t h,
                                  ptrdiff_t i)
{
    return ((const float *)pass->lse.data)[mhai_q_index(&pass->call, batch, &pass->lse, h, i)];
}

static inline float *mhai_back_delta(const mhai_backward *pass, ptrdiff_t b, ptrdiff_t h)
{
    return pass->delta + (b * pass->call.shape.H + h) * pass->call.shape.L;
}

/* Adds the gradients of the options to a list of regions. Changes the B of the list. */
void mhai_backward_add_options(mhai_regions *list, const mhai_call *call, const mha_gradients *g);

/* For a checked problem with call, gradients, o and lse filled in: fills in the rest. */
void mhai_backward_plan(mhai_backward *pass, const mhak_table *kernels);
size_t mhai_backward_needs(const mhai_backward *pass, int threads);
void mhai_backward_run(mhai_backward *pass, void *memory, mha_pool *pool);

/* Carves one worker's scratch; with work->base NULL it only counts. */
mhai_back_scratch mhai_back_scratch_take(const mhai_backward *pass, mhai_work *work);

/* One unit: gradients of its queries, keys, values, biases, slopes and sinks. */
void mhai_backward_unit(const mhai_backward *pass, const mhai_back_scratch *scratch,
                        ptrdiff_t unit);

/* The extra key of the worker's group, after all blocks of keys. */
void mhai_backward_extras(const mhai_backward *pass, const mhai_back_scratch *scratch,
                          mhai_worker *worker);

/* Loads queries and output gradients of the rows in scratch->tile.rows. */
void mhai_backward_load(const mhai_backward *pass, const mhai_back_scratch *scratch,
                        const mhai_worker *worker);

#endif
