/* SPDX-License-Identifier: MIT */
/*
 * A layer in two halves, for those who compute the attention between them themselves, such as
 * libmha_mpi:
 *
 *      X --- W_Q | W_K | W_V, norm, rotation ---> Q K V       mha_layer_project()
 *      heads --- W_O ---> Y                                   mha_layer_output()
 *
 * Both run the parts that mha_layer_run() is made of, so their results have its bits.
 */
#include "core/layer.h"

#include <string.h>

/* --------------------------------------------------------------- forward ----- */

/* The call as a half of the layer sees it: the output has no tape. */
static mha_status read_half(const mha_layer_call *call, const mhai_layer_between *between,
                            mha_layer_call *half)
{
    if (!mhai_struct_read(call, half, offsetof(mha_layer_call, tape), sizeof *half))
        return MHA_ERR_STRUCT;
    if (between->part == MHAI_OUTPUT)
        half->tape = NULL;
    return MHA_OK;
}

/* Checks one half and makes its job; *buffer is freed by the caller. */
static mha_status begin(mhai_layer_job *job, const mha_layer *layer, const mha_layer_call *call,
                        const mhai_layer_between *between, void *work, size_t work_size,
                        mha_pool *pool, mhai_buffer *buffer)
{
    mha_layer_call half;
    *buffer = (mhai_buffer){0};
    if (read_half(call, between, &half))
        return MHA_ERR_STRUCT;
    if (!work)
        work_size = mhai_layer_needs(layer, &half, mha_pool_threads(pool));
    *buffer = mhai_buffer_get(work, work_size);
    return mhai_layer_prepare(job, layer, &half, between, buffer->data, work_size, pool);
}

mha_status mha_layer_project(const mha_layer *layer, const mha_layer_call *call, void *work,
                             size_t work_size, mha_pool *pool)
{
    const mhai_layer_between between = {.part = MHAI_PROJECT};
    mhai_layer_job job;
    mhai_buffer buffer;
    if (!layer || !call)
        return MHA_ERR_NULL;
    const mha_status status = begin(&job, layer, call, &between, work, work_size, pool, &buffer);
    if (status == MHA_OK) {
        mhai_layer_project(&job);
        mhai_layer_norm_rope(&job);
        mhai_layer_capture_projected(&job);
    }
    mhai_buffer_free(buffer);
    return status;
}

mha_status mha_layer_output(const mha_layer *layer, const mha_layer_call *call, mha_view heads,
                            void *work, size_t work_size, mha_pool *pool)
{
    const mhai_layer_between between = {.part = MHAI_OUTPUT, .heads = heads};
    mhai_layer_job job;
    mhai_buffer buffer;
    if (!layer || !call)
        return MHA_ERR_NULL;
    const mha_status status = begin(&job, layer, call, &between, work, work_size, pool, &buffer);
    if (status == MHA_OK) {
        const mha_layer_config *const c = &layer->config;
        mhai_layer_rows_in(&job.queries, &heads, c->H, c->Dv, job.heads, c->H * c->Dv);
        mhai_layer_combine(&job);
    }
    mhai_buffer_free(buffer);
    return status;
}

/* -------------------------------------------------------------- backward ----- */

static mha_status begin_back(mhai_layer_back *back, const mha_layer *layer,
                             const mha_layer_call *call, const mha_layer_gradients *gradients,
                             const mhai_layer_between *between, void *work, size_t work_size,
                             mha_pool *pool, mhai_buffer *buffer)
{
    mha_layer_call half;
    *buffer = (mhai_buffer){0};
    if (read_half(call, between, &half))
        return MHA_ERR_STRUCT;
    if (!work)
        work_size = mhai_layer_back_needs(layer, &half, mha_pool_threads(pool));
    *buffer = mhai_buffer_get(work, work_size);
    return mhai_layer_back_prepare(back, layer, &half, gradients, between, buffer->data, work_size,
                                   pool);
}

/* The gradient of Q, K or V. A row that is a key but no query, or the other way round, has 0 for
 * the other. */
static void take_gradient(const mhai_layer_back *back, int which, const mha_view *given)
{
    const mhai_layer_job *const job = &back->job;
    const mha_layer_config *const c = &job->layer->config;
    const mhai_side *const side = which == MHAI_Q ? &job->queries : &job->keys;
    const ptrdiff_t heads = which == MHAI_Q ? c->H : c->G, width = which == MHAI_V ? c->Dv : c->D;
    for (ptrdiff_t r = 0; side->lengths && r < mhai_layer_room(job, side); r++)
        memset(back->d_projected[which] + r * job->stride[which], 0,
               sizeof(float) * (size_t)(heads * width));
    mhai_layer_rows_in(side, given, heads, width, back->d_projected[which], job->stride[which]);
}

mha_status mha_layer_project_backward(const mha_layer *layer, const mha_layer_call *call,
                                      mha_view d_q, mha_view d_k, mha_view d_v,
                                      const mha_layer_gradients *gradients, void *work,
                                      size_t work_size, mha_pool *pool)
{
    const mhai_layer_between between = {.part = MHAI_PROJECT, .d_q = d_q, .d_k = d_k, .d_v = d_v};
    mhai_layer_back back;
    mhai_buffer buffer;
    if (!layer || !call)
        return MHA_ERR_NULL;
    const mha_status status =
        begin_back(&back, layer, call, gradients, &between, work, work_size, pool, &buffer);
    const mha_view *const given[] = {&d_q, &d_k, &d_v};
    for (int p = 0; status == MHA_OK && p < MHAI_PROJECTIONS; p++)
        if (back.wants[p])
            take_gradient(&back, p, given[p]);
    if (status == MHA_OK)
        mhai_layer_back_inputs(&back);
    mhai_buffer_free(buffer);
    return status;
}

mha_status mha_layer_output_backward(const mha_layer *layer, const mha_layer_call *call,
                                     mha_view heads, mha_out d_heads,
                                     const mha_layer_gradients *gradients, void *work,
                                     size_t work_size, mha_pool *pool)
{
    const mhai_layer_between between = {.part = MHAI_OUTPUT, .heads = heads, .d_heads = d_heads};
    mhai_layer_back back;
    mhai_buffer buffer;
    if (!layer || !call)
        return MHA_ERR_NULL;
    const mha_status status =
        begin_back(&back, layer, call, gradients, &between, work, work_size, pool, &buffer);
    if (status == MHA_OK) {
        const mha_layer_config *const c = &layer->config;
        const ptrdiff_t width = c->H * c->Dv;
        mhai_layer_rows_in(&back.job.queries, &heads, c->H, c->Dv, back.job.heads, width);
        mhai_layer_back_output(&back);
        mhai_layer_rows_out(&back.job.queries, back.d_heads, width, c->H, c->Dv, &d_heads);
    }
    mhai_buffer_free(buffer);
    return status;
}
