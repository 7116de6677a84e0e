/* SPDX-License-Identifier: MIT */
/*
 * Few rows, as in decoding: nearly all time is spent waiting for memory, which is fastest in long
 * streams without interruption. So the scores of all blocks of some splits are computed first, then
 * their softmax, then their values, and whole consecutive blocks go into one call of a kernel. The
 * code between two calls looks small, but its structs have left the L1 cache, and while it waits
 * for them no keys are read.
 */
#include "core/task.h"

enum { SPLIT_BLOCKS = MHAI_SPLIT / MHAK_BLOCK, FEW_BLOCKS = MHAI_FEW_SPLITS * SPLIT_BLOCKS };

/* Few rows and the blocks of some splits. */
typedef struct few {
    const mhai_scratch *all; /* with room for the scores of all tiles: [tile][row] */
    mhai_scratch scratch;    /* the same, set to the part of one tile after another */
    mhai_block blocks[FEW_BLOCKS];
    mhai_tile tiles[FEW_BLOCKS];
    int used;
} few;

ptrdiff_t mhai_few_splits(const mhai_task *task, ptrdiff_t at)
{
    const mhai_worker *const worker = &task->worker;
    const mha_plan *const plan = worker->plan;
    const ptrdiff_t left = mhai_ceil_div(task->last, MHAI_SPLIT) - at / MHAI_SPLIT;
    if (!mhai_keys_in_place(plan, worker->count) || task->last - at <= MHAK_BLOCK)
        return 0;
    const ptrdiff_t room =
        mhai_min(plan->score_rows / SPLIT_BLOCKS, plan->task_rows) / worker->count;
    return mhai_min(mhai_min(left, room), MHAI_FEW_SPLITS);
}

/* Will all rows read all keys of the next block? */
static bool next_is_read(const mhai_task *task, ptrdiff_t base, ptrdiff_t last)
{
    const ptrdiff_t next = base + MHAK_BLOCK;
    return next < last && task->all_first <= next && next + MHAK_BLOCK <= task->all_last;
}

/* Sets the scratch to tile n: its part of the room for scores. */
static mhai_tile *take_tile(few *x, int n)
{
    const int count = x->tiles[n].count;
    x->scratch.s = x->all->s + (ptrdiff_t)n * count * MHAK_BLOCK;
    x->scratch.keep = x->all->keep + (ptrdiff_t)n * count * MHAK_WORDS;
    x->scratch.alpha = x->all->alpha + (ptrdiff_t)n * count;
    return &x->tiles[n];
}

/* Adds a block, and finds what the rows see of it. */
static void add_tile(const mhai_task *task, few *x, ptrdiff_t base, ptrdiff_t last)
{
    const int n = x->used++;
    x->blocks[n] = mhai_block_at(&task->worker, base);
    x->blocks[n].next_is_read = next_is_read(task, base, last);
    x->tiles[n] = (mhai_tile){.block = &x->blocks[n], .count = task->worker.count};
    take_tile(x, n);
    mhai_prefetch_masks(&task->worker, task->worker.count, base);
    mhai_tile_cover(task, &x->tiles[n]);
}

/* Do the visible keys reach from the first to the last key of the block? */
static bool whole(const mhai_tile *t)
{
    return t->cover != MHAI_NONE && t->first == 0 && t->last == MHAK_BLOCK;
}

static ptrdiff_t split_of(const mhai_block *block)
{
    return block->base / MHAI_SPLIT;
}

/* The end of a run of whole tiles from n on; of one split only, if requested. */
static int run_end(const few *x, int n, bool one_split)
{
    const ptrdiff_t split = split_of(&x->blocks[n]);
    while (n < x->used && whole(&x->tiles[n]) && (!one_split || split_of(&x->blocks[n]) == split))
        n++;
    return n;
}

/* The scores of whole consecutive tiles. */
static void scores_together(const mhai_task *task, few *x)
{
    for (int n = 0; n < x->used; n++) {
        const int end = run_end(x, n, false);
        if (end == n)
            continue;
        take_tile(x, n);
        mhai_score_blocks(&task->worker, &x->blocks[n], end - n);
        n = end; /* this tile is not whole, or does not exist */
    }
}

static void all_scores(const mhai_task *task, few *x)
{
    if (mhai_can_score_blocks(&task->worker))
        scores_together(task, x);
    for (int n = 0; n < x->used; n++) {
        mhai_tile_scores(task, take_tile(x, n));
        mhai_block_leave(&task->worker, &x->blocks[n]);
    }
}

/* p . v of tile n and those that can be taken with it. Returns the next tile. */
static int add_values(mhai_task *task, few *x, int n, const mhai_state *state, mhai_value_mode mode)
{
    const mhai_worker *const worker = &task->worker;
    const bool together = mode == MHAI_VALUES_SHARED && mhai_can_add_blocks(worker);
    const int end = together ? run_end(x, n, true) : n;
    const mhai_tile *const t = take_tile(x, n);
    if (end == n) {
        mhai_tile_values(task, t, state, mode);
        return n + 1;
    }
    mhai_add_blocks(worker, t->block, end - n, state->o);
    for (; n < end; n++)
        task->some_masked |= mhai_tile_masked(&x->tiles[n]);
    return end;
}

void mhai_run_few(mhai_task *task, ptrdiff_t first, ptrdiff_t last, const mhai_state *states,
                  mhai_value_mode mode)
{
    mhai_worker *const worker = &task->worker;
    const ptrdiff_t split = first / MHAI_SPLIT;
    few x = {.all = worker->scratch, .scratch = *worker->scratch};
    for (ptrdiff_t n = 0; n < mhai_ceil_div(last, MHAI_SPLIT) - split; n++)
        mhai_tile_begin(task, 0, worker->count, &states[n], mode);
    worker->scratch = &x.scratch;
    for (ptrdiff_t base = first / MHAK_BLOCK * MHAK_BLOCK; base < last; base += MHAK_BLOCK)
        add_tile(task, &x, base, last);
    all_scores(task, &x);
    for (int n = 0; n < x.used; n++)
        mhai_tile_fold(task, take_tile(&x, n), &states[split_of(&x.blocks[n]) - split]);
    for (int n = 0; n < x.used;)
        n = add_values(task, &x, n, &states[split_of(&x.blocks[n]) - split], mode);
    worker->scratch = x.all;
}
