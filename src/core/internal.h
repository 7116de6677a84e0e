/* SPDX-License-Identifier: MIT */
/*
 * What all files of the core share: one checked call, and the small functions around it. Further
 * headers: work.h (workspaces), element.h (single elements), plan.h (plans and runs), tile.h and
 * task.h (inside a task), statistics.h, region.h (memory checks), backward.h, cache.h, linear.h,
 * rope.h, layer.h. Who calls whom:
 *
 *      api.c                    the entry points of the operator
 *        |---> check.c            every argument is checked there, once; below are only asserts
 *        |       `---> region.c, statistics.c    memory and overlaps; what statistics may be wanted
 *        |---> dispatch.c, cpu.c  the kernel table of this machine
 *        |---> plan.c             tiles, tasks, the map of the workspace
 *        `---> run.c              phases, each a list of tasks for the workers of pool.c
 *                |---> attention.c             one task: rows x keys, online softmax
 *                |       |---> mask.c            which keys a tile of rows sees
 *                |       |---> tile.c            scores of the tile, from views or a cache
 *                |       |---> values.c          p . v
 *                |       |---> few_rows.c        the same steps in the order of decoding
 *                |       |---> prefetch.c        what will be read next
 *                |       |---> statistics.c      statistics of rows, heads and keys
 *                |       |---> weights_one_pass.c    returned weights, made in the same pass
 *                |       `---> output.c          the finished row: sink, division, storage
 *                |---> weights_second_pass.c   returned weights of some heads and rows, afterwards
 *                `---> reference.c             the f64 path, in plain C
 *      weights_alone.c ---> run.c              weights without output
 *      explain.c                               a plan in words
 *      merge.c                                 joins partial results over different keys
 *
 *      backward.c               gradients of the operator: checks, workspace, phases, final sums
 *        |---> attention_backward.c   one unit of whole heads; scores by tile.c, masks by mask.c
 *        `---> backward_extras.c      the extra key and value of a layer
 *
 *      layer.c                  one call of a layer; layer_check.c, layer_work.c prepare it
 *        |---> linear.c, gemm.c   projections                    layer_create.c, layer_prune.c,
 *        |---> layer_qk.c, rope.c norm and rotation of Q and K   presets.c: how a layer is made
 *        |---> cache*.c           keys and values kept
 *        `---> run.c              the operator, as above
 *      layer_backward.c         its gradients; layer_backward_check.c prepares them
 *        `---> backward.c, linear_backward.c, layer_qk.c
 *
 *      Used everywhere: work.c (workspaces), pool.c (threads), status.c (messages), element.c
 * (single elements), dropout.c (dropout of one weight), kernels/ (all that touches many numbers).
 */
#ifndef MHAI_INTERNAL_H
#define MHAI_INTERNAL_H

#include <mha/mha.h>

#include <stdbool.h>
#include <stdint.h>

#include "core/element.h"
#include "core/kernels/kernels.h"
#include "core/work.h"

enum {
    MHAI_SPLIT = 1024
}; /* keys per partial softmax; a multiple of MHAK_BLOCK. Results depend on
    * it, to the bit */

/* No extent may be larger: index arithmetic then has room to spare. */
#define MHAI_MAX_EXTENT (PTRDIFF_MAX >> (sizeof(ptrdiff_t) > 4 ? 15 : 4))

static inline ptrdiff_t mhai_min(ptrdiff_t a, ptrdiff_t b)
{
    return a < b ? a : b;
}
static inline ptrdiff_t mhai_max(ptrdiff_t a, ptrdiff_t b)
{
    return a > b ? a : b;
}
static inline ptrdiff_t mhai_ceil_div(ptrdiff_t a, ptrdiff_t b)
{
    return a / b + (a % b != 0);
}
static inline ptrdiff_t mhai_round_up(ptrdiff_t a, ptrdiff_t b)
{
    return mhai_ceil_div(a, b) * b;
}

/* Floats from one row of so many to the next: one vector more, since rows a power of two apart
 * would share the cache's sets. */
static inline ptrdiff_t mhai_row_floats(ptrdiff_t width)
{
    return mhai_round_up(width, MHAK_MAX_VECTOR) + MHAK_MAX_VECTOR;
}

/* ---------------------------------------------------------------- a call ----- */

/* Keys and values that every row sees behind all others, whatever the masks. */
typedef struct mhai_extra {
    const float *k, *v; /* [G][D], [G][Dv]: a learned pair; NULL: none */
    bool zero;          /* and one of zeros */
} mhai_extra;

/* One call, checked and completed: G and Dv filled in, options as long as this library's own. */
typedef struct mhai_call {
    mha_shape shape;
    mha_view q, k, v;
    mha_out o;
    mha_options options;
    double scale;
    const mha_cache *cache;   /* keys and values come from here, not from k and v; NULL: no */
    const int64_t *sequences; /* [B] of the cache; NULL: b */
    mhai_extra extra;
    ptrdiff_t row_first, row_last; /* rows of each batch to compute now; 0, 0: all */
    mha_view given_lse;            /* weights alone: log-sum-exps from before; NULL data: none */
} mhai_call;

/* Columns of returned weights: the keys, then the extra ones. */
static inline ptrdiff_t mhai_extras(const mhai_call *call)
{
    return (call->extra.k != NULL) + (ptrdiff_t)call->extra.zero;
}

static inline ptrdiff_t mhai_sequence(const mhai_call *call, ptrdiff_t b)
{
    return call->sequences ? (ptrdiff_t)call->sequences[b] : b;
}

/* Is row i one of those to compute now? */
static inline bool mhai_row_wanted(const mhai_call *call, ptrdiff_t i)
{
    return call->row_last == 0 || (i >= call->row_first && i < call->row_last);
}

/* One batch of a call: its true lengths, where its rows start, where query 0 stands. */
typedef struct mhai_batch {
    ptrdiff_t b;
    ptrdiff_t queries, keys;
    ptrdiff_t q_first, k_first; /* first row in a packed view, else 0 */
    ptrdiff_t offset;
} mhai_batch;

mhai_batch mhai_batch_of(const mhai_call *call, ptrdiff_t b);

/* Element index of (b, h, i, 0). Packed views (first > 0 possible) have no batch axis. */
static inline ptrdiff_t mhai_index(const mha_view *x, bool packed, ptrdiff_t b, ptrdiff_t first,
                                   ptrdiff_t h, ptrdiff_t i)
{
    return (packed ? first * x->sl : b * x->sb) + h * x->sh + i * x->sl;
}

static inline mha_view mhai_as_view(mha_out out)
{
    const mha_view view = {out.data, out.sb, out.sh, out.sl};
    return view;
}

static inline ptrdiff_t mhai_q_index(const mhai_call *call, const mhai_batch *batch,
                                     const mha_view *x, ptrdiff_t h, ptrdiff_t i)
{
    return mhai_index(x, call->options.q_starts != NULL, batch->b, batch->q_first, h, i);
}

static inline ptrdiff_t mhai_k_index(const mhai_call *call, const mhai_batch *batch,
                                     const mha_view *x, ptrdiff_t g, ptrdiff_t j)
{
    return mhai_index(x, call->options.k_starts != NULL, batch->b, batch->k_first, g, j);
}

/* The gate of a head; 1 without gates. */
static inline float mhai_gate(const mhai_call *call, ptrdiff_t b, ptrdiff_t h)
{
    const mha_options *const o = &call->options;
    return o->gates ? o->gates[b * o->gates_sb + h] : 1.0f;
}

static inline mha_head_mode mhai_mode(const mhai_call *call, ptrdiff_t h)
{
    const mha_options *const o = &call->options;
    return o->head_modes ? (mha_head_mode)o->head_modes[h] : MHA_HEAD_NORMAL;
}

/* Dropout of a call: how many of 65536 are dropped; 0 without. What is kept grows by the factor. */
static inline uint32_t mhai_drop_threshold(const mha_options *o)
{
    return o->flags & MHA_TRAINING ? (uint32_t)(o->dropout * 65536.0f + 0.5f) : 0;
}
static inline float mhai_drop_factor(uint32_t threshold)
{
    return 65536.0f / (float)(65536 - (int32_t)threshold);
}

/* Dropout of a batch and head, for the kernels. */
mhak_drop mhai_drop_of(const mhai_call *call, ptrdiff_t b, ptrdiff_t h);

/* Dropout of one weight, plainly: the twin of the kernels' drop_bits. */
bool mhai_drop_keeps(const mhak_drop *drop, ptrdiff_t i, ptrdiff_t j);

/* Is the mean of the weights wanted? */
static inline bool mhai_averages(const mhai_call *call)
{
    return (call->options.flags & MHA_AVERAGE_WEIGHTS) != 0;
}

/* Chosen heads and rows of the returned weights. */
ptrdiff_t mhai_weights_heads(const mhai_call *call);
ptrdiff_t mhai_weights_rows(const mhai_call *call);
static inline ptrdiff_t mhai_weights_head(const mhai_call *call, ptrdiff_t n)
{
    return call->options.weights_heads ? (ptrdiff_t)call->options.weights_heads[n] : n;
}
static inline ptrdiff_t mhai_weights_row(const mhai_call *call, ptrdiff_t n)
{
    return call->options.weights_rows ? (ptrdiff_t)call->options.weights_rows[n] : n;
}

/* mha_dtype_size of a type that is one, without a call: rows ask for it one by one. */
static inline ptrdiff_t mhai_size(mha_dtype type)
{
    return type == MHA_F32 ? 4 : type == MHA_F64 ? 8 : type == MHA_I8 ? 1 : 2;
}

static inline const void *mhai_at(const void *data, mha_dtype type, ptrdiff_t index)
{
    return (const char *)data + index * mhai_size(type);
}
static inline void *mhai_out_at(void *data, mha_dtype type, ptrdiff_t index)
{
    return (char *)data + index * mhai_size(type);
}

/* ---------------------------------------------------------------- checks ----- */

/*
 * Copy a caller's struct, whose first field is its size, into `full` as far as it reaches; the rest
 * becomes 0. False where the size is not one of any version: below `least`, cut in a field, or with
 * something behind the `known` bytes that is not 0.
 */
bool mhai_struct_read(const void *given, void *full, size_t least, size_t known);

/* The caller's options, all of them; NULL gives the defaults. */
mha_status mhai_options_read(const mha_options *options, mha_options *full);

/* Put the tensors into a call. */
void mhai_set_views(mhai_call *call, mha_view q, mha_view k, mha_view v, mha_out o);

/* Fill in G, Dv and the default scale, and check everything that does not need the data. */
mha_status mhai_check_problem(const mha_shape *shape, mhai_call *call);

/* Check the arrays of the options: lengths, starts, positions, chosen heads and rows. */
mha_status mhai_check_lists(const mhai_call *call);

/* The same, and pointers, strides and overlaps of everything in a completed call. */
mha_status mhai_check_data(const mhai_call *call, const void *work, size_t work_size);

/* Write the message for the caller, if it wants one; returns status. */
mha_status mhai_fail(const mha_options *options, mha_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for calls whose message is not in options; NULL: not wanted. */
mha_status mhai_fail_to(char *message, size_t size, mha_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ----------------------------------------------------------------- masks ----- */

/* One query row of a task: its head, its position, the keys [first, last) that causal, window and
 * lengths leave it, and for returned weights the row of the output it goes to. */
typedef struct mhai_row {
    ptrdiff_t h, i;
    ptrdiff_t first, last;
    ptrdiff_t slot;
} mhai_row;

/* Fill in first and last from h and i. */
void mhai_row_range(const mhai_call *call, const mhai_batch *batch, mhai_row *row);

/* Are there masks that must be looked up key by key? */
bool mhai_masks_look_up(const mha_options *options);

typedef enum mhai_cover { MHAI_NONE, MHAI_SOME, MHAI_ALL } mhai_cover;

/*
 * Which keys of the block that starts at key `base` the rows see. [*first, *last) comes back as
 * the smallest range, relative to base, that holds every visible key. MHAI_ALL: each row sees all
 * of that range, whose ends are multiples of `vector`; keep is not written. MHAI_SOME: keep holds
 * MHAK_WORDS words a row. MHAI_NONE: no row sees any key.
 */
mhai_cover mhai_mask_block(const mhai_call *call, const mhak_table *kernels,
                           const mhai_batch *batch, const mhai_row *rows, int count, ptrdiff_t base,
                           uint32_t *keep, int *first, int *last);

/* Keep bits of one row: 1 for keys [first, last) of the block, else 0. */
void mhai_keep_range(uint32_t *keep, ptrdiff_t first, ptrdiff_t last);

/* ---------------------------------------------------------- the machine ----- */

/* The table MHA_ISA asks for, or the best this CPU can run. */
mha_status mhai_kernels(const mhak_table **kernels);
/* The same, with a message where it fails. */
mha_status mhai_kernels_for(const mha_options *message, const mhak_table **kernels);
/* Can this CPU run the table of that name? */
bool mhai_cpu_runs(const char *isa);

#endif
