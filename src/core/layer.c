/* SPDX-License-Identifier: MIT */
/*
 * Multi-head attention, in one screen:
 *
 *      X [B,L,E] --- W_Q | W_K | W_V ---> Q K V, one row per token      mhai_layer_project()
 *                                         norm and rotation of Q, K     layer_qk.c
 *      cache: K and V of this call join those of earlier calls          remember()
 *      Q [B,H,L,D]  K [B,G,S,D]  V [B,G,S,Dv]
 *            three views with strides: the heads lie side by side in a row, no copy
 *      softmax(Q K^T / sqrt(D)) V, head by head                         attend()
 *            each head writes its own columns of a row: that is the concatenation
 *      O [B,L,H*Dv] --- W_O ---> Y [B,L,E]                              mhai_layer_combine()
 *
 * Everything was checked before (layer_check.c); nothing here can fail or allocate.
 */
#include "core/layer.h"

/* ------------------------------------------------- X -> Q, K, V: W_Q, W_K, W_V ----- */

bool mhai_layer_joined(const mhai_layer_job *job, int a)
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
void mhai_layer_project(const mhai_layer_job *job)
{
    const int end = mhai_layer_makes_keys(job) ? MHAI_V : MHAI_Q;
    for (int first = job->attends ? MHAI_Q : MHAI_K, last; first <= end; first = last + 1) {
        for (last = first; last < end && mhai_layer_joined(job, last);)
            last++;
        project_some(job, first, last);
    }
}

/* -------------------------------------------------------- cache and attention ----- */

/* Appends rows [first, first + count) of each batch of K and V to the cache. */
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

/* A ring may not take so many tokens at once that a row loses keys of its window. */
static ptrdiff_t tokens_at_once(const mhai_layer_job *job)
{
    const mha_cache *const cache = job->call.cache;
    const mha_options *const o = &job->attention.options;
    const ptrdiff_t all = job->queries.extent;
    if (cache->config.kind != MHA_CACHE_RING || !(o->flags & MHA_WINDOW) || o->window_left < 0)
        return all;
    return mhai_min(all, cache->page_tokens - o->window_left);
}

/* Appends and attends, some tokens at a time: nearly always all at once. */
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

void mhai_layer_combine(const mhai_layer_job *job)
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
    mhai_layer_project(job);
    mhai_layer_norm_rope(job);
    mhai_layer_capture_projected(job);
    attend(job);
    mhai_layer_capture_heads(job);
    if (job->attends)
        mhai_layer_combine(job);
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
    const mhai_layer_between whole = {.part = MHAI_WHOLE};
    mhai_layer_job job;
    if (!layer || !call)
        return MHA_ERR_NULL;
    if (!work)
        work_size = mhai_layer_needs(layer, call, mha_pool_threads(pool));
    const mhai_buffer buffer = mhai_buffer_get(work, work_size);
    const mha_status status =
        mhai_layer_prepare(&job, layer, call, &whole, buffer.data, work_size, pool);
    if (status == MHA_OK)
        run_layer(&job);
    mhai_buffer_free(buffer);
    return status;
}
