/* SPDX-License-Identifier: MIT */
/*
 * Plans and runs of the operator: what is decided before the data is there (plan.c), the scratch of
 * a worker, and the phases of a run (run.c) with the tasks they consist of.
 */
#ifndef MHAI_PLAN_H
#define MHAI_PLAN_H

#include "core/internal.h"

enum {
    MHAI_TASK_ROWS = 1040, /* most query rows one task works on */
    MHAI_FEW_SPLITS = 4    /* splits that few rows go through in one pass (few_rows.c) */
};

/* --------------------------------------------------------------- scratch ----- */

/* Softmax state of the rows of a task: m, l and o as in kernels.h. */
typedef struct mhai_state {
    float *m, *l, *o;
    bool *seen; /* has the row seen any key? */
} mhai_state;

/* Statistics of one row while its keys are added, beside its sums. */
typedef struct mhai_statistics_state {
    float near[3];    /* scores of the keys before, at and after its position; -inf: not seen */
    float first_base; /* the maximum that the sum of the first keys is relative to */
    double first;     /* sum of exp(score - first_base) of the first keys */
} mhai_statistics_state;

/* The part of a worker's scratch that is for statistics. */
typedef struct mhai_statistics_scratch {
    mhai_statistics_state *rows;
    float *sums, *base, *best; /* as in mhak_statistics */
    int64_t *best_key, *anchor;
    float *top_scores; /* [rows][top, rounded up to whole vectors], the largest first */
    int32_t *top_keys;
    float *held;  /* [rows][column_blocks][MHAK_BLOCK]: p of all keys, for columns */
    float *bases; /* [rows][column_blocks]: the m that p belongs to; -inf: none */
} mhai_statistics_scratch;

/* Scores of a task's rows, held until they become weights (weights_one_pass.c). */
typedef struct mhai_one_pass {
    ptrdiff_t blocks; /* blocks of keys */
    float *scores;    /* [rows][blocks][MHAK_BLOCK] */
    uint32_t *keep;   /* [rows][blocks][MHAK_WORDS]: keys that are seen */
    float *sums;      /* for the mean, [rows][blocks][MHAK_BLOCK]: weights of the heads so far */
} mhai_one_pass;

/* What one worker owns while it runs tasks of the fast path. */
typedef struct mhai_scratch {
    mhai_row *rows;
    float *q;               /* [rows][ldq], scaled */
    mhai_state total, part; /* part is used when there is more than one split */
    float *alpha;
    float *s; /* [score_rows][MHAK_BLOCK] */
    uint32_t *keep;
    float *k_panels;    /* of one block of keys; for columns, whose tasks have few rows, of all */
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
    const mhak_table *kernels;    /* NULL: the f64 reference path */
    bool empty;                   /* there is no output to compute: B, H, L or D is 0 */
    bool weights;                 /* options.weights is given */
    bool softmax_weights;         /* and has mode SOFTMAX: the rows' sums are kept */
    bool one_pass;                /* and is made of the scores of the same pass */
    bool one_pass_mean;           /* and averaged there: all heads of some rows are one task */
    bool lse;                     /* options.lse is given */
    mha_arithmetic arithmetic;    /* that was requested */
    const mhak_pairs *pairs;      /* kernels of native arithmetic; NULL: it is exact */
    const char *arithmetic_words; /* which it is, and why */
    bool only_weights;            /* there is no output */
    bool statistics, columns;     /* options.statistics is given; and with columns */
    bool row_statistics;          /* room for row statistics, where the caller gives none */
    ptrdiff_t top;                /* largest weights listed per row */
    ptrdiff_t column_blocks;      /* for columns: most blocks of keys that the rows of a task see */
    bool edge;                    /* a causal or window edge runs through tiles */
    int row_tile;                 /* rows of one tile of scores */
    int score_rows;               /* room for rows of scores: a tile, or all tiles of some splits */
    int task_rows;                /* most rows of one task */
    ptrdiff_t ldq, ldo;           /* floats per row of q and o in the workspace */
    size_t scratch_size;          /* bytes of one worker's scratch */
};

/* How the work is cut into tasks for a number of threads. This never changes a bit of the
 * result. */
typedef struct mhai_tiling {
    ptrdiff_t heads, rows; /* most heads of one group, and rows of each, in one task */
    ptrdiff_t head_chunks, row_chunks;
    ptrdiff_t splits;    /* > 1: keys are cut too, and partial results merged */
    ptrdiff_t row_tasks; /* tasks if keys are not cut; otherwise there are row_tasks * splits */
    int threads;
} mhai_tiling;

/* Fills in a plan for a checked problem; kernels NULL: the f64 path. */
void mhai_plan_fill(mha_plan *plan, const mhai_call *call, const mhak_table *kernels);

mhai_tiling mhai_plan_tiling(const mha_plan *plan, int threads);

/* The most splits that a tiling of this plan has for any smaller S. */
ptrdiff_t mhai_plan_most_splits(const mha_plan *plan, int threads);

/* With so few rows in a task, are K and V read in place instead of packed into panels? */
bool mhai_keys_in_place(const mha_plan *plan, ptrdiff_t rows);
bool mhai_values_in_place(const mha_plan *plan, ptrdiff_t rows);

/* Carves one worker's scratch; with work->base NULL it only counts. */
mhai_scratch mhai_scratch_take(const mha_plan *plan, mhai_work *work);
mhai_statistics_scratch mhai_statistics_take(const mha_plan *plan, mhai_work *work);

/* Most blocks of keys that the rows of a task of this call see. */
ptrdiff_t mhai_statistics_blocks(const mhai_call *call);

/* The kernels of native arithmetic for a checked problem, or NULL if it is computed exactly; *words
 * says which it is, and why. */
const mhak_pairs *mhai_pairs_of(const mhai_call *call, const char **words);

/* Can weights be made in the same pass as the output? And the scratch for it. */
bool mhai_one_pass_possible(const mhai_call *call);
mhai_one_pass mhai_one_pass_take(const mha_plan *plan, mhai_work *work);

/* The parts of a workspace that all workers share. */
typedef struct mhai_shared {
    float *stats;             /* [B][H][L][2]: m and 1/l of each row, for returned weights */
    mhai_state part;          /* [split][B][H][L]: partial results, when keys are cut */
    mha_row_statistics *rows; /* [B][H][L], the caller's or the library's own */
} mhai_shared;

mhai_shared mhai_shared_take(const mha_plan *plan, const mhai_tiling *tiling, mhai_work *work);

/* --------------------------------------------------------------- running ----- */

/* One run. Workers only read it. */
typedef struct mhai_run {
    const mha_plan *plan;
    const mhai_call *call;
    mhai_tiling tiling;
    mhai_shared shared;
    char *scratches; /* the workers' parts of the workspace, scratch_size bytes each */
    size_t scratch_size;
} mhai_run;

/* Bytes of one worker's scratch: of a plan that is filled in but for this. */
size_t mhai_run_scratch_size(const mha_plan *plan);

/* Bytes of workspace for a number of threads, with room for alignment. */
size_t mhai_run_work_size(const mha_plan *plan, int threads);

/* An upper bound of the same for a plan of the fast path, at its own S or any smaller one. */
size_t mhai_run_work_bound(const mha_plan *plan, int threads);

/* Does the work of a checked call. */
void mhai_run_all(const mha_plan *plan, const mhai_call *call, void *work, mha_pool *pool);

/* One task of rows x keys (attention.c), with the worker's scratch. */
void mhai_attention_task(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number);

/* The same for heads whose keys fit in one block, portions of consecutive tasks at a time
 * (one_block.c): whether the run allows it, the number of portions, and one portion. */
bool mhai_one_block_possible(const mhai_run *run);
ptrdiff_t mhai_one_block_portions(const mhai_run *run);
void mhai_one_block_portion(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number);

/* All rows of some heads in order, for columns; and the merge of the partial results of one chunk
 * of rows, where keys were cut. */
void mhai_attention_heads(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number);
void mhai_merge_task(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number);

/* Returned weights: the number of tasks, and one task. */
ptrdiff_t mhai_weights_tasks(const mhai_run *run);
void mhai_weights_task(const mhai_run *run, const mhai_scratch *scratch, ptrdiff_t number);

/* The f64 path (reference.c): bytes of scratch per worker; one row of output and log-sum-exp; the
 * columns of one head; one row of returned weights. Tasks are numbered as in [B][H][L], [B][H] and
 * [B][heads or 1][rows]. */
size_t mhai_reference_scratch(const mha_shape *shape);
void mhai_reference_row(const mhai_call *call, ptrdiff_t task, void *scratch,
                        mha_row_statistics *rows);
void mhai_reference_columns(const mhai_call *call, ptrdiff_t task, void *scratch);
void mhai_reference_weights(const mhai_call *call, ptrdiff_t task, void *scratch);

#endif
