/* SPDX-License-Identifier: MIT */
/* A task of the operator and its steps: attention.c, and few_rows.c for few rows. */
#ifndef MHAI_TASK_H
#define MHAI_TASK_H

#include "core/tile.h"

/*
 * How values are read. A masked value must not affect the output, but p = 0 times NaN is NaN. So
 * where a row comes out not finite, its task is repeated with MHAI_VALUES_PER_ROW: each row with
 * its masked values replaced by 0. For finite values both give the same bits, since acc + 0 * v =
 * acc. MHAI_VALUES_SKIPPED computes m and l only.
 */
typedef enum { MHAI_VALUES_SHARED, MHAI_VALUES_PER_ROW, MHAI_VALUES_SKIPPED } mhai_value_mode;

typedef struct mhai_task {
    mhai_worker worker;
    const mhai_run *run;
    ptrdiff_t h, heads;            /* query heads [h, h + heads) */
    ptrdiff_t i, rows;             /* query rows [i, i + rows) of each */
    ptrdiff_t split;               /* the only split to compute, or -1 for all */
    ptrdiff_t first, last;         /* keys that any row may see */
    ptrdiff_t all_first, all_last; /* keys that every row sees */
    bool same_keys;                /* every row sees exactly these, and no other */
    bool adds_mask;                /* may tiles add the additive mask while they fold? */
    bool some_masked;              /* has a tile had both visible and masked keys? */
} mhai_task;

/* Some rows and one block of keys: cover says what they see of keys [first, last). With `added`
 * the additive mask is neither in the cover nor in the scores: fold adds it, and says in `hidden`
 * whether it masks any of the keys. */
typedef struct mhai_tile {
    mhai_block *block;
    int row, count;
    int first, last;
    mhai_cover cover;
    bool added, hidden;
} mhai_tile;

/* Are there both visible and masked keys in a tile that is folded? */
static inline bool mhai_tile_masked(const mhai_tile *t)
{
    return t->cover == MHAI_SOME || t->hidden;
}

/* The steps of one tile: prepare rows for their first key of a split; find what they see; compute
 * scores into scratch->s; turn them into p and add them to the softmax in `state`; add p . v. */
void mhai_tile_begin(const mhai_task *task, int row, int count, const mhai_state *state,
                     mhai_value_mode mode);
void mhai_tile_cover(const mhai_task *task, mhai_tile *t);
void mhai_tile_scores(const mhai_task *task, const mhai_tile *t);
void mhai_tile_fold(const mhai_task *task, mhai_tile *t, const mhai_state *state);
void mhai_tile_values(mhai_task *task, const mhai_tile *t, const mhai_state *state,
                      mhai_value_mode mode);

/* How many splits, from key `at` on, few rows go through in one pass; 0 where there are too many or
 * too few rows or keys. Then keys [first, last) of these splits, the first split into states[0] and
 * so on. */
ptrdiff_t mhai_few_splits(const mhai_task *task, ptrdiff_t at);
void mhai_run_few(mhai_task *task, ptrdiff_t first, ptrdiff_t last, const mhai_state *states,
                  mhai_value_mode mode);

#endif
