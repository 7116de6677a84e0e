/* SPDX-License-Identifier: MIT */
/*
 * A call of a layer is checked here, once, and turned into a job:
 *
 *      read_call        structs, extents, what the cache is for
 *      check_operator   the options, as the operator will see them
 *      check_room       S, rings and windows
 *      check_memory     inputs, outputs, workspace
 *      carve            the workspace map
 *
 * Nothing is written before all checks have passed, but for the workspace.
 */
#include "layer.h"
#include "region.h"

#include <string.h>

static mha_status fail_null(const mha_options *o, const char *name, const char *why)
{
    return mhai_fail(o, MHA_ERR_NULL, "%s is NULL; %s", name, why);
}

/* ------------------------------------------------------------- read_call ----- */

static mha_status check_extents(const mha_layer_call *c, const mha_options *o)
{
    static const char *const names[] = {"B", "L", "S"};
    const ptrdiff_t extents[] = {c->B, c->L, c->S};
    for (int n = 0; n < 3; n++) {
        if (extents[n] < 0)
            return mhai_fail(o, MHA_ERR_SHAPE, "call.%s is %td; extents are not negative", names[n],
                             extents[n]);
        if (extents[n] > MHAI_MAX_EXTENT)
            return mhai_fail(o, MHA_ERR_OVERFLOW, "call.%s is %td: larger than any memory",
                             names[n], extents[n]);
    }
    return MHA_OK;
}

/* A key or value that is taken from another input must be as wide as that. */
static mha_status check_inputs(const mhai_layer_job *job)
{
    const mha_layer_config *const c = &job->layer->config;
    const mha_options *const o = &job->attention.options;
    if (!job->call.key.data && c->key_width != c->E)
        return fail_null(o, "call.key", "the layer's key_width differs from E, so it needs one");
    const ptrdiff_t width = job->call.key.data ? c->key_width : c->E;
    if (!job->call.value.data && c->value_width != width)
        return fail_null(o, "call.value", "the layer's value_width differs, so it needs one");
    return MHA_OK;
}

static mha_status check_cache_use(const mhai_layer_job *job)
{
    const mha_layer_config *const c = &job->layer->config;
    const mha_options *const o = &job->attention.options;
    const mha_layer_call *const call = &job->call;
    const mha_cache_config *const kept = &call->cache->config;
    if (kept->G != c->G || kept->D != c->D || kept->Dv != c->Dv)
        return mhai_fail(o, MHA_ERR_SHAPE,
                         "the cache has G = %td, D = %td, Dv = %td; the layer %td, %td, %td",
                         kept->G, kept->D, kept->Dv, c->G, c->D, c->Dv);
    const bool keys = call->key.data || call->value.data;
    if (call->cache_use == MHA_CACHE_STORE ? !call->key.data : keys)
        return mhai_fail(o, MHA_ERR_FLAG,
                         "call.key goes with MHA_CACHE_STORE and only with it: store the keys of "
                         "another input first, then recall them");
    if (o->k_starts || (call->cache_use == MHA_CACHE_STEP && o->k_lengths))
        return mhai_fail(o, MHA_ERR_FLAG,
                         "options.%s does not go with a cache, which knows its sequences",
                         o->k_starts ? "k_starts" : "k_lengths");
    return MHA_OK;
}

/* Without a cache: S and the packing of keys that come from the query input. */
static mha_status complete_keys(mhai_layer_job *job)
{
    mha_layer_call *const call = &job->call;
    mha_options *const o = &job->attention.options;
    if (call->key.data)
        return MHA_OK;
    if (call->S != 0 && call->S != call->L)
        return mhai_fail(o, MHA_ERR_SHAPE,
                         "call.S is %td without a key input; the query input has L = %td rows",
                         call->S, call->L);
    call->S = call->L;
    if (o->k_starts && !o->q_starts)
        return mhai_fail(o, MHA_ERR_LENGTH,
                         "options.k_starts without q_starts, but keys come from the query input");
    o->k_starts = o->q_starts;
    return MHA_OK;
}

static mha_status read_call(mhai_layer_job *job, const mha_layer *layer, const mha_layer_call *call)
{
    memset(job, 0, sizeof *job);
    job->layer = layer;
    if (!mhai_struct_read(call, &job->call, sizeof job->call, sizeof job->call))
        return MHA_ERR_STRUCT;
    mha_status status = mhai_options_read(job->call.options, &job->attention.options);
    if (status)
        return status;
    const mha_options *const o = &job->attention.options;
    if ((status = check_extents(&job->call, o)) ||
        (status = mhai_check_plain(o, "call.input_type", job->call.input_type)) ||
        (status = mhai_check_plain(o, "call.output_type", job->call.output_type)))
        return status;
    if ((unsigned)job->call.cache_use > MHA_CACHE_RECALL)
        return mhai_fail(o, MHA_ERR_FLAG, "call.cache_use is %d; use an MHA_CACHE_ value",
                         (int)job->call.cache_use);
    const bool cached = job->call.cache != NULL;
    if (!cached && job->call.cache_use != MHA_CACHE_STEP)
        return fail_null(o, "call.cache", "there is nothing to store in or to recall from");
    job->appends = cached && job->call.cache_use != MHA_CACHE_RECALL;
    job->attends = !cached || job->call.cache_use != MHA_CACHE_STORE;
    if ((status = cached ? check_cache_use(job) : complete_keys(job)))
        return status;
    return mhai_layer_makes_keys(job) ? check_inputs(job) : MHA_OK;
}

/* -------------------------------------------------------- check_operator ----- */

static bool same_starts(const int64_t *a, const int64_t *b, ptrdiff_t B)
{
    return a == b || (a && b && memcmp(a, b, sizeof *a * (size_t)(B + 1)) == 0);
}

static bool same_view(const mha_view *a, const mha_view *b)
{
    return a->data == b->data && a->sb == b->sb && a->sl == b->sl;
}

/* Do all three projections read the same rows? */
static bool is_self(const mhai_layer_job *job)
{
    const mha_layer_call *const call = &job->call;
    const mha_layer_config *const c = &job->layer->config;
    const mha_options *const o = &job->attention.options;
    if (call->cache)
        return call->cache_use == MHA_CACHE_STEP;
    return call->L == call->S && c->E == c->key_width && c->E == c->value_width &&
           same_view(&call->query, mhai_layer_input(call, MHAI_K)) &&
           same_view(&call->query, mhai_layer_input(call, MHAI_V)) &&
           same_starts(o->q_starts, o->k_starts, call->B);
}

static ptrdiff_t total_rows(const mhai_side *side)
{
    ptrdiff_t rows = 0;
    for (ptrdiff_t b = 0; b < side->B; b++)
        rows += mhai_side_rows(side, b);
    return rows;
}

static void fill_sides(mhai_layer_job *job)
{
    const mha_layer_call *const call = &job->call;
    const mha_options *const o = &job->attention.options;
    job->queries = (mhai_side){.B = call->B,
                               .extent = job->attends ? call->L : 0,
                               .lengths = job->attends ? o->q_lengths : NULL,
                               .starts = job->attends ? o->q_starts : NULL,
                               .positions = call->q_positions};
    job->keys = (mhai_side){.B = call->B};
    if (mhai_layer_makes_keys(job))
        job->keys = (mhai_side){.B = call->B,
                                .extent = call->S,
                                .lengths = o->k_lengths,
                                .starts = o->k_starts,
                                .positions = call->k_positions};
    job->self = is_self(job);
    if (call->cache && call->cache_use == MHA_CACHE_STEP) {
        job->keys = job->queries;
        job->keys.positions = call->k_positions ? call->k_positions : call->q_positions;
    }
    job->both = job->queries;
    for (int p = 0; p < MHAI_PROJECTIONS; p++)
        job->rows[p] = job->self ? &job->both : p == MHAI_Q ? &job->queries : &job->keys;
}

/* The operator's part of the call: heads of f32, on buffers that come later. */
static mha_status check_operator(mhai_layer_job *job, const mha_layer_call *call)
{
    const mha_layer_config *const c = &job->layer->config;
    mhai_call *const a = &job->attention;
    if (!job->attends) {
        a->options.q_lengths = a->options.q_starts = NULL;
        a->options.lse.data = a->options.weights.data = NULL;
    }
    const mha_shape shape = {.B = call->B,
                             .H = c->H,
                             .G = c->G,
                             .L = job->attends ? call->L : 0,
                             .S = call->S,
                             .D = c->D,
                             .Dv = c->Dv};
    mha_status status = mhai_check_problem(&shape, a);
    if (status)
        return status;
    a->extra = (mhai_extra){job->layer->extra_key, job->layer->extra_value,
                            (c->flags & MHA_LAYER_ZERO_ATTN) != 0};
    a->sequences = call->sequences;
    if (job->attends)
        a->cache = call->cache;
    if (call->cache && a->options.position == MHA_POSITION_UNSET)
        a->options.position = MHA_POSITION_BOTTOM_RIGHT;
    return MHA_OK;
}

/* ------------------------------------------------------------ check_room ----- */

static mha_status check_sequences(const mhai_layer_job *job)
{
    const mha_layer_call *const call = &job->call;
    const mha_options *const o = &job->attention.options;
    if ((uintptr_t)call->sequences % sizeof(int64_t))
        return mhai_fail(o, MHA_ERR_ALIGN, "call.sequences is not aligned to its elements");
    for (ptrdiff_t b = 0; b < call->B; b++)
        if (!mhai_cache_has(call->cache, call->sequences ? call->sequences[b] : b))
            return mhai_fail(o, MHA_ERR_SEQUENCE,
                             "batch %td belongs to sequence %lld; the cache has %td", b,
                             (long long)(call->sequences ? call->sequences[b] : b),
                             call->cache->config.sequences);
    return MHA_OK;
}

/* Tokens of a batch's sequence before this call. */
static ptrdiff_t past_of(const mhai_layer_job *job, ptrdiff_t b)
{
    const ptrdiff_t sequence = job->call.sequences ? (ptrdiff_t)job->call.sequences[b] : b;
    return (ptrdiff_t)job->call.cache->lengths[sequence];
}

static bool has_window(const mha_options *o)
{
    return (o->flags & MHA_WINDOW) && o->window_left >= 0;
}

/* Every row of a step must find what it sees in the ring. */
static mha_status check_ring(const mhai_layer_job *job, ptrdiff_t longest)
{
    const mha_options *const o = &job->attention.options;
    const ptrdiff_t kept = job->call.cache->page_tokens;
    if (o->position != MHA_POSITION_BOTTOM_RIGHT)
        return mhai_fail(o, MHA_ERR_POSITION,
                         "options.position is %d; a step over a ring knows its positions: leave it "
                         "unset",
                         (int)o->position);
    if (!has_window(o) && longest > kept)
        return mhai_fail(
            o, MHA_ERR_WINDOW,
            "a sequence would have %td tokens and the ring keeps %td; use a window, or "
            "a larger ring",
            longest, kept);
    if (has_window(o) && o->window_left >= kept)
        return mhai_fail(o, MHA_ERR_WINDOW,
                         "options.window_left is %td; the ring keeps %td tokens and needs one more "
                         "than the window",
                         o->window_left, kept);
    const bool ahead = !(o->flags & MHA_CAUSAL) && o->window_right != 0;
    if (has_window(o) && ahead && job->call.L > kept - o->window_left)
        return mhai_fail(o, MHA_ERR_WINDOW,
                         "%td tokens at once that see each other, and a window of %td before, need "
                         "a ring of more than %td",
                         job->call.L, o->window_left, kept);
    return MHA_OK;
}

/* The columns of masks and weights: all tokens there will be. */
static mha_status check_step(mhai_layer_job *job)
{
    ptrdiff_t longest = 0;
    for (ptrdiff_t b = 0; b < job->call.B; b++)
        longest = mhai_max(longest, past_of(job, b) + mhai_side_rows(&job->queries, b));
    if (job->call.S != 0 && job->call.S < longest)
        return mhai_fail(&job->attention.options, MHA_ERR_SHAPE,
                         "call.S is %td columns but a sequence will have %td tokens; use at least "
                         "that many, or 0",
                         job->call.S, longest);
    job->attention.shape.S = mhai_max(job->call.S, longest);
    return job->call.cache->config.kind == MHA_CACHE_RING ? check_ring(job, longest) : MHA_OK;
}

/* Arrays of the caller are looked at only after they were checked. */
static mha_status check_room(mhai_layer_job *job)
{
    mha_status status;
    const bool cached = job->call.cache != NULL;
    const bool recalls = cached && job->call.cache_use == MHA_CACHE_RECALL;
    if ((cached && (status = check_sequences(job))) ||
        (recalls && (status = mhai_cache_check(&job->attention))) ||
        (status = mhai_check_lists(&job->attention)))
        return status;
    fill_sides(job);
    if (recalls)
        return mhai_cache_check_dropped(&job->attention);
    return cached && job->call.cache_use == MHA_CACHE_STEP ? check_step(job) : MHA_OK;
}

/* ---------------------------------------------------------- check_memory ----- */

static void add_rows(mhai_regions *list, bool output, const char *name, mha_view x, mha_dtype type,
                     const mhai_side *side, ptrdiff_t width)
{
    x.sh = 0;
    mhai_regions_rows(list, output, name, x, type, 1, side->extent, width, side->starts);
}

static void add_positions(mhai_regions *list, const char *name, const mhai_side *side)
{
    const ptrdiff_t rows = side->starts ? (ptrdiff_t)side->starts[side->B] : side->B * side->extent;
    mhai_regions_array(list, name, side->positions, rows, sizeof(int64_t));
}

static mha_status check_memory(const mhai_layer_job *job, const void *work, size_t work_size)
{
    const mha_layer_call *const call = &job->call;
    const mha_layer_config *const c = &job->layer->config;
    mhai_regions list = {.options = &job->attention.options, .B = call->B};
    if (job->attends) {
        add_rows(&list, false, "call.query", call->query, call->input_type, &job->queries, c->E);
        add_rows(&list, true, "call.output", mhai_as_view(call->output), call->output_type,
                 &job->queries, c->output_width);
        add_positions(&list, "call.q_positions", &job->queries);
        mhai_regions_options(&list, &job->attention,
                             job->attention.shape.S + mhai_extras(&job->attention));
    }
    if (call->key.data)
        add_rows(&list, false, "call.key", call->key, call->input_type, &job->keys, c->key_width);
    if (call->value.data)
        add_rows(&list, false, "call.value", call->value, call->input_type, &job->keys,
                 c->value_width);
    if (mhai_layer_makes_keys(job))
        add_positions(&list, "call.k_positions", &job->keys);
    mhai_regions_array(&list, "call.sequences", call->sequences, call->B, sizeof(int64_t));
    return mhai_regions_check(&list, work, work_size);
}

/* ----------------------------------------------------------------- carve ----- */

/* Rows of the buffers of a side, padding included. A cache promises room for any later call. */
static ptrdiff_t room_of(const mhai_layer_job *job, const mhai_side *side)
{
    return side->starts && !job->call.cache ? (ptrdiff_t)(side->starts[side->B] - side->starts[0])
                                            : side->B * side->extent;
}

/* All buffers together must be countable in bytes. */
static mha_status check_buffers(const mhai_layer_job *job)
{
    const mha_layer *const l = job->layer;
    const ptrdiff_t columns =
        l->in[0].columns + l->in[1].columns + l->in[2].columns + l->config.H * l->config.Dv + 64;
    ptrdiff_t rows, bytes;
    if (__builtin_mul_overflow(job->call.B, mhai_max(job->queries.extent, job->keys.extent),
                               &rows) ||
        __builtin_mul_overflow(rows, columns, &bytes) || __builtin_mul_overflow(bytes, 16, &bytes))
        return mhai_fail(&job->attention.options, MHA_ERR_OVERFLOW,
                         "B = %td, L = %td, S = %td tokens of %td columns fit in no memory",
                         job->call.B, job->call.L, job->call.S, columns);
    return MHA_OK;
}

static void take_projected(mhai_layer_job *job, int first, int last, ptrdiff_t rows,
                           mhai_work *work)
{
    const mhai_projection *const in = job->layer->in;
    ptrdiff_t columns = 0;
    for (int p = first; p <= last; p++)
        columns += in[p].columns;
    float *at = mhai_work_take(work, (size_t)(rows * columns), sizeof(float));
    for (int p = first; p <= last; p++) {
        job->projected[p] = at;
        job->stride[p] = columns;
        at = at ? at + in[p].columns : NULL;
    }
}

static ptrdiff_t *take_list(mhai_work *work, ptrdiff_t rows)
{
    return mhai_work_take(work, (size_t)rows, sizeof(ptrdiff_t));
}

static void carve_buffers(mhai_layer_job *job, mhai_work *work)
{
    const mha_layer_config *const c = &job->layer->config;
    const ptrdiff_t q_rows = room_of(job, &job->queries), k_rows = room_of(job, &job->keys);
    if (job->self) {
        take_projected(job, MHAI_Q, MHAI_V, q_rows, work);
        job->x_rows[MHAI_Q] = job->x_rows[MHAI_K] = job->x_rows[MHAI_V] = take_list(work, q_rows);
    } else {
        if (job->attends) {
            take_projected(job, MHAI_Q, MHAI_Q, q_rows, work);
            job->x_rows[MHAI_Q] = take_list(work, q_rows);
        }
        if (mhai_layer_makes_keys(job)) {
            take_projected(job, MHAI_K, MHAI_V, k_rows, work);
            job->x_rows[MHAI_K] = job->x_rows[MHAI_V] = take_list(work, k_rows);
            if (!same_view(mhai_layer_input(&job->call, MHAI_K),
                           mhai_layer_input(&job->call, MHAI_V)))
                job->x_rows[MHAI_V] = take_list(work, k_rows);
        }
    }
    if (job->attends) {
        job->heads = mhai_work_take(work, (size_t)(q_rows * c->H * c->Dv), sizeof(float));
        job->y_rows = take_list(work, q_rows);
    }
    job->queries.numbers = take_list(work, q_rows);
    job->keys.numbers = take_list(work, job->self ? 0 : k_rows);
    job->both.numbers = take_list(work, job->self ? q_rows : 0);
    job->past = mhai_work_take(work, (size_t)job->call.B, sizeof *job->past);
    for (int n = 0; n < 2; n++)
        job->packed[n] = mhai_work_take(work, (size_t)job->call.B + 1, sizeof *job->packed[n]);
    job->joined = mhai_work_take(work, (size_t)job->call.B, sizeof *job->joined);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Bytes that products and the operator need, one after another. */
static size_t shared_size(const mhai_layer_job *job, int threads)
{
    const mha_layer *const layer = job->layer;
    const ptrdiff_t rows = mhai_max(room_of(job, &job->queries), room_of(job, &job->keys));
    size_t size = 0;
    for (int p = 0; p < MHAI_PROJECTIONS; p++) {
        const mha_linear *const linear = layer->in[p].linear;
        size = larger(size, mhai_gemm_work_size(layer->kernels, rows, linear->inputs,
                                                linear->panels, threads));
    }
    size = larger(size, mhai_gemm_work_size(layer->kernels, rows, layer->out->inputs,
                                            layer->out->panels, threads));
    if (!job->attends)
        return size;
    mha_plan plan;
    mhai_call call = job->attention;
    if (call.cache)
        call.shape.S = mhai_max(call.shape.S, mhai_cache_reach(call.cache));
    mhai_plan_fill(&plan, &call, layer->kernels);
    return larger(size, mhai_run_work_bound(&plan, threads));
}

static size_t count_work(const mhai_layer_job *job, int threads)
{
    mhai_layer_job counted = *job;
    mhai_work work = {0};
    carve_buffers(&counted, &work);
    return work.used + shared_size(job, threads) + MHAI_ALIGN - 1;
}

/* --------------------------------------------------------- rows and views ----- */

/* Elements at which the rows of a side start in a tensor. */
static void list_starts(const mhai_side *side, const mha_view *x, ptrdiff_t *list)
{
    for (ptrdiff_t b = 0; b < side->B; b++) {
        const ptrdiff_t first = side->starts ? (ptrdiff_t)side->starts[b] * x->sl : b * x->sb;
        for (ptrdiff_t i = 0; i < mhai_side_rows(side, b); i++)
            *list++ = first + i * x->sl;
    }
}

/* Count a side's rows and number them, where padding lies between. */
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
        list_starts(&job->both, &job->call.query, job->x_rows[MHAI_Q]);
    } else {
        number_rows(&job->keys);
        if (job->attends)
            list_starts(&job->queries, &job->call.query, job->x_rows[MHAI_Q]);
        for (int p = MHAI_K; mhai_layer_makes_keys(job) && p <= MHAI_V; p++)
            list_starts(&job->keys, mhai_layer_input(&job->call, p), job->x_rows[p]);
    }
    const mha_view output = mhai_as_view(job->call.output);
    if (job->attends)
        list_starts(&job->queries, &output, job->y_rows);
}

/* Buffers begin with the first packed row: for the operator starts count from there. */
static const int64_t *from_zero(const int64_t *starts, ptrdiff_t B, int64_t *list)
{
    for (ptrdiff_t b = 0; starts && b <= B; b++)
        list[b] = starts[b] - starts[0];
    return starts ? list : NULL;
}

/* What else is packed like the rows begins where they do. */
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
    a->k = heads_of(job->projected[MHAI_K], &job->keys, c->D, job->stride[MHAI_K]);
    a->v = heads_of(job->projected[MHAI_V], &job->keys, c->Dv, job->stride[MHAI_V]);
}

/* Positions behind the tokens a cache had: fixed now, since its lengths change in the run. */
static void fill_past(mhai_layer_job *job)
{
    mha_options *const o = &job->attention.options;
    if (!job->appends) {
        job->past = NULL;
        return;
    }
    for (ptrdiff_t b = 0; b < job->call.B; b++)
        job->past[b] = past_of(job, b);
    if (o->position == MHA_POSITION_BOTTOM_RIGHT) {
        o->position = MHA_POSITION_OFFSET;
        o->offsets = job->past;
    }
}

/* Can the cache take the new tokens? */
static mha_status check_append(const mhai_layer_job *job, int64_t *lengths)
{
    const mha_layer_call *const call = &job->call;
    const mhai_side *const side = &job->keys;
    for (ptrdiff_t b = 0; b < call->B; b++)
        lengths[b] = mhai_side_rows(side, b);
    return mhai_cache_room(call->cache, call->B, call->sequences, side->extent, lengths,
                           &job->attention.options);
}

/* ------------------------------------------------------------- the check ----- */

static mha_status check(mhai_layer_job *job, const mha_layer *layer, const mha_layer_call *call)
{
    mha_status status;
    if ((status = read_call(job, layer, call)) || (status = check_operator(job, &job->call)) ||
        (status = check_room(job)))
        return status;
    return check_buffers(job);
}

size_t mhai_layer_needs(const mha_layer *layer, const mha_layer_call *call, int threads)
{
    mhai_layer_job job;
    return check(&job, layer, call) ? 0 : count_work(&job, threads);
}

mha_status mhai_layer_prepare(mhai_layer_job *job, const mha_layer *layer,
                              const mha_layer_call *call, void *work, size_t work_size,
                              mha_pool *pool)
{
    mha_status status = check(job, layer, call);
    if (status)
        return status;
    const mha_options *const o = &job->attention.options;
    const size_t needed = count_work(job, mha_pool_threads(pool));
    if (!work)
        return mhai_fail(o, MHA_ERR_MEMORY, "no memory for %zu bytes of workspace", needed);
    if (work_size < needed)
        return mhai_fail(o, MHA_ERR_WORKSPACE,
                         "work has %zu bytes; %d threads need %zu (mha_layer_work_size)", work_size,
                         mha_pool_threads(pool), needed);
    if ((status = check_memory(job, work, needed)))
        return status;
    const uintptr_t misfit = (uintptr_t)work % MHAI_ALIGN;
    mhai_work carve = {.base = (char *)work + (misfit ? MHAI_ALIGN - misfit : 0)};
    carve_buffers(job, &carve);
    job->work = carve.base + carve.used;
    job->pool = pool;
    if (job->appends && (status = check_append(job, job->past)))
        return status;
    fill_past(job);
    fill_lists(job);
    fill_starts(job);
    fill_views(job);
    return MHA_OK;
}
