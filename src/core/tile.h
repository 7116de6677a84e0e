/* SPDX-License-Identifier: MIT */
/*
 * Inside a task: a worker, a block of keys, and the steps that turn queries into scores (tile.c),
 * scores into sums of values (values.c) and sums into output (output.c), with returned weights
 * (weights_one_pass.c) and prefetching (prefetch.c) beside them.
 */
#ifndef MHAI_TILE_H
#define MHAI_TILE_H

#include "core/plan.h"

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

#endif
