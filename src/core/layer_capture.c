/* SPDX-License-Identifier: MIT */
/*
 * Copies of Q, K, V and the heads' outputs for a caller that looks at them. They are taken from the
 * buffers of the run, so requesting them changes no bit of the output.
 */
#include "core/layer.h"

#include <string.h>

/* One of the buffers, and where its copy goes. */
typedef struct copied {
    const char *name;
    mha_out to;
    const mhai_side *side;
    const float *from; /* rows of heads, side by side */
    ptrdiff_t stride, heads, width;
} copied;

enum { COPY_Q, COPY_K, COPY_V, COPY_HEADS, COPIES };

static void list_copies(const mhai_layer_job *job, copied list[COPIES])
{
    const mha_layer_call *const call = &job->call;
    const mha_layer_config *const c = &job->layer->config;
    const mhai_side *const q = &job->queries, *const k = &job->keys;
    list[COPY_Q] = (copied){"call.captured_q",
                            call->captured_q,
                            q,
                            job->projected[MHAI_Q],
                            job->stride[MHAI_Q],
                            c->H,
                            c->D};
    list[COPY_K] = (copied){"call.captured_k",
                            call->captured_k,
                            k,
                            job->projected[MHAI_K],
                            job->stride[MHAI_K],
                            c->G,
                            c->D};
    list[COPY_V] = (copied){"call.captured_v",
                            call->captured_v,
                            k,
                            job->projected[MHAI_V],
                            job->stride[MHAI_V],
                            c->G,
                            c->Dv};
    list[COPY_HEADS] = (copied){
        "call.captured_heads", call->captured_heads, q, job->heads, c->H * c->Dv, c->H, c->Dv};
}

mha_status mhai_layer_check_captured(const mhai_layer_job *job)
{
    copied list[COPIES];
    list_copies(job, list);
    for (int n = 0; n < COPIES; n++) {
        const bool of_keys = n == COPY_K || n == COPY_V;
        if (list[n].to.data && !(of_keys ? mhai_layer_makes_keys(job) : job->attends))
            return mhai_fail(&job->attention.options, MHA_ERR_FLAG,
                             "%s is requested, but a call with %s does not compute it",
                             list[n].name, of_keys ? "MHA_CACHE_RECALL" : "MHA_CACHE_STORE");
    }
    return MHA_OK;
}

void mhai_layer_add_captured(mhai_regions *list, const mhai_layer_job *job)
{
    copied copies[COPIES];
    list_copies(job, copies);
    for (int n = 0; n < COPIES; n++)
        if (copies[n].to.data)
            mhai_regions_rows(list, true, copies[n].name, mhai_as_view(copies[n].to), MHA_F32,
                              copies[n].heads, copies[n].side->extent, copies[n].width,
                              copies[n].side->starts);
}

void mhai_layer_rows_out(const mhai_side *side, const float *from, ptrdiff_t stride,
                         ptrdiff_t heads, ptrdiff_t width, const mha_out *to)
{
    for (ptrdiff_t b = 0; to->data && b < side->B; b++) {
        const ptrdiff_t first = side->starts ? (ptrdiff_t)side->starts[b] * to->sl : b * to->sb;
        for (ptrdiff_t i = 0; i < mhai_side_rows(side, b); i++) {
            const float *head = from + (mhai_side_first(side, b) + i) * stride;
            float *const row = (float *)to->data + first + i * to->sl;
            for (ptrdiff_t h = 0; h < heads; h++, head += width)
                memcpy(row + h * to->sh, head, sizeof(float) * (size_t)width);
        }
    }
}

void mhai_layer_rows_in(const mhai_side *side, const mha_view *from, ptrdiff_t heads,
                        ptrdiff_t width, float *to, ptrdiff_t stride)
{
    for (ptrdiff_t b = 0; b < side->B; b++) {
        const ptrdiff_t first = side->starts ? (ptrdiff_t)side->starts[b] * from->sl : b * from->sb;
        for (ptrdiff_t i = 0; i < mhai_side_rows(side, b); i++) {
            float *head = to + (mhai_side_first(side, b) + i) * stride;
            const float *const row = (const float *)from->data + first + i * from->sl;
            for (ptrdiff_t h = 0; h < heads; h++, head += width)
                memcpy(head, row + h * from->sh, sizeof(float) * (size_t)width);
        }
    }
}

static void copy_rows(const copied *copy)
{
    mhai_layer_rows_out(copy->side, copy->from, copy->stride, copy->heads, copy->width, &copy->to);
}

void mhai_layer_capture_projected(const mhai_layer_job *job)
{
    copied list[COPIES];
    list_copies(job, list);
    for (int n = COPY_Q; n <= COPY_V; n++)
        copy_rows(&list[n]);
}

void mhai_layer_capture_heads(const mhai_layer_job *job)
{
    copied list[COPIES];
    list_copies(job, list);
    copy_rows(&list[COPY_HEADS]);
}
