/* SPDX-License-Identifier: MIT */
/*
 * A call of a layer is checked here, once:
 *
 *      read_call        structs, extents, how the cache is used
 *      check_operator   the options, as the operator will see them
 *      check_room       S, rings and windows
 *      check_memory     inputs, outputs, workspace
 *
 * Nothing but the workspace is written before all checks have passed.
 */
#include "core/layer.h"
#include "core/region.h"

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
            return mhai_fail(o, MHA_ERR_SHAPE, "call.%s is %td; extents must not be negative",
                             names[n], extents[n]);
        if (extents[n] > MHAI_MAX_EXTENT)
            return mhai_fail(o, MHA_ERR_OVERFLOW, "call.%s is %td: larger than any memory",
                             names[n], extents[n]);
    }
    return MHA_OK;
}

/* A key or value that is taken from another input must be as wide as that input. */
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
    if (o->k_starts)
        return mhai_fail(o, MHA_ERR_FLAG,
                         "options.k_starts does not go with a cache, which knows its sequences");
    if (call->cache_use != MHA_CACHE_STEP)
        return MHA_OK;
    if (o->k_lengths)
        return mhai_fail(o, MHA_ERR_FLAG,
                         "options.k_lengths does not go with MHA_CACHE_STEP, which attends to all "
                         "tokens; q_lengths says how many are new");
    if (o->position != MHA_POSITION_UNSET && o->position != MHA_POSITION_BOTTOM_RIGHT)
        return mhai_fail(
            o, MHA_ERR_POSITION,
            "options.position is %d; with MHA_CACHE_STEP new tokens follow those of the cache: "
            "leave it unset",
            (int)o->position);
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
    if (!mhai_struct_read(call, &job->call, offsetof(mha_layer_call, tape), sizeof job->call))
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
    if ((status = mhai_layer_check_captured(job)) ||
        (status = cached ? check_cache_use(job) : complete_keys(job)))
        return status;
    return mhai_layer_makes_keys(job) ? check_inputs(job) : MHA_OK;
}

/* -------------------------------------------------------- check_operator ----- */

static bool same_starts(const int64_t *a, const int64_t *b, ptrdiff_t B)
{
    return a == b || (a && b && memcmp(a, b, sizeof *a * (size_t)(B + 1)) == 0);
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
           mhai_layer_same(&call->query, mhai_layer_input(call, MHAI_K)) &&
           mhai_layer_same(&call->query, mhai_layer_input(call, MHAI_V)) &&
           same_starts(o->q_starts, o->k_starts, call->B);
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

/* The operator's part of the call: heads of f32, in buffers that are carved later. */
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
    if (!mhai_aligned(call->sequences, sizeof *call->sequences))
        return mhai_fail(o, MHA_ERR_ALIGN, "call.sequences is not aligned to its elements");
    for (ptrdiff_t b = 0; b < call->B; b++)
        if (!mhai_cache_has(call->cache, call->sequences ? call->sequences[b] : b))
            return mhai_fail(
                o, MHA_ERR_SEQUENCE,
                "batch %td belongs to sequence %lld; the cache has %td, numbered from 0", b,
                (long long)(call->sequences ? call->sequences[b] : b),
                call->cache->config.sequences);
    return MHA_OK;
}

static bool has_window(const mha_options *o)
{
    return (o->flags & MHA_WINDOW) && o->window_left >= 0;
}

/* Every row of a step must find all keys that it sees in the ring. */
static mha_status check_ring(const mhai_layer_job *job, ptrdiff_t longest)
{
    const mha_options *const o = &job->attention.options;
    const ptrdiff_t kept = job->call.cache->page_tokens;
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

/* Columns of masks and weights: all tokens, with those of this call. */
static mha_status check_step(mhai_layer_job *job)
{
    ptrdiff_t longest = 0;
    for (ptrdiff_t b = 0; b < job->call.B; b++)
        longest = mhai_max(longest, mhai_layer_past(job, b) + mhai_side_rows(&job->queries, b));
    if (job->call.S != 0 && job->call.S < longest)
        return mhai_fail(&job->attention.options, MHA_ERR_SHAPE,
                         "call.S is %td columns but a sequence will have %td tokens; use at least "
                         "that many, or 0",
                         job->call.S, longest);
    job->attention.shape.S = mhai_max(job->call.S, longest);
    return job->call.cache->config.kind == MHA_CACHE_RING ? check_ring(job, longest) : MHA_OK;
}

/* The caller's arrays are read only after they were checked. */
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

void mhai_layer_add_rows(mhai_regions *list, bool output, const char *name, mha_view x,
                         mha_dtype type, const mhai_side *side, ptrdiff_t width)
{
    x.sh = 0;
    mhai_regions_rows(list, output, name, x, type, 1, side->extent, width, side->starts);
}

static void add_positions(mhai_regions *list, const char *name, const mhai_side *side)
{
    const ptrdiff_t rows = side->starts ? (ptrdiff_t)side->starts[side->B] : side->B * side->extent;
    mhai_regions_array(list, name, side->positions, rows, sizeof(int64_t));
}

void mhai_layer_add_inputs(mhai_regions *list, const mhai_layer_job *job)
{
    const mha_layer_call *const call = &job->call;
    const mha_layer_config *const c = &job->layer->config;
    if (job->attends) {
        mhai_layer_add_rows(list, false, "call.query", call->query, call->input_type, &job->queries,
                            c->E);
        add_positions(list, "call.q_positions", &job->queries);
    }
    if (call->key.data)
        mhai_layer_add_rows(list, false, "call.key", call->key, call->input_type, &job->keys,
                            c->key_width);
    if (call->value.data)
        mhai_layer_add_rows(list, false, "call.value", call->value, call->input_type, &job->keys,
                            c->value_width);
    if (mhai_layer_makes_keys(job))
        add_positions(list, "call.k_positions", &job->keys);
}

mha_status mhai_layer_check_memory(const mhai_layer_job *job, size_t tape_size, const void *work,
                                   size_t work_size)
{
    const mha_layer_call *const call = &job->call;
    mhai_regions list;
    mhai_regions_begin(&list, &job->attention.options, call->B);
    if (job->part != MHAI_OUTPUT)
        mhai_layer_add_inputs(&list, job);
    if (job->attends && job->part != MHAI_PROJECT)
        mhai_layer_add_rows(&list, true, "call.output", mhai_as_view(call->output),
                            call->output_type, &job->queries, job->layer->config.output_width);
    if (job->attends && job->part == MHAI_WHOLE)
        mhai_regions_options(&list, &job->attention,
                             job->attention.shape.S + mhai_extras(&job->attention));
    mhai_regions_array(&list, "call.sequences", call->sequences, call->B, sizeof(int64_t));
    if (job->part != MHAI_OUTPUT)
        mhai_layer_add_captured(&list, job);
    if (job->part == MHAI_OUTPUT)
        mhai_regions_rows(&list, false, "heads", job->given, MHA_F32, job->layer->config.H,
                          job->queries.extent, job->layer->config.Dv, job->queries.starts);
    const mha_view tape = {call->tape, 0, 0, 0};
    list.B = 1;
    if (call->tape)
        mhai_regions_rows(&list, true, "call.tape", tape, MHA_F32, 1, 1,
                          (ptrdiff_t)(tape_size / sizeof(float)), NULL);
    return mhai_regions_check(&list, work, work_size);
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

mha_status mhai_layer_check_append(const mhai_layer_job *job, int64_t *lengths)
{
    const mha_layer_call *const call = &job->call;
    const mhai_side *const side = &job->keys;
    for (ptrdiff_t b = 0; b < call->B; b++)
        lengths[b] = mhai_side_rows(side, b);
    return mhai_cache_room(call->cache, call->B, call->sequences, side->extent, lengths,
                           &job->attention.options);
}

mha_status mhai_layer_check_tape(const mhai_layer_job *job, size_t needed)
{
    const mha_options *const o = &job->attention.options;
    if (job->call.cache)
        return mhai_fail(o, MHA_ERR_FLAG,
                         "call.tape does not go with a cache: gradients need all keys in one call");
    if (o->head_modes)
        return mhai_fail(o, MHA_ERR_FLAG,
                         "options.head_modes does not go with a tape: it is for the forward pass");
    const mha_linear *const blocks = mhai_layer_in_blocks(job->layer);
    if (blocks)
        return mhai_fail(o, MHA_ERR_DTYPE,
                         "weights in %s have no backward pass, so call.tape must be NULL",
                         mhai_dtype_name(blocks->stored));
    if ((uintptr_t)job->call.tape % MHAI_ALIGN)
        return mhai_fail(o, MHA_ERR_ALIGN, "call.tape is not aligned to %d bytes", MHAI_ALIGN);
    if (job->call.tape_size < needed)
        return mhai_fail(o, MHA_ERR_WORKSPACE,
                         "call.tape has %zu bytes; this call needs %zu (mha_layer_tape_size)",
                         job->call.tape_size, needed);
    return MHA_OK;
}

/* ------------------------------------------------------------- the check ----- */

mha_status mhai_layer_check(mhai_layer_job *job, const mha_layer *layer, const mha_layer_call *call)
{
    mha_status status;
    if ((status = read_call(job, layer, call)) || (status = check_operator(job, &job->call)) ||
        (status = check_room(job)))
        return status;
    return check_buffers(job);
}
