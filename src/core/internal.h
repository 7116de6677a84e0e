/* SPDX-License-Identifier: MIT */
/*
 * What the files of the core share. Who calls whom:
 *
 *      api.c ----> check.c      every argument is checked there, once; below only asserts
 *        |-------> plan.c       tiles and workspace
 *        `-------> run.c        task list -> workers
 *                    |--> attention.c    one task: rows x keys, online softmax
 *                    |--> weights_second_pass.c      returned weights, after the rows are done, or
 * alone
 *                    `--> reference.c    the f64 path, plain C
 *      weights_alone.c ----> run.c   weights without output
 *      attention.c, weights_second_pass.c ----> tile.c (scores of one tile) ----> mask.c, kernels/
 *
 *      layer.c ----> linear.c, gemm.c    projections             linear.h
 *        |---------> rope.c              norm and rotation       rope.h
 *        |---------> cache*.c            keys and values kept    cache.h
 *        `---------> run.c               the operator, as above
 */
#ifndef MHAI_INTERNAL_H
#define MHAI_INTERNAL_H

#include <mha/mha.h>

#include <stdbool.h>
#include <stdint.h>

#include "core/kernels/kernels.h"

enum {
    MHAI_ALIGN = 64, /* alignment of every block carved out of a workspace */
    MHAI_SPLIT =
        1024, /* keys of one partial softmax; a multiple of MHAK_BLOCK. Bits depend on it */
    MHAI_TASK_ROWS = 1040, /* most query rows one task works on */
    MHAI_FEW_SPLITS = 4    /* splits that few rows go through together */
};

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

/* ------------------------------------------------------------- workspace ----- */

/* Carves aligned blocks out of a buffer, or with base NULL only counts their bytes. */
typedef struct mhai_work {
    char *base;
    size_t used;
} mhai_work;

void *mhai_work_take(mhai_work *work, size_t count, size_t size);

/* Softmax state of the rows of a task: m, l and o as in kernels.h. */
typedef struct mhai_state {
    float *m, *l, *o;
    bool *seen; /* has the row been given any key? */
} mhai_state;

/* Statistics of one row under way, beside its sums. */
typedef struct mhai_statistics_state {
    float near[3];    /* scores of the keys before, at and behind its position; -inf: not seen */
    float first_base; /* of the sum of the first keys */
    double first;     /* sum of exp(score - first_base) of the first keys */
} mhai_statistics_state;

/* What statistics need of a worker's scratch. */
typedef struct mhai_statistics_scratch {
    mhai_statistics_state *rows;
    float *sums, *base, *best; /* as in mhak_statistics */
    int64_t *best_key, *anchor;
    float *top_scores; /* [rows][top, rounded up to whole vectors], the largest first */
    int32_t *top_keys;
    float *held;  /* [rows][column_blocks][MHAK_BLOCK]: p of all keys, for columns */
    float *bases; /* [rows][column_blocks]: the m that p belongs to; -inf: none */
} mhai_statistics_scratch;

/* Scores of a task's rows, where weights are made of them (weights_one_pass.c). */
typedef struct mhai_one_pass {
    ptrdiff_t blocks; /* of keys */
    float *scores;    /* [rows][blocks][MHAK_BLOCK] */
    uint32_t *keep;   /* [rows][blocks][MHAK_WORDS]: keys that are seen */
    float *sums;      /* for their mean, [rows][blocks][MHAK_BLOCK]: weights of the heads so far */
} mhai_one_pass;

/* What one worker owns while it runs tasks of the fast path. */
typedef struct mhai_scratch {
    mhai_row *rows;
    float *q;               /* [rows][ldq], scaled */
    mhai_state total, part; /* part is used once there is more than one split */
    float *alpha;
    float *s; /* [score_rows][MHAK_BLOCK] */
    uint32_t *keep;
    float *k_panels; /* of a block of keys; for columns, whose tasks have few rows, of all blocks */
    uint32_t *k_packed; /* for columns: packed_panels of each block of keys */
    float *v_panels;
    float *sum;   /* averaged weights: [row_tile][MHAK_BLOCK] */
    float *stats; /* weights alone: [H][row_tile][2], as in mhai_shared */
    mhai_statistics_scratch statistics;
    mhai_one_pass one_pass;
} mhai_scratch;

/* ------------------------------------------------------------------ plan ----- */

struct mha_plan {
    mha_shape shape;
    const mhak_table *kernels; /* NULL: the f64 reference path */
    bool empty;                /* no output to compute: B, H, L or D is 0 */
    bool weights;              /* returned weights are foreseen */
    bool softmax_weights;      /* of mode SOFTMAX: the rows' sums are kept */
    bool one_pass;             /* and made of the scores of the pass itself */
    bool one_pass_mean;        /* and averaged there: all heads of some rows are one task */
    bool lse;                  /* log-sum-exp is foreseen */
    bool only_weights;         /* there is no output */
    bool statistics, columns;  /* statistics are, and what keys receive */
    bool row_statistics;       /* room for those of rows, where the caller gives none */
    ptrdiff_t top;             /* of the largest weights of a row */
    ptrdiff_t column_blocks;   /* for columns: most blocks of keys that the rows of a task see */
    bool edge;                 /* a causal or window edge runs through tiles */
    int row_tile;              /* rows of one tile of scores */
    int score_rows;            /* room for rows of scores: a tile, or all tiles of some splits */
    int task_rows;             /* most rows of one task */
    ptrdiff_t ldq, ldo;        /* floats a row of q and o in the workspace */
};

/* How the work is cut for a number of threads. Never changes a bit of the result. */
typedef struct mhai_tiling {
    ptrdiff_t heads, rows; /* most heads of one group, and rows of each, in one task */
    ptrdiff_t head_chunks, row_chunks;
    ptrdiff_t splits;    /* > 1: keys are cut as well, and partial results merged */
    ptrdiff_t row_tasks; /* tasks if keys are not cut; in all, row_tasks * splits */
    int threads;
} mhai_tiling;

/* Fill in a plan for a checked problem; kernels NULL: the f64 path. */
void mhai_plan_fill(mha_plan *plan, const mhai_call *call, const mhak_table *kernels);

mhai_tiling mhai_plan_tiling(const mha_plan *plan, int threads);

/* Most splits of the keys that tilings of this plan come to at any smaller S. */
ptrdiff_t mhai_plan_most_splits(const mha_plan *plan, int threads);

/* With so few rows in a task, are K and V read where they lie instead of packed to panels? */
bool mhai_keys_in_place(const mha_plan *plan, ptrdiff_t rows);
bool mhai_values_in_place(const mha_plan *plan, ptrdiff_t rows);

/* Carve one worker's scratch; with work->base NULL only count. */
mhai_scratch mhai_scratch_take(const mha_plan *plan, mhai_work *work);
mhai_statistics_scratch mhai_statistics_take(const mha_plan *plan, mhai_work *work);

/* Most blocks of keys that the rows of a task of this call see. */
ptrdiff_t mhai_statistics_blocks(const mhai_call *call);

/* Can weights be made in the pass? Room for that. */
bool mhai_one_pass_possible(const mhai_call *call);
mhai_one_pass mhai_one_pass_take(const mha_plan *plan, mhai_work *work);

/* The parts of a workspace that all workers share. */
typedef struct mhai_shared {
    float *stats;             /* [B][H][L][2]: m and 1/l of each row, for returned weights */
    mhai_state part;          /* [split][B][H][L]: partial results, when keys are cut */
    mha_row_statistics *rows; /* [B][H][L], the caller's or ours */
} mhai_shared;

mhai_shared mhai_shared_take(const mha_plan *plan, const mhai_tiling *tiling, mhai_work *work);

/* --------------------------------------------------------------- running ----- */

/* A run under way. Workers only read it. */
typedef struct mhai_run {
    const mha_plan *plan;
    const mhai_call *call;
    mhai_tiling tiling;
    mhai_shared shared;
    char *scratches; /* the workers' parts of the workspace, scratch_size bytes each */
    size_t scratch_size;
} mhai_run;

/* Bytes of workspace for a number of threads, alignment included. */
size_t mhai_run_work_size(const mha_plan *plan, int threads);

/* The same for a plan of the fast path at its own S or any smaller one. */
size_t mhai_run_work_bound(const mha_plan *plan, int threads);

/* Do the work of a checked call. */
void mhai_run_all(const mha_plan *plan, const mhai_call *call, void *work, mha_pool *pool);

/* Dropout of a batch and head. */
mhak_drop mhai_drop_of(const mhai_call *call, ptrdiff_t b, ptrdiff_t h);

/* One task of rows x keys (attention.c), with the worker's scratch. */
void mhai_attention_task(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number);

/* Merge the partial results of one row chunk, where keys were cut. */
void mhai_attention_heads(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number);
void mhai_merge_task(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number);

/* Returned weights: how many tasks, and one of them. */
ptrdiff_t mhai_weights_tasks(const mhai_run *run);
void mhai_weights_task(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number);

/* The f64 path (reference.c): bytes of scratch a worker needs; one row of output and log-sum-exp;
 * one row of returned weights. Tasks count as in [B][H][L] and [B][heads or 1][rows]. */
size_t mhai_reference_scratch(const mha_shape *shape);
void mhai_reference_row(const mhai_call *call, ptrdiff_t task, void *scratch,
                        mha_row_statistics *rows);
void mhai_reference_columns(const mhai_call *call, ptrdiff_t task, void *scratch);
void mhai_reference_weights(const mhai_call *call, ptrdiff_t task, void *scratch);

/* "MHA_F32", for messages. */
const char *mhai_dtype_name(mha_dtype dtype);

/* One element of any storage type, as double and back (rounded to nearest even). */
double mhai_element_read(const void *data, mha_dtype type, ptrdiff_t index);
void mhai_element_write(void *data, mha_dtype type, ptrdiff_t index, double x);

/*
 * A row as i8: number = stored * scale. Returns the scale, max|x| / 127: 0 for a row of zeros, NaN
 * (and zeros stored) where any x is not finite, so that the damage shows.
 */
float mhai_quantize_row(const float *x, ptrdiff_t count, int8_t *stored);

/* to[n * to_step] = from[n * from_step] for n < count; steps count elements of `type`. */
void mhai_copy_strided(mha_dtype type, void *to, ptrdiff_t to_step, const void *from,
                       ptrdiff_t from_step, ptrdiff_t count);

/* ------------------------------------------------------------------ tile ----- */

/* A block of keys for the rows of a task, packed as far as tiles have asked for it. */
typedef struct mhai_block {
    ptrdiff_t base;         /* its first key */
    int keys;               /* how many there are, up to MHAK_BLOCK */
    const void *k, *v;      /* row 0 of the block, in storage; not used with a cache */
    float *panels;          /* of its K */
    uint32_t packed_panels; /* bit p: panel p of K (of a cache: group p) lies there */
    bool reuse_panel;       /* one tile only: every panel may use the same cache-warm place */
    int v_first, v_last;    /* rows of V that lie in scratch->v_panels */
    bool next_is_read;      /* will all keys of the block behind it be read next? */
    bool scored;            /* mhai_scores finds its work done */
} mhai_block;

/* Rows that will be read soon, to be asked for in small portions while others are computed: what
 * comes from memory is waited for otherwise, and of a burst of requests most would be dropped. */
enum { MHAI_PREFETCH_HEAD = 3, MHAI_PREFETCH_MASKS = 4, MHAI_PREFETCH_STREAMS = 7 };

typedef struct mhai_prefetch {
    bool any;
    mhak_prefetch
        rows[MHAI_PREFETCH_STREAMS]; /* q, k and v of the next short head; masks of the next tile */
    int portion[MHAI_PREFETCH_STREAMS];
} mhai_prefetch;

/* A worker at a task: everything the functions below need. */
typedef struct mhai_worker {
    const mha_plan *plan;
    const mhai_call *call;
    const mhai_scratch *scratch;
    mhai_batch batch;
    ptrdiff_t g;             /* key/value head */
    int count;               /* rows in scratch->rows and scratch->q */
    mhai_prefetch *prefetch; /* NULL: nothing */
    bool lasting_panels;     /* of K, for all tasks of one head: k_packed tells which are there */
} mhai_worker;

/* m and 1/l of the rows in scratch, [count][2], as a task finds them (attention.c). Their ranges
 * and queries must be there. */
void mhai_attention_sums(const mhai_worker *worker, float *stats);

/*
 * Values as the kernels take them: runs of rows that lie together. One for a view, one a piece for
 * a cache. Row j of the run is row `at` + j of the block.
 */
typedef struct mhai_values {
    const void *rows;
    ptrdiff_t stride;
    int at, count;
    const float *scales; /* i8 only */
} mhai_values;

/* Run n of a block; false behind the last. */
bool mhai_values_of(const mhai_worker *worker, const mhai_block *block, int n, mhai_values *run);

/* The score of a row, in scratch->q, with extra key number n; before or after the soft cap. */
float mhai_extra_score(const mhai_worker *worker, int row, int n, bool capped);

/* How many of `count` rows follow each other in one head. */
int mhai_consecutive_rows(const mhai_row *rows, int count);

/* Copy the queries of rows [row, row + count), scaled, into scratch->q. */
void mhai_load_queries(const mhai_worker *worker, int row, int count);

/* A block, and what is to be remembered of it when all tiles are done. */
mhai_block mhai_block_at(const mhai_worker *worker, ptrdiff_t base);
void mhai_block_leave(const mhai_worker *worker, const mhai_block *block);

/* One tile's p . v: rows [row, row + count) with keys [first, last) of a block. */
typedef struct mhai_pv {
    int row, count, first, last;
    const uint32_t *keep; /* of the rows' keys; NULL: all of them are seen */
    bool per_row;         /* each row with its masked values as 0 */
} mhai_pv;

/* o = alpha * o + p . v, with p in scratch->s, which dropout and the scales of i8 change first. */
void mhai_add_values(const mhai_worker *worker, mhai_block *block, const mhai_pv *x, float *o);

/* The same for few rows and `count` whole blocks of one split, one behind the other, whose p and
 * alpha lie so too: [block][row]. May they be taken so, and does it pay? Dropout and modes of
 * heads want them one by one; pieces of a cache that hold f16, bf16 or i8 are too short to pay. */
bool mhai_can_add_blocks(const mhai_worker *worker);
void mhai_add_blocks(const mhai_worker *worker, const mhai_block *blocks, int count, float *o);

/* `count` rows of a tensor, from `row` on, as something to ask for while other work is done. */
mhak_prefetch mhai_prefetch_rows(const void *row, mha_dtype type, ptrdiff_t stride, ptrdiff_t width,
                                 int count);

/* Ask for the next portion; NULL: nothing comes. */
void mhai_prefetch_next(mhai_prefetch *prefetch);

/* The masks of the tile that begins at `row` come next, or behind the last row those of the first
 * tile with the next block of keys. */
void mhai_prefetch_masks(const mhai_worker *worker, int row, ptrdiff_t base);

/* Is each task a head of its own, and are there so many that they come from memory? Then one that
 * is to come: its rows [i, i + rows) of head h, while a task of `count` rows computes. */
bool mhai_short_heads(const mhai_run *run);
void mhai_prefetch_head(mhai_prefetch *prefetch, const mhai_worker *next, ptrdiff_t h, ptrdiff_t i,
                        ptrdiff_t rows, int count);

/* Scores q.k of rows [row, row + count) and keys [first, last) of the block, into scratch->s. */
void mhai_scores(const mhai_worker *worker, mhai_block *block, int row, int count, int first,
                 int last);

/* The same for few rows and `count` whole blocks, one behind the other, into [block][row]. Does it
 * pay? Not with modes of heads, some of which look at no key, nor in a cache, but for f32. */
bool mhai_can_score_blocks(const mhai_worker *worker);
void mhai_score_blocks(const mhai_worker *worker, mhai_block *blocks, int count);

/* Soft cap, then bias, additive mask and ALiBi, on what mhai_scores left. */
void mhai_scores_cap(const mhai_worker *worker, int count, int first, int last);
void mhai_scores_bias(const mhai_worker *worker, const mhai_block *block, int row, int count,
                      int first, int last);

/* All of that: scores as the softmax takes them. 0 in heads that are not normal. */
void mhai_scores_final(const mhai_worker *worker, mhai_block *block, int row, int count, int first,
                       int last);

/* The rows of a task with all their keys in `state`, which may be changed: to where they belong
 * (output.c). */
void mhai_store_rows(const mhai_run *run, const mhai_worker *worker, const mhai_state *state);

/* m and 1/l of such a row, as in mhai_shared. */
void mhai_close_sums(const mhai_worker *worker, const mhai_state *state, int r, float *stats);

/* Weights in the pass, where plan->one_pass says so (weights_one_pass.c). Nothing is held of a
 * task's rows yet; where a tile's scores go when they become p (false: nowhere); weights of a tile
 * whose p are final, and of row r when its sums are known, to where they belong. */
void mhai_one_pass_begin(const mhai_worker *worker);
bool mhai_one_pass_hold(const mhai_worker *worker, ptrdiff_t base, int row, int count, int first,
                        int last, const uint32_t *keep, mhak_hold *hold);
void mhai_one_pass_store_tile(const mhai_worker *worker, int row, int count, int first, int last,
                              const uint32_t *keep, const float *l);
void mhai_one_pass_store_row(const mhai_worker *worker, int r, float m, float inverse);

/* ---------------------------------------------------------- the machine ----- */

/* At least `bytes` bytes aligned to MHAI_ALIGN, for free(); something even for 0. Much memory is
 * asked for in large pages, where the system has them: it is read from end to end. */
void *mhai_memory_take(size_t bytes);

/* The table MHA_ISA asks for, or the best this CPU can run. */
mha_status mhai_kernels(const mhak_table **kernels);
/* The same, with a message where it fails. */
mha_status mhai_kernels_for(const mha_options *message, const mhak_table **kernels);
/* Can this CPU run the table of that name? */
bool mhai_cpu_runs(const char *isa);

/* Call work(arg, index) for index in [0, workers) on the pool's threads; NULL pool: here. */
void mhai_pool_run(mha_pool *pool, int workers, void (*work)(void *arg, int index), void *arg);

#endif
