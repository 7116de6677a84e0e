/* SPDX-License-Identifier: MIT */
/*
 * Norm and rotation of the heads of Q and K, between projection and scores, and their gradients:
 *
 *      forward    norm, then rotation by the token's position
 *      backward   rotation by the negative position, then through the norm
 *
 * A task is a few tokens of one batch. rope.c has both for one head.
 */
#include "core/layer.h"

#include <string.h>

enum { TASK_ROWS = 16, MOST_PAIRS = MHA_MAX_HEAD_WIDTH / 2 };

typedef struct norm_rope {
    const mhai_layer_job *job;
    int which;                   /* MHAI_Q or MHAI_K */
    const mhai_layer_back *back; /* NULL: forward */
} norm_rope;

/* One row of a buffer, as a token of a batch. */
typedef struct token {
    ptrdiff_t number; /* index of the row */
    double position;
    double *d_norm; /* [2][D] sums of the task for weight and bias of the norm; NULL: forward */
} token;

static const mhai_side *side_of(const norm_rope *pass)
{
    return pass->which == MHAI_Q ? &pass->job->queries : &pass->job->keys;
}

static ptrdiff_t heads_of(const norm_rope *pass)
{
    const mha_layer_config *const c = &pass->job->layer->config;
    return pass->which == MHAI_Q ? c->H : c->G;
}

/* Position of the first token of a batch if the caller gives none: after those of the cache, or for
 * queries as the options say. */
static ptrdiff_t first_position(const norm_rope *pass, ptrdiff_t b)
{
    if (pass->job->past)
        return (ptrdiff_t)pass->job->past[b];
    return pass->which == MHAI_Q ? mhai_batch_of(&pass->job->attention, b).offset : 0;
}

/* --------------------------------------------------------------- forward ----- */

static void norm_rope_row(const norm_rope *pass, const token *at)
{
    const mhai_layer_job *const job = pass->job;
    const mha_layer_config *const c = &job->layer->config;
    const ptrdiff_t heads = heads_of(pass), width = mhai_rope_width(&c->rope, c->D);
    float cosines[MOST_PAIRS], sines[MOST_PAIRS];
    if (c->rope.pairs != MHA_ROPE_NONE)
        mhai_rope_table(&c->rope, width, at->position, cosines, sines);
    float *head = job->projected[pass->which] + at->number * job->stride[pass->which];
    if (job->plain[pass->which])
        memcpy(job->plain[pass->which] + at->number * heads * c->D, head,
               sizeof(float) * (size_t)(heads * c->D));
    for (ptrdiff_t h = 0; h < heads; h++, head += c->D) {
        if (c->norm != MHA_NORM_NONE)
            mhai_norm_row(head, c->D, c->norm, c->norm_eps, job->layer->norm[pass->which],
                          job->layer->norm_bias[pass->which]);
        if (c->rope.pairs != MHA_ROPE_NONE)
            mhai_rope_rotate(head, c->rope.pairs, width, cosines, sines);
    }
}

/* -------------------------------------------------------------- backward ----- */

static void norm_rope_row_back(const norm_rope *pass, const token *at)
{
    const mhai_layer_job *const job = pass->job;
    const mha_layer_config *const c = &job->layer->config;
    const ptrdiff_t heads = heads_of(pass), width = mhai_rope_width(&c->rope, c->D);
    float cosines[MOST_PAIRS], sines[MOST_PAIRS];
    if (c->rope.pairs != MHA_ROPE_NONE)
        mhai_rope_table(&c->rope, width, -at->position, cosines, sines);
    float *d_head = pass->back->d_projected[pass->which] + at->number * job->stride[pass->which];
    const float *plain = job->plain[pass->which];
    plain = plain ? plain + at->number * heads * c->D : NULL;
    for (ptrdiff_t h = 0; h < heads; h++, d_head += c->D) {
        if (c->rope.pairs != MHA_ROPE_NONE)
            mhai_rope_rotate(d_head, c->rope.pairs, width, cosines, sines);
        /* 0 times what a masked token holds may be NaN. */
        if (plain && !mhai_layer_is_zero(d_head, c->D))
            mhai_norm_row_back(plain + h * c->D, c->D, c->norm, c->norm_eps,
                               job->layer->norm[pass->which], d_head, at->d_norm,
                               at->d_norm + c->D);
    }
}

/* ----------------------------------------------------------------- tasks ----- */

static ptrdiff_t task_count(const mhai_side *side)
{
    return side->B * mhai_ceil_div(side->extent, TASK_ROWS);
}

ptrdiff_t mhai_layer_norm_rope_tasks(const mhai_layer_job *job)
{
    return mhai_max(task_count(&job->queries), task_count(&job->keys));
}

static void norm_rope_task(void *arg, int worker, ptrdiff_t task)
{
    const norm_rope *const pass = arg;
    const mhai_side *const side = side_of(pass);
    const ptrdiff_t chunks = mhai_ceil_div(side->extent, TASK_ROWS);
    const ptrdiff_t b = task / chunks, first = task % chunks * TASK_ROWS;
    const ptrdiff_t rows = mhai_side_rows(side, b), start = mhai_side_first(side, b);
    const ptrdiff_t origin = first_position(pass, b), D = pass->job->layer->config.D;
    const ptrdiff_t listed = side->starts ? (ptrdiff_t)side->starts[b] : b * side->extent;
    token at = {.d_norm = pass->back ? pass->back->norm_sums + task * 2 * D : NULL};
    (void)worker;
    if (at.d_norm)
        memset(at.d_norm, 0, sizeof(double) * 2 * (size_t)D);
    for (ptrdiff_t i = first; i < mhai_min(rows, first + TASK_ROWS); i++) {
        at.number = start + i;
        at.position = (double)(side->positions ? side->positions[listed + i] : origin + i);
        if (pass->back)
            norm_rope_row_back(pass, &at);
        else
            norm_rope_row(pass, &at);
    }
}

static bool has_norm_or_rope(const mha_layer_config *c)
{
    return c->norm != MHA_NORM_NONE || c->rope.pairs != MHA_ROPE_NONE;
}

void mhai_layer_norm_rope(const mhai_layer_job *job)
{
    const int end = mhai_layer_makes_keys(job) ? MHAI_K : MHAI_Q;
    for (int which = job->attends ? MHAI_Q : MHAI_K;
         has_norm_or_rope(&job->layer->config) && which <= end; which++) {
        norm_rope pass = {job, which, NULL};
        mha_pool_run(job->pool, task_count(side_of(&pass)), norm_rope_task, &pass);
    }
}

/* Adds the sums of the tasks in their order. */
static void store_norm(const norm_rope *pass, float *to, ptrdiff_t first)
{
    const ptrdiff_t D = pass->job->layer->config.D, tasks = task_count(side_of(pass));
    for (ptrdiff_t c = 0; to && c < D; c++) {
        double sum = 0.0;
        for (ptrdiff_t n = 0; n < tasks; n++)
            sum += pass->back->norm_sums[n * 2 * D + first + c];
        to[c] = (float)sum;
    }
}

void mhai_layer_norm_rope_back(const mhai_layer_back *back)
{
    const mha_layer_config *const c = &back->job.layer->config;
    const mha_layer_gradients *const g = &back->gradients;
    float *const weights[] = {g->q_norm, g->k_norm}, *const biases[] = {g->q_norm_bias,
                                                                        g->k_norm_bias};
    for (int which = MHAI_Q; has_norm_or_rope(c) && which <= MHAI_K; which++) {
        norm_rope pass = {&back->job, which, back};
        if (!back->wants[which])
            continue;
        mha_pool_run(back->job.pool, task_count(side_of(&pass)), norm_rope_task, &pass);
        store_norm(&pass, weights[which], 0);
        store_norm(&pass, biases[which], c->D);
    }
}
