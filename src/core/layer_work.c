/* SPDX-License-Identifier: MIT */
/*
 * A checked call becomes a job: the workspace is carved, rows are listed, and the operator's views
 * of the buffers are filled in.
 */
#include "core/layer.h"

/* ----------------------------------------------------------------- carve ----- */

void mhai_layer_take_projected(const mhai_layer_job *job, int first, int last,
                               float *projected[MHAI_PROJECTIONS], ptrdiff_t *strides,
                               mhai_work *work)
{
    const mhai_projection *const in = job->layer->in;
    const ptrdiff_t rows = mhai_layer_room(job, first == MHAI_Q ? &job->queries : &job->keys);
    ptrdiff_t columns = 0;
    for (int p = first; p <= last; p++)
        columns += in[p].columns;
    float *at = mhai_work_take(work, (size_t)(rows * columns), sizeof(float));
    for (int p = first; p <= last; p++) {
        projected[p] = at;
        strides[p] = columns;
        at = at ? at + in[p].columns : NULL;
    }
}

/* Q and K before their norm, and the log-sum-exp: for the backward pass only. */
static void carve_tape(mhai_layer_job *job, mhai_work *tape)
{
    const mha_layer_config *const c = &job->layer->config;
    const ptrdiff_t q_rows = mhai_layer_room(job, &job->queries);
    const ptrdiff_t k_rows = mhai_layer_room(job, &job->keys);
    if (c->norm != MHA_NORM_NONE) {
        job->plain[MHAI_Q] = mhai_work_take(tape, (size_t)(q_rows * c->H * c->D), sizeof(float));
        job->plain[MHAI_K] = mhai_work_take(tape, (size_t)(k_rows * c->G * c->D), sizeof(float));
    }
    if (!job->attention.options.lse.data)
        job->lse = mhai_work_take(tape, (size_t)(q_rows * c->H), sizeof(float));
}

/* Q, K, V and the heads' outputs. */
static void carve_buffers(mhai_layer_job *job, mhai_work *work)
{
    const mha_layer_config *const c = &job->layer->config;
    const ptrdiff_t q_rows = mhai_layer_room(job, &job->queries);
    if (job->self) {
        mhai_layer_take_projected(job, MHAI_Q, MHAI_V, job->projected, job->stride, work);
    } else {
        if (job->attends)
            mhai_layer_take_projected(job, MHAI_Q, MHAI_Q, job->projected, job->stride, work);
        if (mhai_layer_makes_keys(job))
            mhai_layer_take_projected(job, MHAI_K, MHAI_V, job->projected, job->stride, work);
    }
    if (job->attends)
        job->heads = mhai_work_take(work, (size_t)(q_rows * c->H * c->Dv), sizeof(float));
}

static ptrdiff_t *take_list(mhai_work *work, ptrdiff_t rows)
{
    return mhai_work_take(work, (size_t)rows, sizeof(ptrdiff_t));
}

/* Lists of the rows of inputs and output. */
static void carve_rows(mhai_layer_job *job, mhai_work *work)
{
    const ptrdiff_t q_rows = mhai_layer_room(job, &job->queries);
    const ptrdiff_t k_rows = mhai_layer_room(job, &job->keys);
    if (job->attends) {
        job->x_rows[MHAI_Q] = take_list(work, q_rows);
        job->y_rows = take_list(work, q_rows);
    }
    if (job->self) {
        job->x_rows[MHAI_K] = job->x_rows[MHAI_V] = job->x_rows[MHAI_Q];
    } else if (mhai_layer_makes_keys(job)) {
        job->x_rows[MHAI_K] = job->x_rows[MHAI_V] = take_list(work, k_rows);
        if (!mhai_layer_same(mhai_layer_input(&job->call, MHAI_K),
                             mhai_layer_input(&job->call, MHAI_V)))
            job->x_rows[MHAI_V] = take_list(work, k_rows);
    }
    job->queries.numbers = take_list(work, q_rows);
    job->keys.numbers = take_list(work, job->self ? 0 : k_rows);
    job->both.numbers = take_list(work, job->self ? q_rows : 0);
}

static void carve_lists(mhai_layer_job *job, mhai_work *work)
{
    carve_rows(job, work);
    job->past = mhai_work_take(work, (size_t)job->call.B, sizeof *job->past);
    for (int n = 0; n < 2; n++)
        job->packed[n] = mhai_work_take(work, (size_t)job->call.B + 1, sizeof *job->packed[n]);
    job->joined = mhai_work_take(work, (size_t)job->call.B, sizeof *job->joined);
}

size_t mhai_layer_tape_bytes(const mhai_layer_job *job)
{
    mhai_layer_job counted = *job;
    mhai_work tape = {0};
    carve_buffers(&counted, &tape);
    carve_tape(&counted, &tape);
    return tape.used;
}

size_t mhai_layer_list_bytes(const mhai_layer_job *job)
{
    mhai_layer_job counted = *job;
    mhai_work work = {0};
    carve_lists(&counted, &work);
    return work.used;
}

/* Panels of all projections with so many inputs, which are one linear or, in different types,
 * several: the workspace depends on the extents of a layer and not on its types. */
static ptrdiff_t panels_of_width(const mha_layer *layer, ptrdiff_t inputs)
{
    ptrdiff_t panels = 0;
    for (int p = 0; p < MHAI_PROJECTIONS; p++)
        if (layer->in[p].linear->inputs == inputs)
            panels += layer->in[p].last_panel - layer->in[p].first_panel;
    return panels;
}

/* Bytes for products and the operator, which use the same memory in turn. */
static size_t shared_size(const mhai_layer_job *job, int threads)
{
    const mha_layer *const layer = job->layer;
    const mhak_native *const native = layer->config.arithmetic == MHA_NATIVE ? layer->native : NULL;
    const ptrdiff_t rows =
        mhai_max(mhai_layer_room(job, &job->queries), mhai_layer_room(job, &job->keys));
    size_t size = 0;
    for (int p = 0; p < MHAI_PROJECTIONS; p++)
        size = mhai_larger(size, mhai_gemm_work_size(
                                     layer->kernels, native, rows, layer->in[p].linear->inputs,
                                     panels_of_width(layer, layer->in[p].linear->inputs), threads));
    size = mhai_larger(size, mhai_gemm_work_size(layer->kernels, native, rows, layer->out->inputs,
                                                 layer->out->panels, threads));
    if (!job->attends)
        return size;
    mha_plan plan;
    mhai_call call = job->attention;
    if (call.cache)
        call.shape.S = mhai_max(call.shape.S, mhai_cache_reach(call.cache));
    mhai_plan_fill(&plan, &call, layer->kernels);
    return mhai_larger(size, mhai_run_work_bound(&plan, threads));
}

size_t mhai_layer_buffer_bytes(const mhai_layer_job *job)
{
    mhai_layer_job counted = *job;
    mhai_work work = {0};
    carve_buffers(&counted, &work);
    return work.used;
}

static size_t count_work(const mhai_layer_job *job, int threads)
{
    const size_t buffers = job->call.tape ? 0 : mhai_layer_buffer_bytes(job);
    return buffers + mhai_layer_list_bytes(job) + shared_size(job, threads) + MHAI_ALIGN - 1;
}

/* --------------------------------------------------------- rows and views ----- */

void mhai_layer_list_starts(const mhai_side *side, const mha_view *x, ptrdiff_t *list)
{
    for (ptrdiff_t b = 0; b < side->B; b++) {
        const ptrdiff_t first = side->starts ? (ptrdiff_t)side->starts[b] * x->sl : b * x->sb;
        for (ptrdiff_t i = 0; i < mhai_side_rows(side, b); i++)
            *list++ = first + i * x->sl;
    }
}

static ptrdiff_t total_rows(const mhai_side *side)
{
    ptrdiff_t rows = 0;
    for (ptrdiff_t b = 0; b < side->B; b++)
        rows += mhai_side_rows(side, b);
    return rows;
}

/* Counts the rows of a side; lists their indices in the buffers if there is padding between
 * them. */
static void number_rows(mhai_side *side)
{
    side->count = total_rows(side);
    if (!side->lengths) {
        side->numbers = NULL;
        return;
    }
    ptrdiff_t *at = side->numbers;
    for (ptrdiff_t b = 0; b < side->B; b++)
        for (ptrdiff_t i = 0; i < mhai_side_rows(side, b); i++)
            *at++ = mhai_side_first(side, b) + i;
}

/* Self-attention: a row is projected if it is a query, a key or both. */
static void join_lengths(mhai_layer_job *job)
{
    job->both.lengths = NULL;
    if (!job->queries.lengths && !job->keys.lengths)
        return;
    for (ptrdiff_t b = 0; b < job->call.B; b++)
        job->joined[b] = mhai_max(mhai_side_rows(&job->queries, b), mhai_side_rows(&job->keys, b));
    job->both.lengths = job->joined;
}

static void fill_lists(mhai_layer_job *job)
{
    join_lengths(job);
    number_rows(&job->queries);
    if (job->self) {
        number_rows(&job->both);
        job->keys.numbers = NULL;
        mhai_layer_list_starts(&job->both, &job->call.query, job->x_rows[MHAI_Q]);
    } else {
        number_rows(&job->keys);
        if (job->attends)
            mhai_layer_list_starts(&job->queries, &job->call.query, job->x_rows[MHAI_Q]);
        for (int p = MHAI_K; mhai_layer_makes_keys(job) && p <= MHAI_V; p++)
            mhai_layer_list_starts(&job->keys, mhai_layer_input(&job->call, p), job->x_rows[p]);
    }
    const mha_view output = mhai_as_view(job->call.output);
    if (job->attends)
        mhai_layer_list_starts(&job->queries, &output, job->y_rows);
}

/* Buffers begin with the first packed row, so the operator's starts count from there. */
static const int64_t *from_zero(const int64_t *starts, ptrdiff_t B, int64_t *list)
{
    for (ptrdiff_t b = 0; starts && b <= B; b++)
        list[b] = starts[b] - starts[0];
    return starts ? list : NULL;
}

/* Moves the other packed arrays to the first packed row too: log-sum-exp and document ids. */
static void fill_starts(mhai_layer_job *job)
{
    mha_options *const o = &job->attention.options;
    const ptrdiff_t B = job->call.B;
    const ptrdiff_t q = o->q_starts ? (ptrdiff_t)o->q_starts[0] : 0;
    const ptrdiff_t k = o->k_starts ? (ptrdiff_t)o->k_starts[0] : 0;
    if (o->lse.data && job->queries.count > 0)
        o->lse.data = (float *)o->lse.data + q * o->lse.sl;
    if (o->q_documents && job->queries.count > 0)
        o->q_documents += q;
    if (o->k_documents && o->k_starts && o->k_starts[B] > k)
        o->k_documents += k;
    o->q_starts = from_zero(o->q_starts, B, job->packed[0]);
    o->k_starts = from_zero(o->k_starts, B, job->packed[1]);
}

/* Split into heads: strides, no copy. */
static mha_view heads_of(const float *buffer, const mhai_side *side, ptrdiff_t width,
                         ptrdiff_t stride)
{
    const mha_view view = {buffer, side->extent * stride, width, stride};
    return view;
}

static void fill_views(mhai_layer_job *job)
{
    const mha_layer_config *const c = &job->layer->config;
    mhai_call *const a = &job->attention;
    a->q = heads_of(job->projected[MHAI_Q], &job->queries, c->D, job->stride[MHAI_Q]);
    a->o = mha_out_blhd(job->heads, c->H, job->queries.extent, c->Dv);
    if (a->cache) {
        a->shape.k_type = a->cache->config.k_type;
        a->shape.v_type = a->cache->config.v_type;
        return;
    }
    if (job->lse) {
        const ptrdiff_t L = job->queries.extent, rows = mhai_layer_room(job, &job->queries);
        const mha_out packed = {job->lse, 0, rows, 1}, plain = {job->lse, c->H * L, L, 1};
        a->options.lse = job->queries.starts ? packed : plain;
    }
    a->k = heads_of(job->projected[MHAI_K], &job->keys, c->D, job->stride[MHAI_K]);
    a->v = heads_of(job->projected[MHAI_V], &job->keys, c->Dv, job->stride[MHAI_V]);
}

/* Positions after the tokens that a cache had. They are fixed here, since its lengths change during
 * the run. */
static void fill_past(mhai_layer_job *job)
{
    mha_options *const o = &job->attention.options;
    if (!job->appends) {
        job->past = NULL;
        return;
    }
    for (ptrdiff_t b = 0; b < job->call.B; b++)
        job->past[b] = mhai_layer_past(job, b);
    if (o->position == MHA_POSITION_BOTTOM_RIGHT) {
        o->position = MHA_POSITION_OFFSET;
        o->offsets = job->past;
    }
}

/* ---------------------------------------------------------------- the job ----- */

void mhai_layer_carve(mhai_layer_job *job, mhai_work *work)
{
    mhai_work tape = {.base = job->call.tape};
    carve_buffers(job, tape.base ? &tape : work);
    if (tape.base)
        carve_tape(job, &tape);
    carve_lists(job, work);
    fill_lists(job);
    fill_starts(job);
    fill_views(job);
}

size_t mhai_layer_needs(const mha_layer *layer, const mha_layer_call *call, int threads)
{
    mhai_layer_job job;
    return mhai_layer_check(&job, layer, call) ? 0 : count_work(&job, threads);
}

/* The halves of a layer have no cache, and attention between them knows no extra keys. */
static mha_status check_part(const mhai_layer_job *job)
{
    const mha_options *const o = &job->attention.options;
    if (job->part == MHAI_WHOLE)
        return MHA_OK;
    if (job->call.cache)
        return mhai_fail(o, MHA_ERR_FLAG, "call.cache is given; a layer in halves has none");
    if (mhai_extras(&job->attention) > 0)
        return mhai_fail(o, MHA_ERR_FLAG,
                         "the layer has extra keys, which attention between its halves lacks");
    if (job->part == MHAI_PROJECT && job->call.captured_heads.data)
        return mhai_fail(o, MHA_ERR_FLAG, "call.captured_heads is requested before the heads");
    return MHA_OK;
}

mha_status mhai_layer_prepare(mhai_layer_job *job, const mha_layer *layer,
                              const mha_layer_call *call, const mhai_layer_between *between,
                              void *work, size_t work_size, mha_pool *pool)
{
    mha_status status = mhai_layer_check(job, layer, call);
    if (status)
        return status;
    job->part = between->part;
    job->given = between->heads;
    if ((status = check_part(job)))
        return status;
    const mha_options *const o = &job->attention.options;
    const size_t needed = count_work(job, mha_pool_threads(pool));
    if (!work)
        return mhai_fail(o, MHA_ERR_MEMORY, "no memory for %zu bytes of workspace", needed);
    if (work_size < needed)
        return mhai_fail(o, MHA_ERR_WORKSPACE,
                         "work has %zu bytes; %d threads need %zu (mha_layer_work_size)", work_size,
                         mha_pool_threads(pool), needed);
    const size_t tape_size = job->call.tape ? mhai_layer_tape_bytes(job) : 0;
    if ((job->call.tape && (status = mhai_layer_check_tape(job, tape_size))) ||
        (status = mhai_layer_check_memory(job, tape_size, work, needed)))
        return status;
    mhai_work carve = mhai_work_begin(work);
    mhai_layer_carve(job, &carve);
    job->work = carve.base + carve.used;
    job->pool = pool;
    if (job->appends && (status = mhai_layer_check_append(job, job->past)))
        return status;
    fill_past(job);
    return MHA_OK;
}
