/* SPDX-License-Identifier: MIT */
/*
 * What all files of the core share: one checked call, and the small functions around it. Further
 * headers: work.h (workspaces), element.h (single elements), plan.h (plans and runs), tile.h and
 * task.h (inside a task), statistics.h, region.h (memory checks), backward.h, cache.h, linear.h,
 * rope.h, layer.h. Who calls whom:
 *
 *      api.c                       the entry points of the operator
 *        |---> check.c               every argument is checked there, once
 *        |       |---> region.c        memory, strides and overlaps
 *        |       `---> statistics.c    the statistics that are requested
 *        |---> dispatch.c, cpu.c     the kernel table of this machine
 *        |---> plan.c                tiles, tasks, the map of the workspace
 *        `---> run.c                 phases, each a list of tasks for the workers of pool.c
 *                |---> one_block.c             heads of few keys, in one call of a kernel
 *                |---> attention.c             one task: rows x keys, online softmax
 *                |       |---> mask.c              which keys a tile of rows sees
 *                |       |---> tile.c              scores of the tile, from views or a cache
 *                |       |---> values.c            p . v
 *                |       |---> native_tile.c       both in products of bf16
 *                |       |---> few_rows.c          the same steps, ordered for decoding
 *                |       |---> prefetch.c          rows that will be read next
 *                |       |---> statistics.c        statistics of rows, heads and keys
 *                |       |---> weights_one_pass.c  returned weights, made in the same pass
 *                |       `---> output.c            the finished row: sink, division, storage
 *                |---> weights_second_pass.c   returned weights of chosen heads and rows
 *                `---> reference.c             the f64 path, in plain C
 *      weights_alone.c             weights without output: run.c with one phase
 *      explain.c                   a plan in words
 *      merge.c                     joins partial results over different keys
 *      presets.c                   published configurations
 *
 *      backward.c                  gradients of the operator: checks, workspace, phases, final sums
 *        `---> attention_backward.c  one unit of whole heads; scores by tile.c, masks by mask.c
 *                `---> backward_extras.c   the extra key and value of a layer
 *
 *      linear.c, linear_blocks.c   packs weights and runs them with gemm.c
 *      linear_backward.c           the gradients of a linear
 *      feed_forward.c              two linears run by gemm.c, some rows at a time
 *      activation.c, norm.c        the other parts of a transformer block
 *
 *      layer_create.c              makes a layer; layer_prune.c makes one with fewer heads
 *      layer.c                     one call of a layer, prepared by layer_check.c and layer_work.c
 *        |---> gemm.c                projections
 *        |---> layer_qk.c, rope.c    norm and rotation of Q and K
 *        |---> cache*.c              keys and values kept from earlier calls
 *        `---> run.c                 the operator, as above
 *      layer_backward.c            its gradients, prepared by layer_backward_check.c
 *        `---> backward.c, linear_backward.c, layer_qk.c
 *
 * Used everywhere: work.c (workspaces), pool.c (threads), status.c (messages), element.c (single
 * elements), block_types.c (rows of block types), dropout.c (dropout of a head), kernels/ (all that
 * touches many numbers).
 */
#ifndef MHAI_INTERNAL_H
#define MHAI_INTERNAL_H

#include <mha/mha.h>

#include <stdbool.h>
#include <stdint.h>

#include "core/element.h"
#include "core/kernels/native.h"
#include "core/work.h"

/* Keys per partial softmax, a multiple of MHAK_BLOCK. The bits of results depend on it. */
enum { MHAI_SPLIT = 1024 };

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

/* Is a pointer aligned as elements of `size` bytes must be? Some 32-bit machines align numbers of 8
 * bytes to 4. */
static inline bool mhai_aligned(const void *data, size_t size)
{
    return (uintptr_t)data % (size == sizeof(int64_t) ? _Alignof(int64_t) : size) == 0;
}

/* Floats from one row of `width` elements to the next: one vector more than needed, since rows that
 * are a power of two apart would compete for the same cache sets. */
static inline ptrdiff_t mhai_row_floats(ptrdiff_t width)
{
    return mhai_round_up(width, MHAK_MAX_VECTOR) + MHAK_MAX_VECTOR;
}

/* ---------------------------------------------------------------- a call ----- */

/* Extra keys and values, which every row sees after all others, whatever the masks. */
typedef struct mhai_extra {
    const float *k, *v; /* [G][D], [G][Dv]: a learned pair; NULL: none */
    bool zero;          /* and a pair of zeros, after the learned one */
} mhai_extra;

/* One call, checked and completed: G and Dv are filled in, and options has all fields this library
 * knows. */
typedef struct mhai_call {
    mha_shape shape;
    mha_view q, k, v;
    mha_out o;
    mha_options options;
    double scale;
    double softcap;           /* 0: none */
    const mha_cache *cache;   /* holds keys and values instead of k and v; NULL: none */
    const int64_t *sequences; /* [B] sequences of the cache; NULL: batch b reads sequence b */
    mhai_extra extra;
    ptrdiff_t row_first, row_last; /* rows of each batch to compute in this call; 0, 0: all */
    mha_view given_lse; /* weights alone: the log-sum-exps of an earlier call; NULL data: none */
} mhai_call;

/* Extra keys of a call. Returned weights have a column for each, after those of the keys. */
static inline ptrdiff_t mhai_extras(const mhai_call *call)
{
    return (call->extra.k != NULL) + (ptrdiff_t)call->extra.zero;
}

static inline ptrdiff_t mhai_sequence(const mhai_call *call, ptrdiff_t b)
{
    return call->sequences ? (ptrdiff_t)call->sequences[b] : b;
}

/* Is row i one of those to compute in this call? */
static inline bool mhai_row_wanted(const mhai_call *call, ptrdiff_t i)
{
    return call->row_last == 0 || (i >= call->row_first && i < call->row_last);
}

/* One batch of a call: its true lengths, where its rows start, and the position of query 0. */
typedef struct mhai_batch {
    ptrdiff_t b;
    ptrdiff_t queries, keys;
    ptrdiff_t q_first, k_first; /* first row in a packed view, else 0 */
    ptrdiff_t offset;
} mhai_batch;

mhai_batch mhai_batch_of(const mhai_call *call, ptrdiff_t b);

/* Element index of (b, h, i, 0). A packed view has no batch axis; its batch starts at row
 * `first`. */
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

/* Dropout of a call: how many of 65536 weights are dropped (0 without dropout), and the factor for
 * those that are kept. */
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

/* Which weights dropout keeps: of row i, keys [block * MHAK_BLOCK, (block + 1) * MHAK_BLOCK). */
void mhai_drop_bits(const mhak_table *kernels, const mhai_call *call, const mhak_drop *drop,
                    ptrdiff_t i, ptrdiff_t block, uint32_t keep[MHAK_WORDS]);

/* Does dropout keep the weight that it counts as row i and key j? In plain C; gives what the
 * kernels' drop_bits gives. */
bool mhai_drop_keeps(const mhak_drop *drop, ptrdiff_t i, ptrdiff_t j);

/* Does dropout keep a weight of the call? As mhai_drop_bits(). */
static inline bool mhai_call_keeps(const mhai_call *call, const mhak_drop *drop, ptrdiff_t i,
                                   ptrdiff_t j)
{
    const int64_t *const first = call->options.dropout_first;
    return mhai_drop_keeps(drop, i + (ptrdiff_t)first[2], j + (ptrdiff_t)first[3]);
}

/* Is the mean of the weights over the heads requested? */
static inline bool mhai_averages(const mhai_call *call)
{
    return (call->options.flags & MHA_AVERAGE_WEIGHTS) != 0;
}

/* Scores are multiplied by this before they are summed over `heads`, so that a sum of finite ones
 * is finite. A power of two: the mean has the same bits. Weights, which are at most 1, need none.
 */
static inline double mhai_mean_scale(const mhai_call *call, ptrdiff_t heads)
{
    double scale = 1;
    while (call->options.weights_mode != MHA_WEIGHTS_SOFTMAX && scale * (double)heads > 1)
        scale /= 2;
    return scale;
}

/* sum * factor where rounding alone could make a finite sum infinite, beyond `most`. */
static inline double mhai_mean(double sum, double factor, double most)
{
    const double mean = sum * factor;
    if (sum - sum != 0) /* infinite, or not a number */
        return sum;
    return mean > most ? most : mean < -most ? -most : mean;
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

/* mha_dtype_size() of a known type, inlined, since it is needed for every row. */
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
 * Copies a caller's struct, whose first field is its size, into `full`; fields that it does not
 * have become 0. Returns false if the size belongs to no version of the struct: it is below
 * `least`, it ends inside a field, or bytes after the `known` ones are not 0.
 */
bool mhai_struct_read(const void *given, void *full, size_t least, size_t known);

/* Reads the caller's options; NULL gives the defaults. */
mha_status mhai_options_read(const mha_options *options, mha_options *full);

/* Put the tensors into a call. */
void mhai_set_views(mhai_call *call, mha_view q, mha_view k, mha_view v, mha_out o);

/* Fill in G, Dv and the default scale, and check everything that does not need the data. */
mha_status mhai_check_problem(const mha_shape *shape, mhai_call *call);

/* Check the arrays of the options: lengths, starts, positions, chosen heads and rows. */
mha_status mhai_check_lists(const mhai_call *call);

/* The same, and the pointers, strides and overlaps of everything in a completed call. */
mha_status mhai_check_data(const mhai_call *call, const void *work, size_t work_size);

/* Is this one of the values of mha_arithmetic? `where` names the struct for the message. */
mha_status mhai_check_arithmetic(const mha_options *message, const char *where,
                                 mha_arithmetic arithmetic);

/* Writes the message, if the caller has given room for one; returns status. */
mha_status mhai_fail(const mha_options *options, mha_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for calls whose message is not in options; message may be NULL. */
mha_status mhai_fail_to(char *message, size_t size, mha_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ----------------------------------------------------------------- masks ----- */

/* One query row of a task: its head, its index, the keys [first, last) that causal, window and
 * lengths leave it, and for returned weights its row in the output. */
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
 * Finds the keys of the block that starts at key `base` which the rows see. Sets [*first, *last) to
 * the smallest range, relative to base, that holds every visible key.
 *
 * MHAI_ALL: each row sees all of that range, whose ends are multiples of `vector`; keep is not
 * written. MHAI_SOME: keep holds MHAK_WORDS words per row. MHAI_NONE: no row sees any key.
 */
mhai_cover mhai_mask_block(const mhai_call *call, const mhak_table *kernels,
                           const mhai_batch *batch, const mhai_row *rows, int count, ptrdiff_t base,
                           uint32_t *keep, int *first, int *last);

/* Keep bits of one row: 1 for keys [first, last) of the block, else 0. */
void mhai_keep_range(uint32_t *keep, ptrdiff_t first, ptrdiff_t last);

/* ---------------------------------------------------------- the machine ----- */

/* The table that MHA_ISA names, or the best one that this CPU can run. */
mha_status mhai_kernels(const mhak_table **kernels);
/* The same with the kernels of native arithmetic beside it, whose `base` it is. */
mha_status mhai_native(const mhak_native **native);
/* Both, with a message on failure. */
mha_status mhai_kernels_for(const mha_options *message, const mhak_table **kernels);
mha_status mhai_native_for(const mha_options *message, const mhak_native **native);
/* Can this CPU run the tables of that name? */
bool mhai_cpu_runs(const char *isa);
/* The number of CPUs that this process may use, at least 1. */
int mhai_cpu_count(void);

/* What CPUs of AArch64 may have beside NEON: products of bytes, and of bfloat16. Only there. */
bool mhai_cpu_has_arm_dot(void);
bool mhai_cpu_has_arm_bf16(void);

/* The pool, or NULL where a run of about so many multiplications and additions, and 8 for each
 * weight or key that is read, is too short to hand out. An executor decides for itself. */
mha_pool *mhai_pool_worth(mha_pool *pool, double operations);

/* Can it also run product_digits of this table, which needs more than the rest of AVX-512? */
bool mhai_cpu_has_dot(const char *isa);

/* Are products with weights of block types made of whole numbers? */
static inline bool mhai_has_digits(const mhak_table *kernels)
{
    return kernels->digits_rows && mhai_cpu_has_dot(kernels->name);
}

#endif
