/* SPDX-License-Identifier: MIT */
/*
 * Multi-head attention, in one screen:
 *
 *      X [B,L,E] --- W_Q | W_K | W_V ---> Q K V, one row a token       project()
 *                                         norm and rotation of Q, K     shape_heads()
 *      cache: K and V of this call join those of the calls before       remember()
 *      Q [B,H,L,D]  K [B,G,S,D]  V [B,G,S,Dv]
 *            three views with strides: the heads lie side by side in a row, no copy
 *      softmax(Q K^T / sqrt(D)) V, head by head                         attend()
 *            each head writes at its own columns of a row: that is the concatenation
 *      O [B,L,H*Dv] --- W_O ---> Y [B,L,E]                              combine()
 *
 * Everything was checked before (layer_check.c); nothing here can fail or allocates.
 */
#include "layer.h"

#include <stdlib.h>

/* ------------------------------------------------- X -> Q, K, V: W_Q, W_K, W_V ----- */

/* Do projections a and a + 1 make one product: same rows in, side by side in weights and out? */
static bool joined(const mhai_layer_job *job, int a)
{
    const mhai_projection *const in = job->layer->in;
    return in[a].linear == in[a + 1].linear && job->x_rows[a] == job->x_rows[a + 1] &&
           job->projected[a] + in[a].columns == job->projected[a + 1];
}

static void project_some(const mhai_layer_job *job, int first, int last)
{
    const mhai_projection *const in = job->layer->in;
    ptrdiff_t columns = 0;
    for (int p = first; p <= last; p++)
        columns += in[p].columns;
    const mhai_product product = {.linear = in[first].linear,
                                  .first_panel = in[first].first_panel,
                                  .last_panel = in[last].last_panel,
                                  .rows = job->rows[first]->count,
                                  .columns = columns,
                                  .x = mhai_layer_input(&job->call, first)->data,
                                  .x_type = job->call.input_type,
                                  .x_rows = job->x_rows[first],
                                  .x_stride = 1,
                                  .y = job->projected[first],
                                  .y_type = MHA_F32,
                                  .y_rows = job->rows[first]->numbers,
                                  .y_stride = job->stride[first]};
    mhai_gemm(&product, job->work, job->pool);
}

/* Self-attention has one input: the three projections are one product. */
static void project(const mhai_layer_job *job)
{
    const int end = mhai_layer_makes_keys(job) ? MHAI_V : MHAI_Q;
    for (int first = job->attends ? MHAI_Q : MHAI_K, last; first <= end; first = last + 1) {
        for (last = first; last < end && joined(job, last);)
            last++;
        project_some(job, first, last);
    }
}

/* --------------------------------------------------------- norm and rotation ----- */

typedef struct shaping {
    const mhai_layer_job *job;
    int which; /* MHAI_Q or MHAI_K */
} shaping;

/* Where the tokens of a batch begin if the caller does not say: behind those of the cache, or for
 * queries where the options put them. */
static ptrdiff_t first_position(const mhai_layer_job *job, int which, ptrdiff_t b)
{
    if (job->past)
        return (ptrdiff_t)job->past[b];
    return which == MHAI_Q ? mhai_batch_of(&job->attention, b).offset : 0;
}

static void shape_row(const mhai_layer_job *job, int which, ptrdiff_t number, double position)
{
    enum { MOST_PAIRS = MHA_MAX_HEAD_WIDTH / 2 };
    const mha_layer_config *const c = &job->layer->config;
    const ptrdiff_t heads = which == MHAI_Q ? c->H : c->G;
    const ptrdiff_t width = mhai_rope_width(&c->rope, c->D);
    float cosines[MOST_PAIRS], sines[MOST_PAIRS];
    if (c->rope.pairs != MHA_ROPE_NONE)
        mhai_rope_table(&c->rope, width, position, cosines, sines);
    float *head = job->projected[which] + number * job->stride[which];
    for (ptrdiff_t h = 0; h < heads; h++, head += c->D) {
        if (c->norm != MHA_NORM_NONE)
            mhai_norm_row(head, c->D, c->norm, c->norm_eps, job->layer->norm[which],
                          job->layer->norm_bias[which]);
        if (c->rope.pairs != MHA_ROPE_NONE)
            mhai_rope_turn(head, c->rope.pairs, width, cosines, sines);
    }
}

/* One task: a few tokens of one batch. */
enum { SHAPE_ROWS = 16 };

static void shape_task(void *arg, int worker, ptrdiff_t task)
{
    const shaping *const now = arg;
    const mhai_side *const side = now->which == MHAI_Q ? &now->job->queries : &now->job->keys;
    const ptrdiff_t chunks = mhai_ceil_div(side->extent, SHAPE_ROWS);
    const ptrdiff_t b = task / chunks, first = task % chunks * SHAPE_ROWS;
    const ptrdiff_t rows = mhai_side_rows(side, b), start = mhai_side_first(side, b);
    const ptrdiff_t origin = first_position(now->job, now->which, b);
    (void)worker;
    for (ptrdiff_t i = first; i < mhai_min(rows, first + SHAPE_ROWS); i++) {
        const ptrdiff_t listed = side->starts ? (ptrdiff_t)side->starts[b] : b * side->extent;
        const int64_t position = side->positions ? side->positions[listed + i] : origin + i;
        shape_row(now->job, now->which, start + i, (double)position);
    }
}

static void shape_heads(const mhai_layer_job *job)
{
    const mha_layer_config *const c = &job->layer->config;
    if (c->norm == MHA_NORM_NONE && c->rope.pairs == MHA_ROPE_NONE)
        return;
    const int end = mhai_layer_makes_keys(job) ? MHAI_K : MHAI_Q;
    for (int which = job->attends ? MHAI_Q : MHAI_K; which <= end; which++) {
        const mhai_side *const side = which == MHAI_Q ? &job->queries : &job->keys;
        shaping now = {job, which};
        mhai_share(job->pool, side->B * mhai_ceil_div(side->extent, SHAPE_ROWS), shape_task, &now);
    }
}

/* -------------------------------------------------------- cache and attention ----- */

/* Rows [first, first + count) of each batch of K and V into the cache. */
static void remember(const mhai_layer_job *job, ptrdiff_t first, ptrdiff_t count)
{
    const mha_layer_config *const c = &job->layer->config;
    const mhai_side *const side = &job->keys;
    for (ptrdiff_t b = 0; b < job->call.B; b++) {
        const int64_t rows = mhai_max(0, mhai_min(count, mhai_side_rows(side, b) - first));
        const int64_t sequence = job->call.sequences ? job->call.sequences[b] : b;
        const ptrdiff_t row = mhai_side_first(side, b) + first;
        const mha_view k = {job->projected[MHAI_K] + row * job->stride[MHAI_K], 0, c->D,
                            job->stride[MHAI_K]};
        const mha_view v = {job->projected[MHAI_V] + row * job->stride[MHAI_V], 0, c->Dv,
                            job->stride[MHAI_V]};
        mhai_cache_put(job->call.cache, job->layer->kernels, 1, &sequence, (ptrdiff_t)rows, NULL,
                       &k, &v);
    }
}

static void run_operator(const mhai_layer_job *job, const mhai_call *call)
{
    mha_plan plan;
    mhai_plan_fill(&plan, call, job->layer->kernels);
    mhai_run_all(&plan, call, job->work, job->pool);
}

/* A ring may not take more at once than leaves every row its window. */
static ptrdiff_t tokens_at_once(const mhai_layer_job *job)
{
    const mha_cache *const cache = job->call.cache;
    const mha_options *const o = &job->attention.options;
    const ptrdiff_t all = job->queries.extent;
    if (cache->config.kind != MHA_CACHE_RING || !(o->flags & MHA_WINDOW) || o->window_left < 0)
        return all;
    return mhai_min(all, cache->page_tokens - o->window_left);
}

/* Append and attend, some tokens after another: nearly always all at once. */
static void step(const mhai_layer_job *job)
{
    const ptrdiff_t at_once = tokens_at_once(job), all = job->queries.extent;
    for (ptrdiff_t first = 0; first < all; first += at_once) {
        mhai_call call = job->attention;
        remember(job, first, at_once);
        if (at_once < all) {
            call.row_first = first;
            call.row_last = mhai_min(all, first + at_once);
        }
        run_operator(job, &call);
    }
}

static void attend(const mhai_layer_job *job)
{
    if (job->appends && job->attends)
        step(job);
    else if (job->appends)
        remember(job, 0, job->keys.extent);
    else
        run_operator(job, &job->attention);
}

/* ------------------------------------------------------------------ W_O: heads -> Y ----- */

static void combine(const mhai_layer_job *job)
{
    const mha_layer_config *const c = &job->layer->config;
    const mhai_product product = {.linear = job->layer->out,
                                  .last_panel = job->layer->out->panels,
                                  .rows = job->queries.count,
                                  .columns = c->output_width,
                                  .x = job->heads,
                                  .x_type = MHA_F32,
                                  .x_rows = job->queries.numbers,
                                  .x_stride = c->H * c->Dv,
                                  .y = job->call.output.data,
                                  .y_type = job->call.output_type,
                                  .y_rows = job->y_rows,
                                  .y_stride = 1};
    mhai_gemm(&product, job->work, job->pool);
}

/* ------------------------------------------------------------------------ the layer ----- */

static void run_layer(const mhai_layer_job *job)
{
    project(job);
    shape_heads(job);
    attend(job);
    if (job->attends)
        combine(job);
}

size_t mha_layer_work_size(const mha_layer *layer, const mha_layer_call *call, int threads)
{
    if (!layer || !call || threads < 1 || threads > MHA_MAX_THREADS)
        return 0;
    return mhai_layer_needs(layer, call, threads);
}

mha_status mha_layer_run(const mha_layer *layer, const mha_layer_call *call, void *work,
                         size_t work_size, mha_pool *pool)
{
    mhai_layer_job job;
    void *own = NULL;
    if (!layer || !call)
        return MHA_ERR_NULL;
    if (!work) {
        work_size = mhai_layer_needs(layer, call, mha_pool_threads(pool));
        own = work_size ? malloc(work_size) : NULL;
    }
    const mha_status status =
        mhai_layer_prepare(&job, layer, call, work ? work : own, work_size, pool);
    if (status == MHA_OK)
        run_layer(&job);
    free(own);
    return status;
}
