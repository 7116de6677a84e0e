/* SPDX-License-Identifier: MIT */
/*
 * Section 4 of mha_model.h. The workspace of a call is counted and carved here, then the parts of a
 * pass follow each other: encoder, its keys and values into the state, decoder, outputs.
 */
#include "model/forward.h"

#include <stdlib.h>
#include <string.h>

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* --------------------------------------------------------------- workspace ----- */

static void carve_rows(model_pass *pass, model_work *work)
{
    const model_description *const d = &pass->model->files.description;
    ptrdiff_t rows = 0, width = 0;
    for (int s = 0; s < STACKS; s++) {
        const pass_rows *const side = &pass->side[s];
        rows = side->rows > rows ? side->rows : rows;
        if (side->rows > 0 && d->stack[s].embedding.width > width)
            width = d->stack[s].embedding.width;
        if (side->rows > 0 && pass->model->stack[s].project)
            pass->embedded = work_take(work, side->rows, sizeof(float) * (size_t)width);
    }
    const size_t row = sizeof(float) * (size_t)d->width;
    pass->x = work_take(work, rows, row);
    pass->normed = work_take(work, rows, row);
    pass->part = work_take(work, rows, row);
    pass->row_buffers = work_take(work, pass->threads, sizeof(float) * (size_t)width);
    if (pass->call->pixels) {
        const size_t across = (size_t)model_patches_across(d);
        const size_t pixels = (size_t)d->channels * (size_t)d->patch * (size_t)d->patch;
        pass->pixels = work_take(work, pass->B, sizeof(float) * across * across * pixels);
    }
    pass->memory = pass->call->source_hidden;
    if (pass->model->stack[STACK_DECODER].layers && !pass->memory)
        pass->memory = work_take(work, pass->side[STACK_ENCODER].rows, row);
}

static void carve_outputs(model_pass *pass, model_work *work)
{
    const model_description *const d = &pass->model->files.description;
    ptrdiff_t rows = 0, width = d->width;
    if (pass->call->logits) {
        rows = pass_logit_rows(pass);
        width = logits_width(pass->model);
    }
    if (pass->call->pooled || pass->call->labels) {
        rows = pass->B > rows ? pass->B : rows;
        width = d->labels > width ? d->labels : width;
    }
    pass->chosen = work_take(work, rows, sizeof(float) * (size_t)width);
    pass->transformed = work_take(work, rows, sizeof(float) * (size_t)width);
}

static void carve_ignored(model_pass *pass, model_work *work)
{
    const size_t longest = (size_t)pass->side[STACK_ENCODER].longest;
    if (pass->call->source_ignored)
        pass->ignored = work_take(work, pass->B, longest);
}

static void carve(model_pass *pass, model_work *work)
{
    carve_ignored(pass, work);
    pass->past = work_take(work, pass->call->state ? pass->B : 0, sizeof(int64_t));
    if (pass->call->state)
        pass->side[STACK_DECODER].past = pass->past;
    carve_rows(pass, work);
    for (int s = 0; s < STACKS; s++) {
        const size_t heads = (size_t)pass->model->files.description.stack[s].attention.heads;
        const ptrdiff_t lines = pass->side[s].rows == 0 ? 0 : pass->side[s].past ? pass->B : 1;
        pass->relative[s] = work_take(
            work, pass->side[s].rows ? lines * relative_width(pass, s) : 0, sizeof(float) * heads);
    }
    carve_outputs(pass, work);
}

/* ----------------------------------------------------------------- scratch ----- */

/* 0: the call is not valid for the layer. */
static size_t attention_size(const model_pass *pass, mha_attention_kind kind, int n)
{
    attention_call call;
    layer_call_fill(pass, kind, n, &call);
    return mha_layer_work_size(model_attention_at(pass->model, kind, n)->layer, &call.call,
                               pass->threads);
}

/* What the layer says about a call that it refuses. */
static mha_status attention_error(const model_pass *pass, mha_attention_kind kind, int n)
{
    attention_call call;
    char nothing;
    layer_call_fill(pass, kind, n, &call);
    const mha_status status = mha_layer_run(model_attention_at(pass->model, kind, n)->layer,
                                            &call.call, &nothing, 0, NULL);
    return status ? status : MHA_ERR_FLAG;
}

static mha_status attentions_size(const model_pass *pass, mha_attention_kind kind, size_t *size)
{
    const int layers = pass->model->stack[attention_stack(kind)].layers;
    bool plain = false; /* was the layer before counted without a capture? */
    for (int n = 0; n < layers; n++) {
        const model_attention *const attention = model_attention_at(pass->model, kind, n);
        const bool captured = pass_capture(pass, kind, n) != NULL;
        if (!attention || (attention->same_work && plain && !captured && !pass->call->heads))
            continue;
        const size_t needed = attention_size(pass, kind, n);
        if (needed == 0)
            return attention_error(pass, kind, n);
        *size = larger(*size, needed);
        plain = !captured;
    }
    return MHA_OK;
}

static size_t store_size(const model_pass *pass)
{
    const mha_layer_call call = {.size = sizeof call,
                                 .B = 1,
                                 .S = pass->side[STACK_ENCODER].longest,
                                 .key = {pass->memory, 0, 0, 1},
                                 .cache = state_cross(pass->call->state, 0),
                                 .cache_use = MHA_CACHE_STORE};
    size_t size = 0;
    for (int n = 0; n < pass->model->stack[STACK_DECODER].layers; n++) {
        const model_attention *const cross = &pass->model->stack[STACK_DECODER].layer[n].cross;
        mha_layer_call each = call;
        each.cache = state_cross(pass->call->state, n);
        if (!cross->same_work)
            size = larger(size, mha_layer_work_size(cross->layer, &each, pass->threads));
    }
    return size;
}

static mha_status stack_scratch(const model_pass *pass, int s, size_t *size)
{
    const model_stack *const stack = &pass->model->stack[s];
    const ptrdiff_t rows = pass->side[s].rows;
    const mha_attention_kind kind =
        s == STACK_ENCODER ? MHA_ATTENTION_ENCODER : MHA_ATTENTION_DECODER;
    mha_status status = attentions_size(pass, kind, size);
    if (!status && s == STACK_DECODER)
        status = attentions_size(pass, MHA_ATTENTION_CROSS, size);
    for (int n = 0; n < stack->layers; n++)
        *size = larger(*size, mha_feed_forward_work_size(stack->layer[n].ff, rows, pass->threads));
    if (stack->project)
        *size = larger(*size, mha_linear_work_size(stack->project, rows, pass->threads));
    if (stack->patches)
        *size = larger(*size, mha_linear_work_size(stack->patches, rows, pass->threads));
    return status;
}

static mha_status scratch_size(const model_pass *pass, size_t *size)
{
    mha_status status = MHA_OK;
    *size = 0;
    for (int s = 0; s < STACKS && !status; s++)
        if (pass->side[s].rows > 0)
            status = stack_scratch(pass, s, size);
    const bool stores = pass->call->state && pass->side[STACK_ENCODER].rows > 0;
    if (!status && stores)
        *size = larger(*size, store_size(pass));
    if (pass->call->logits)
        *size = larger(*size, logits_scratch(pass->model, pass_logit_rows(pass), pass->threads));
    if (pass->call->pooled || pass->call->labels)
        *size = larger(*size, pool_scratch(pass->model, pass->B, pass->threads));
    return status;
}

/* Bytes of the whole workspace. Leaves the size of the scratch in the pass. */
static mha_status count_work(model_pass *pass, size_t *bytes)
{
    model_work work = {0};
    carve(pass, &work);
    mha_status status = scratch_size(pass, &pass->scratch_size);
    if (status)
        return status;
    work_take(&work, (ptrdiff_t)pass->scratch_size, 1);
    if (work.overflow)
        return model_fail(pass->call->message, pass->call->message_size, MHA_ERR_OVERFLOW,
                          "the call needs more memory than there can be");
    *bytes = work.used + WORK_ALIGN - 1;
    return MHA_OK;
}

/* ---------------------------------------------------------------------- run ----- */

/* The masks of all sources, which are packed in the call, at equal distances. */
static void fill_ignored(const model_pass *pass)
{
    const pass_rows *const source = &pass->side[STACK_ENCODER];
    for (ptrdiff_t b = 0; pass->call->source_ignored && b < pass->B; b++)
        memcpy(pass->ignored + b * source->longest, pass->call->source_ignored + source->starts[b],
               (size_t)(source->starts[b + 1] - source->starts[b]));
}

static void fill_lists(const model_pass *pass)
{
    fill_ignored(pass);
    const mha_state *const state = pass->call->state;
    for (ptrdiff_t b = 0; state && b < pass->B; b++)
        pass->past[b] = state->lengths[pass_sequence(pass, b)];
}

static mha_status run_source(const model_pass *pass)
{
    const float *hidden;
    mha_status status = embed_rows(pass, STACK_ENCODER);
    status = status ? status : stack_run(pass, STACK_ENCODER, pass->memory, &hidden);
    return !status && pass->call->state ? stack_store(pass) : status;
}

static mha_status run_outputs(const model_pass *pass, const float *hidden)
{
    const mha_model_call *const c = pass->call;
    mha_status status = MHA_OK;
    if (c->logits)
        status = logits_run(pass->model, hidden, c->logit_rows, pass_logit_rows(pass), c->logits,
                            pass->chosen, pass->transformed, pass->scratch, pass->scratch_size,
                            pass->pool);
    return status ? status : pool_outputs(pass, hidden);
}

static mha_status run_pass(const model_pass *pass)
{
    const int last = model_last_stack(pass->model);
    const float *hidden = NULL;
    mha_status status = MHA_OK;
    fill_lists(pass);
    if (last == STACK_DECODER && pass->side[STACK_ENCODER].rows > 0)
        status = run_source(pass);
    if (pass->side[last].rows == 0)
        return status;
    status = status ? status : embed_rows(pass, last);
    status = status ? status : stack_run(pass, last, pass->call->hidden, &hidden);
    return !status && hidden ? run_outputs(pass, hidden) : status;
}

/* The state gets the tokens of the call, or forgets what a failed call has appended. */
static void settle(const model_pass *pass, mha_status status)
{
    mha_state *const state = pass->call->state;
    const pass_rows *const side = &pass->side[STACK_DECODER], *const source =
                                                                  &pass->side[STACK_ENCODER];
    for (ptrdiff_t b = 0; b < pass->B; b++) {
        const ptrdiff_t n = pass_sequence(pass, b);
        for (int layer = 0; status && layer < pass->model->stack[STACK_DECODER].layers; layer++)
            mha_cache_truncate(state_self(state, layer), n, (ptrdiff_t)state->lengths[n]);
        if (source->rows > 0)
            state->source_lengths[state_source(state, n)] =
                status ? 0 : source->starts[b + 1] - source->starts[b];
        if (status)
            continue;
        const int64_t count = side->starts[b + 1] - side->starts[b];
        memcpy(state->tokens + n * state->capacity + state->lengths[n], side->ids + side->starts[b],
               (size_t)count * sizeof *state->tokens);
        state->lengths[n] += count;
    }
}

static mha_status run_in(model_pass *pass, void *work)
{
    model_work carved = work_begin(work);
    const size_t size = pass->scratch_size;
    carve(pass, &carved);
    pass->scratch = work_take(&carved, (ptrdiff_t)size, 1);
    const mha_status status = run_pass(pass);
    if (pass->call->state)
        settle(pass, status);
    return status;
}

static mha_status run_call(const mha_model *model, const mha_model_call *call,
                           const model_intervention *changed, void *work, size_t work_size,
                           mha_pool *pool)
{
    model_pass pass;
    size_t needed;
    mha_status status = pass_check(&pass, model, call);
    if (status || pass.B == 0)
        return status;
    pass.changed = changed;
    pass.pool = pool;
    pass.threads = mha_pool_threads(pool);
    status = count_work(&pass, &needed);
    if (status)
        return status;
    if (work && work_size < needed)
        return model_fail(call->message, call->message_size, MHA_ERR_WORKSPACE,
                          "work has %zu bytes; %d threads need %zu (mha_model_work_size)",
                          work_size, pass.threads, needed);
    void *const own = work ? NULL : work_allocate(needed);
    if (!work && !own)
        return model_fail(call->message, call->message_size, MHA_ERR_MEMORY,
                          "no memory for %zu bytes of workspace", needed);
    status = run_in(&pass, work ? work : own);
    free(own);
    return status;
}

mha_status mha_model_run(const mha_model *model, const mha_model_call *call, void *work,
                         size_t work_size, mha_pool *pool)
{
    return model && call ? run_call(model, call, NULL, work, work_size, pool) : MHA_ERR_NULL;
}

mha_status model_run_changed(const mha_model *model, const mha_model_call *call,
                             const model_intervention *changed, mha_pool *pool)
{
    if (call->B != 1 || call->state)
        return MHA_ERR_FLAG;
    return run_call(model, call, changed, NULL, 0, pool);
}

size_t mha_model_work_size(const mha_model *model, const mha_model_call *call, int threads)
{
    model_pass pass;
    size_t needed;
    if (!model || !call || threads < 1 || threads > MHA_MAX_THREADS ||
        pass_check(&pass, model, call))
        return 0;
    if (pass.B == 0)
        return 1;
    pass.threads = threads;
    if (call->state)
        pass.longest_past = call->state->capacity;
    return count_work(&pass, &needed) ? 0 : needed;
}
