/* SPDX-License-Identifier: MIT */
/*
 * The layers of a stack over all rows. Every part of a layer is
 *
 *      x = after(x + inside(part(before(x))))
 *
 * The sum with the residual stream is not a pass of its own: it is made by the feed-forward's last
 * product, or by the next norm. Until then the part's output is `pending`.
 */
#include "model/forward.h"

#include <string.h>

typedef struct stack_job {
    const model_pass *pass;
    const model_stack *stack;
    ptrdiff_t rows, width;
    float *pending; /* still to be added to x; NULL: nothing */
} stack_job;

/* --------------------------------------------------------------- residual sums ----- */

typedef struct add_job {
    float *x;
    const float *y;
    ptrdiff_t width;
} add_job;

static void add_task(void *arg, int worker, ptrdiff_t row)
{
    const add_job *const job = arg;
    (void)worker;
    for (ptrdiff_t c = 0; c < job->width; c++)
        job->x[row * job->width + c] = job->y[row * job->width + c] + job->x[row * job->width + c];
}

static void add_pending(stack_job *job)
{
    add_job add = {job->pass->x, job->pending, job->width};
    if (job->pending)
        mha_pool_run(job->pass->pool, job->rows, add_task, &add);
    job->pending = NULL;
}

/* norm(x + pending) at `to`, with x brought up to date. */
static mha_status norm_stream(stack_job *job, const model_norm *norm, float *to)
{
    const model_pass *const pass = job->pass;
    mha_norm_config config = model_norm_config(pass->model, norm, job->width);
    const float *from = pass->x;
    if (job->pending) {
        from = job->pending;
        config.residual = config.sum = pass->x;
        config.residual_stride = config.sum_stride = job->width;
        job->pending = NULL;
    }
    return mha_norm_run(&config, job->rows, from, job->width, to, job->width, pass->pool);
}

/* ----------------------------------------------------------------- parts ----- */

/* The input of a part: x, or its norm. */
static mha_status part_input(stack_job *job, const model_norm *before, const float **input)
{
    if (before->weight) {
        *input = job->pass->normed;
        return norm_stream(job, before, job->pass->normed);
    }
    add_pending(job);
    *input = job->pass->x;
    return MHA_OK;
}

/* The output of a part joins the residual stream. */
static mha_status part_output(stack_job *job, const model_norms *norms)
{
    const model_pass *const pass = job->pass;
    float *const part = pass->part;
    if (norms->inside.weight) {
        const mha_norm_config inside = model_norm_config(pass->model, &norms->inside, job->width);
        const mha_status status =
            mha_norm_run(&inside, job->rows, part, job->width, part, job->width, pass->pool);
        if (status)
            return status;
    }
    if (!norms->after.weight) {
        job->pending = part;
        return MHA_OK;
    }
    mha_norm_config after = model_norm_config(pass->model, &norms->after, job->width);
    after.residual = pass->x;
    after.residual_stride = job->width;
    return mha_norm_run(&after, job->rows, part, job->width, pass->x, job->width, pass->pool);
}

/* Where the output of a part of layer n is copied to; NULL: it was not requested. */
static float *part_copy(const stack_job *job, int n, int part)
{
    const model_pass *const pass = job->pass;
    const bool last = job->stack == &pass->model->stack[model_last_stack(pass->model)];
    if (!last || !pass->call->parts)
        return NULL;
    return pass->call->parts +
           ((ptrdiff_t)n * stack_parts(job->stack) + part) * job->rows * job->width;
}

/* Whether layer n needs other relative positions than the layer before it: its heads are others. */
static bool is_relative_new(const stack_job *job, int n)
{
    const model_layer *const layer = job->stack->layer;
    return n == 0 || layer[n].self.kept != layer[n - 1].self.kept;
}

/* Replaces the outputs of patched heads, which have been captured, and computes pass->part from
 * them again. */
static mha_status patch_attention(const model_pass *pass, mha_attention_kind kind, int n,
                                  const attention_call *call)
{
    const model_intervention *const changed = pass->changed;
    const mha_layer *const layer = model_attention_at(pass->model, kind, n)->layer;
    const ptrdiff_t rows = pass->side[attention_stack(kind)].rows;
    const ptrdiff_t width = mha_layer_get_config(layer).Dv;
    const mha_out *const heads = &call->call.captured_heads;
    bool patched = false;
    for (ptrdiff_t p = 0; changed && p < changed->patch_count; p++) {
        const model_patch *const patch = &changed->patches[p];
        if (patch->kind != kind || patch->layer != n)
            continue;
        if (!heads->data)
            return MHA_ERR_FLAG;
        patched = true;
        for (ptrdiff_t i = 0; i < rows; i++)
            memcpy((float *)heads->data + patch->head * heads->sh + i * heads->sl,
                   patch->outputs + i * width, (size_t)width * sizeof(float));
    }
    const mha_options options = {.size = sizeof options, .q_starts = call->options.q_starts};
    const mha_layer_call output = {.size = sizeof output,
                                   .B = call->call.B,
                                   .L = call->call.L,
                                   .output = call->call.output,
                                   .options = &options};
    const mha_view view = {heads->data, heads->sb, heads->sh, heads->sl};
    return patched ? mha_layer_output(layer, &output, view, NULL, 0, pass->pool) : MHA_OK;
}

static mha_status run_attention(stack_job *job, mha_attention_kind kind, int n)
{
    const model_pass *const pass = job->pass;
    const model_attention *const attention = model_attention_at(pass->model, kind, n);
    if (!attention)
        return MHA_OK;
    attention_call call;
    const float *input;
    mha_status status = part_input(job, &attention->norms.before, &input);
    if (status)
        return status;
    const bool biased = kind != MHA_ATTENTION_CROSS && job->stack->relative;
    if (biased && is_relative_new(job, n))
        relative_fill(pass, attention_stack(kind), attention);
    layer_call_fill(pass, kind, n, &call);
    call.call.query.data = input;
    status =
        mha_layer_run(attention->layer, &call.call, pass->scratch, pass->scratch_size, pass->pool);
    if (!status)
        status = patch_attention(pass, kind, n, &call);
    if (status)
        return status;
    float *const copy = part_copy(job, n, kind == MHA_ATTENTION_CROSS ? 1 : 0);
    if (copy)
        memcpy(copy, pass->part, (size_t)(job->rows * job->width) * sizeof *copy);
    return part_output(job, &attention->norms);
}

static mha_status run_feed_forward(stack_job *job, int n)
{
    const model_pass *const pass = job->pass;
    const model_layer *const layer = &job->stack->layer[n];
    const model_norms *const norms = &layer->ff_norms;
    float *const copy = part_copy(job, n, stack_parts(job->stack) - 1);
    const float *input;
    mha_status status = part_input(job, &norms->before, &input);
    /* The sum below stays one with the product, so that results do not depend on the copy. */
    if (!status && copy)
        status =
            mha_feed_forward_run(layer->ff, job->rows, input, job->width, NULL, job->width, copy,
                                 job->width, pass->scratch, pass->scratch_size, pass->pool);
    if (status)
        return status;
    const bool direct = !norms->inside.weight;
    status = mha_feed_forward_run(layer->ff, job->rows, input, job->width, direct ? pass->x : NULL,
                                  job->width, direct ? pass->x : pass->part, job->width,
                                  pass->scratch, pass->scratch_size, pass->pool);
    if (status || !direct)
        return status ? status : part_output(job, norms);
    return norms->after.weight ? norm_stream(job, &norms->after, pass->x) : MHA_OK;
}

/* ----------------------------------------------------------------- layers ----- */

static void copy_stream(stack_job *job, int number)
{
    const size_t count = (size_t)(job->rows * job->width);
    float *const to = job->pass->call->streams + (size_t)number * count;
    add_pending(job);
    memcpy(to, job->pass->x, count * sizeof *to);
}

static mha_status finish(stack_job *job, float *to, const float **hidden)
{
    const model_pass *const pass = job->pass;
    if (job->stack->final_norm.weight) {
        *hidden = to ? to : pass->normed;
        return norm_stream(job, &job->stack->final_norm, to ? to : pass->normed);
    }
    add_pending(job);
    *hidden = to ? to : pass->x;
    if (to)
        memcpy(to, pass->x, (size_t)(job->rows * job->width) * sizeof *to);
    return MHA_OK;
}

mha_status stack_run(const model_pass *pass, int stack, float *to, const float **hidden)
{
    const bool last = stack == model_last_stack(pass->model);
    const mha_attention_kind kind =
        stack == STACK_ENCODER ? MHA_ATTENTION_ENCODER : MHA_ATTENTION_DECODER;
    stack_job job = {pass, &pass->model->stack[stack], pass->side[stack].rows,
                     pass->model->files.description.width, NULL};
    for (int n = 0; n < job.stack->layers; n++) {
        if (last && pass->call->streams)
            copy_stream(&job, n);
        mha_status status = run_attention(&job, kind, n);
        if (!status && kind == MHA_ATTENTION_DECODER)
            status = run_attention(&job, MHA_ATTENTION_CROSS, n);
        if (!status)
            status = run_feed_forward(&job, n);
        if (status)
            return status;
    }
    if (last && pass->call->streams)
        copy_stream(&job, job.stack->layers);
    if (last && !pass_needs_hidden(pass))
        return MHA_OK;
    return finish(&job, to, hidden);
}

/* ----------------------------------------------------------------- source ----- */

mha_status stack_store(const model_pass *pass)
{
    const mha_state *const state = pass->call->state;
    const pass_rows *const side = &pass->side[STACK_ENCODER];
    const ptrdiff_t width = pass->model->files.description.width;
    for (int n = 0; n < pass->model->stack[STACK_DECODER].layers; n++)
        for (ptrdiff_t b = 0; b < pass->B; b++) {
            const int64_t sequence = state_source(state, pass_sequence(pass, b));
            const mha_layer_call call = {
                .size = sizeof call,
                .B = 1,
                .S = (ptrdiff_t)(side->starts[b + 1] - side->starts[b]),
                .key = {pass->memory + (ptrdiff_t)side->starts[b] * width, 0, 0, width},
                .cache = state_cross(state, n),
                .cache_use = MHA_CACHE_STORE,
                .sequences = &sequence};
            mha_status status = mha_cache_truncate(call.cache, (ptrdiff_t)sequence, 0);
            if (!status)
                status = mha_layer_run(pass->model->stack[STACK_DECODER].layer[n].cross.layer,
                                       &call, pass->scratch, pass->scratch_size, pass->pool);
            if (status)
                return status;
        }
    return MHA_OK;
}
