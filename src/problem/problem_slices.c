/* SPDX-License-Identifier: MIT */
/*
 * Snapshots and slices. The laws of the tests (a batch alone gives the bits it gives among others,
 * a sequence may be cut anywhere) are written with them; problem_check.c compares runs by them.
 */
#include "problem/problem_slices.h"

#include <stdlib.h>
#include <string.h>

#include "problem/problem_masks.h"

/* ------------------------------------------------------------- snapshots ----- */

bool snapshot_take(snapshot *s, const problem *p)
{
    memset(s, 0, sizeof *s);
    for (int id = TENSOR_O; id < TENSOR_COUNT; id++) {
        const tensor *const t = &p->tensors[id];
        if (t->memory == NULL)
            continue;
        s->bytes[id] = malloc(t->bytes + 1);
        if (s->bytes[id] == NULL) {
            snapshot_free(s);
            return false;
        }
        memcpy(s->bytes[id], t->memory, t->bytes);
    }
    return true;
}

bool snapshot_same(const snapshot *s, const problem *p)
{
    for (int id = TENSOR_O; id < TENSOR_COUNT; id++) {
        const tensor *const t = &p->tensors[id];
        if (s->bytes[id] && t->memory && memcmp(s->bytes[id], t->memory, t->bytes) != 0)
            return false;
    }
    return true;
}

void snapshot_forget(snapshot *s, tensor_id id)
{
    free(s->bytes[id]);
    s->bytes[id] = NULL;
}

void snapshot_free(snapshot *s)
{
    for (int id = TENSOR_O; id < TENSOR_COUNT; id++)
        snapshot_forget(s, (tensor_id)id);
}

/* ---------------------------------------------------------------- slices ----- */

static const void *advance(const void *data, mha_dtype type, ptrdiff_t elements)
{
    return (const char *)data + elements * (ptrdiff_t)mha_dtype_size(type);
}

static void advance_view(mha_view *view, mha_dtype type, ptrdiff_t elements)
{
    view->data = view->data ? advance(view->data, type, elements) : NULL;
}

static void advance_bytes(mha_view *view, ptrdiff_t bytes)
{
    view->data = view->data ? (const char *)view->data + bytes : NULL;
}

static void advance_out(mha_out *out, mha_dtype type, ptrdiff_t elements)
{
    out->data = out->data ? (char *)out->data + elements * (ptrdiff_t)mha_dtype_size(type) : NULL;
}

static mha_dtype lse_type(const attention_call *p)
{
    return p->shape.q_type == MHA_F64 ? MHA_F64 : MHA_F32;
}

/* Move the origin of everything indexed (b,h,i,j). */
static void advance_masks(mha_options *o, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    mha_view *const bytes[] = {&o->attend_mask, &o->ignore_mask};
    for (int n = 0; n < 2; n++)
        advance_bytes(bytes[n], b * bytes[n]->sb + h * bytes[n]->sh + i * bytes[n]->sl);
    mha_view *const numbers[] = {&o->add_mask, &o->bias};
    const mha_dtype types[] = {o->add_mask_type, o->bias_type};
    for (int n = 0; n < 2; n++) {
        const ptrdiff_t by = b * numbers[n]->sb + h * numbers[n]->sh + i * numbers[n]->sl;
        advance_view(numbers[n], types[n], by);
    }
    mha_out *const w = &o->weights;
    advance_out(w, o->weights_type, b * w->sb + h * w->sh + i * w->sl);
}

void slice_begin(slice *s, const attention_call *call)
{
    s->call = *call;
    mha_options *const o = &s->call.options;
    const bool lists = o->weights_heads || o->weights_rows || (o->flags & MHA_AVERAGE_WEIGHTS);
    if (call->shape.B > SLICE_BATCHES)
        abort();
    if (lists || o->q_starts) {
        o->weights = (mha_out){0};
        o->weights_heads = o->weights_rows = NULL;
        o->flags &= ~(unsigned)MHA_AVERAGE_WEIGHTS;
    }
    for (ptrdiff_t b = 0; b < call->shape.B; b++) {
        s->offsets[b] = call_offset(call, b);
        s->q_lengths[b] = call_queries(call, b);
        s->k_lengths[b] = call_keys(call, b);
    }
    o->position = MHA_POSITION_OFFSET;
    o->offsets = s->offsets;
    o->q_lengths = s->q_lengths;
    o->k_lengths = s->k_lengths;
}

void slice_batch(slice *s, ptrdiff_t b)
{
    attention_call *const p = &s->call;
    mha_options *const o = &p->options;
    const mha_view o_view = {p->o.data, p->o.sb, p->o.sh, p->o.sl};
    const mha_view lse = {o->lse.data, o->lse.sb, o->lse.sh, o->lse.sl};
    const int64_t *const q_starts = o->q_starts, *const k_starts = o->k_starts;
    advance_view(&p->q, p->shape.q_type, call_row_index(&p->q, q_starts, b, 0, 0));
    advance_view(&p->k, p->shape.k_type, call_row_index(&p->k, k_starts, b, 0, 0));
    advance_view(&p->v, p->shape.v_type, call_row_index(&p->v, k_starts, b, 0, 0));
    advance_out(&p->o, p->shape.o_type, call_row_index(&o_view, q_starts, b, 0, 0));
    advance_out(&o->lse, lse_type(p), call_row_index(&lse, q_starts, b, 0, 0));
    advance_masks(o, b, 0, 0);
    if (o->q_documents) {
        o->q_documents += q_starts ? q_starts[b] : b * o->q_documents_sb;
        o->k_documents += k_starts ? k_starts[b] : b * o->k_documents_sb;
    }
    if (q_starts && k_starts) {
        p->shape.L = (ptrdiff_t)(q_starts[b + 1] - q_starts[b]);
        p->shape.S = (ptrdiff_t)(k_starts[b + 1] - k_starts[b]);
        o->q_starts = o->k_starts = NULL;
    }
    s->offsets[0] = s->offsets[b];
    s->q_lengths[0] = s->q_lengths[b];
    s->k_lengths[0] = s->k_lengths[b];
    p->shape.B = 1;
}

void slice_head(slice *s, ptrdiff_t h)
{
    attention_call *const p = &s->call;
    mha_options *const o = &p->options;
    const ptrdiff_t g = h / (p->shape.H / call_groups(p));
    advance_view(&p->q, p->shape.q_type, h * p->q.sh);
    advance_view(&p->k, p->shape.k_type, g * p->k.sh);
    advance_view(&p->v, p->shape.v_type, g * p->v.sh);
    advance_out(&p->o, p->shape.o_type, h * p->o.sh);
    advance_out(&o->lse, lse_type(p), h * o->lse.sh);
    advance_masks(o, 0, h, 0);
    o->alibi_slopes = o->alibi_slopes ? o->alibi_slopes + h : NULL;
    o->sinks = o->sinks ? o->sinks + h : NULL;
    p->shape.H = p->shape.G = 1;
}

void slice_queries(slice *s, ptrdiff_t first, ptrdiff_t count)
{
    attention_call *const p = &s->call;
    mha_options *const o = &p->options;
    advance_view(&p->q, p->shape.q_type, first * p->q.sl);
    advance_out(&p->o, p->shape.o_type, first * p->o.sl);
    advance_out(&o->lse, lse_type(p), first * o->lse.sl);
    advance_masks(o, 0, 0, first);
    o->q_documents = o->q_documents ? o->q_documents + first : NULL;
    for (ptrdiff_t b = 0; b < p->shape.B; b++) {
        const int64_t left = s->q_lengths[b] - first;
        s->offsets[b] += first;
        s->q_lengths[b] = left < 0 ? 0 : left < count ? left : count;
    }
    p->shape.L = count;
}

void slice_keys(slice *s, ptrdiff_t count)
{
    for (ptrdiff_t b = 0; b < s->call.shape.B; b++)
        s->k_lengths[b] = s->k_lengths[b] < count ? s->k_lengths[b] : count;
    s->call.shape.S = count;
    s->call.options.weights = (mha_out){0};
}
