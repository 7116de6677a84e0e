/* SPDX-License-Identifier: MIT */
/*
 * Inside a task: a worker, a block of keys, and the steps that turn queries into scores (tile.c),
 * scores into sums of values (values.c) and sums into output (output.c), with returned weights
 * (weights_one_pass.c) and prefetching (prefetch.c) beside them.
 */
#ifndef MHAI_TILE_H
#define MHAI_TILE_H

#include "core/plan.h"

/* A block of keys for the rows of a task. Its panels are packed when a tile first needs them. */
typedef struct mhai_block {
    ptrdiff_t base;         /* its first key */
    int keys;               /* how many there are, up to MHAK_BLOCK */
    const void *k, *v;      /* row 0 of the block, in storage; not used with a cache */
    float *panels;          /* of its K */
    uint32_t packed_panels; /* bit p: panel p of K (of a cache: group p) is packed */
    bool reuse_panel;    /* one tile only: all panels may share one place, which stays in cache */
    int v_first, v_last; /* rows of V that are in scratch->v_panels */
    bool next_is_read;   /* will all keys of the next block be read next? */
    bool scored;         /* its scores exist already: mhai_scores() returns at once */
} mhai_block;

/* Rows that will be read soon. They are prefetched in small portions while other rows are computed,
 * since the hardware drops most of a burst of requests. */
enum { MHAI_PREFETCH_HEAD = 3, MHAI_PREFETCH_MASKS = 4, MHAI_PREFETCH_STREAMS = 7 };

typedef struct mhai_prefetch {
    bool any;
    mhak_prefetch
        rows[MHAI_PREFETCH_STREAMS]; /* q, k and v of the next short head; masks of the next tile */
    int portion[MHAI_PREFETCH_STREAMS];
} mhai_prefetch;

/* A worker and its task: everything the functions below need. */
typedef struct mhai_worker {
    const mha_plan *plan;
    const mhai_call *call;
    const mhai_scratch *scratch;
    mhai_batch batch;
    ptrdiff_t g;             /* key/value head */
    int count;               /* rows in scratch->rows and scratch->q */
    mhai_prefetch *prefetch; /* NULL: nothing is prefetched */
    bool lasting_panels;     /* panels of K outlast a task: k_packed says which are packed */
} mhai_worker;

/* Computes m and 1/l of the rows in scratch, [count][2], as a task does (attention.c). Their ranges
 * and queries must be in scratch. */
void mhai_attention_sums(const mhai_worker *worker, float *stats);

/*
 * Values as the kernels take them: runs of consecutive rows. A view has one run per block, a cache
 * one per piece. Row j of the run is row `at` + j of the block.
 */
typedef struct mhai_values {
    const void *rows;
    ptrdiff_t stride;
    int at, count;
    const float *scales; /* i8 only */
} mhai_values;

/* Run n of a block; false past the last one. */
bool mhai_values_of(const mhai_worker *worker, const mhai_block *block, int n, mhai_values *run);

/* The score of a row in scratch->q with extra key n, before or after the soft cap. */
float mhai_extra_score(const mhai_worker *worker, int row, int n, bool capped);

/* How many of `count` rows are consecutive rows of one head. */
int mhai_consecutive_rows(const mhai_row *rows, int count);

/* Copies the queries of rows [row, row + count), scaled, into scratch->q. */
void mhai_load_queries(const mhai_worker *worker, int row, int count);

/* Begins a block; and remembers its packed panels when all tiles are done. */
mhai_block mhai_block_at(const mhai_worker *worker, ptrdiff_t base);
void mhai_block_leave(const mhai_worker *worker, const mhai_block *block);

/* One tile's p . v: rows [row, row + count) with keys [first, last) of a block. */
typedef struct mhai_pv {
    int row, count, first, last;
    const uint32_t *keep; /* keep bits of the rows; NULL: all keys are seen */
    bool per_row;         /* row by row, with masked values replaced by 0 */
} mhai_pv;

/* o = alpha * o + p . v with p in scratch->s, to which dropout and the scales of i8 are applied
 * first. */
void mhai_add_values(const mhai_worker *worker, mhai_block *block, const mhai_pv *x, float *o);

/* The same for few rows and `count` whole consecutive blocks of one split, whose p and alpha lie as
 * [block][row]. mhai_can_add_blocks() says whether that is possible and pays: dropout and head
 * modes work block by block, and pieces of a cache that hold f16, bf16 or i8 are too short. */
bool mhai_can_add_blocks(const mhai_worker *worker);
void mhai_add_blocks(const mhai_worker *worker, const mhai_block *blocks, int count, float *o);

/* `count` rows of a tensor, from `row` on, as something to prefetch. */
mhak_prefetch mhai_prefetch_rows(const void *row, mha_dtype type, ptrdiff_t stride, ptrdiff_t width,
                                 int count);

/* Prefetches the next portion; does nothing for NULL. */
void mhai_prefetch_next(mhai_prefetch *prefetch);

/* Schedules the masks of the tile that begins at `row`; past the last row, those of the first tile
 * with the next block of keys. */
void mhai_prefetch_masks(const mhai_worker *worker, int row, ptrdiff_t base);

/* Is each task a head of its own, and are there so many that they do not stay in a cache? Then the
 * next head is scheduled: rows [i, i + rows) of head h, while a task of `count` rows computes. */
bool mhai_short_heads(const mhai_run *run);
void mhai_prefetch_head(mhai_prefetch *prefetch, const mhai_worker *next, ptrdiff_t h, ptrdiff_t i,
                        ptrdiff_t rows, int count);

/* Scores q.k of rows [row, row + count) and keys [first, last) of the block, into scratch->s. */
void mhai_scores(const mhai_worker *worker, mhai_block *block, int row, int count, int first,
                 int last);

/* The same for few rows and `count` whole consecutive blocks, into [block][row].
 * mhai_can_score_blocks() says whether it pays: not with head modes, some of which read no key, and
 * in a cache only for f32. */
bool mhai_can_score_blocks(const mhai_worker *worker);
void mhai_score_blocks(const mhai_worker *worker, mhai_block *blocks, int count);

/* Soft cap; then bias, additive mask and ALiBi, on the scores that mhai_scores() has left. */
void mhai_scores_cap(const mhai_worker *worker, int count, int first, int last);
void mhai_scores_bias(const mhai_worker *worker, const mhai_block *block, int row, int count,
                      int first, int last);

/* All of these: scores as the softmax takes them. 0 in heads that are not normal. */
void mhai_scores_final(const mhai_worker *worker, mhai_block *block, int row, int count, int first,
                       int last);

/*
 * The same steps in native arithmetic (native_tile.c), where the plan has pairs:
 * mhai_load_queries(), mhai_scores(), mhai_score_blocks(), mhai_add_values() and mhai_add_blocks()
 * call them. Where the p of fold are read as f32 before they are multiplied, for weights,
 * statistics or dropout, they are rounded by mhai_pairs_add_values(); else fold leaves them
 * rounded, and mhai_folds_to_pairs() is true.
 */
void mhai_pairs_queries(const mhai_worker *worker, int row, int count);
void mhai_pairs_scores(const mhai_worker *worker, mhai_block *block, int row, int count, int first,
                       int last);
void mhai_pairs_score_blocks(const mhai_worker *worker, const mhai_block *blocks, int count);
bool mhai_folds_to_pairs(const mhai_worker *worker);
void mhai_pairs_add_values(const mhai_worker *worker, mhai_block *block, const mhai_pv *x,
                           float *o);
void mhai_pairs_add_blocks(const mhai_worker *worker, const mhai_block *blocks, int count,
                           float *o);

/* Writes the rows of a task, all of whose keys are in `state`, to the outputs. `state` may be
 * changed (output.c). */
void mhai_store_rows(const mhai_run *run, const mhai_worker *worker, const mhai_state *state);

/* m and 1/l of such a row, as in mhai_shared. */
void mhai_close_sums(const mhai_worker *worker, const mhai_state *state, int r, float *stats);

/* Weights made in the same pass, if plan->one_pass is set (weights_one_pass.c): begin a task; get
 * the place to which fold copies a tile's scores (false: there is none); store the weights of a
 * tile whose p are final; store those of row r when its sums are known. */
void mhai_one_pass_begin(const mhai_worker *worker);
bool mhai_one_pass_hold(const mhai_worker *worker, ptrdiff_t base, int row, int count, int first,
                        int last, const uint32_t *keep, mhak_hold *hold);
void mhai_one_pass_store_tile(const mhai_worker *worker, int row, int count, int first, int last,
                              const uint32_t *keep, const float *l);
void mhai_one_pass_store_row(const mhai_worker *worker, int r, float m, float inverse);

#endif
