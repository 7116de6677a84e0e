/* SPDX-License-Identifier: MIT */
/*
 * Which query attends to which key. Lengths, causal masking and windows leave a query one range of
 * keys; boolean masks, documents and -inf in an additive mask or bias take single keys out of it.
 * oracle.c, problem_cost.c, problem_fill.c and the oracles of the tests ask here.
 */
#include "problem/problem_masks.h"

#include <math.h>
#include <stdint.h>

#include "problem/number.h"

ptrdiff_t call_groups(const attention_call *call)
{
    return call->shape.G ? call->shape.G : call->shape.H;
}

ptrdiff_t call_value_width(const attention_call *call)
{
    return call->shape.Dv ? call->shape.Dv : call->shape.D;
}

double call_scale(const attention_call *call)
{
    const mha_options *o = &call->options;
    const bool wide = call->shape.q_type == MHA_F64 && o->scale64 != 0.0;
    const double given = wide ? o->scale64 : (double)o->scale;
    return given != 0.0 ? given : 1.0 / sqrt((double)call->shape.D);
}

double call_softcap(const attention_call *call)
{
    const mha_options *o = &call->options;
    const bool wide = call->shape.q_type == MHA_F64 && o->softcap64 != 0.0;
    return wide ? o->softcap64 : (double)o->softcap;
}

ptrdiff_t call_group_of(const attention_call *call, ptrdiff_t h)
{
    return h / (call->shape.H / call_groups(call));
}

static ptrdiff_t true_rows(const int64_t *lengths, const int64_t *starts, ptrdiff_t extent,
                           ptrdiff_t b)
{
    if (lengths != NULL)
        return (ptrdiff_t)lengths[b];
    return starts != NULL ? (ptrdiff_t)(starts[b + 1] - starts[b]) : extent;
}

ptrdiff_t call_queries(const attention_call *call, ptrdiff_t b)
{
    return true_rows(call->options.q_lengths, call->options.q_starts, call->shape.L, b);
}

ptrdiff_t call_keys(const attention_call *call, ptrdiff_t b)
{
    return true_rows(call->options.k_lengths, call->options.k_starts, call->shape.S, b);
}

ptrdiff_t call_offset(const attention_call *call, ptrdiff_t b)
{
    const mha_options *o = &call->options;
    if (o->position == MHA_POSITION_BOTTOM_RIGHT)
        return call_keys(call, b) - call_queries(call, b);
    if (o->position == MHA_POSITION_OFFSET)
        return o->offsets != NULL ? (ptrdiff_t)o->offsets[b] : o->offset;
    return 0;
}

ptrdiff_t call_row_index(const mha_view *view, const int64_t *starts, ptrdiff_t b, ptrdiff_t h,
                         ptrdiff_t i)
{
    const ptrdiff_t batch = starts != NULL ? (ptrdiff_t)starts[b] * view->sl : b * view->sb;
    return batch + h * view->sh + i * view->sl;
}

void call_key_range(const attention_call *call, ptrdiff_t b, ptrdiff_t i, ptrdiff_t *low,
                    ptrdiff_t *high)
{
    const mha_options *o = &call->options;
    const ptrdiff_t position = i + call_offset(call, b);
    *low = 0;
    *high = call_keys(call, b);
    if ((o->flags & MHA_CAUSAL) && *high > position + 1)
        *high = position + 1;
    if (!(o->flags & MHA_WINDOW))
        return;
    if (o->window_right >= 0 && *high > position + o->window_right + 1)
        *high = position + o->window_right + 1;
    if (o->window_left >= 0 && *low < position - o->window_left)
        *low = position - o->window_left;
}

static ptrdiff_t cell(const mha_view *view, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j)
{
    return b * view->sb + h * view->sh + i * view->sl + j;
}

static bool byte_at(const mha_view *mask, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j)
{
    return ((const uint8_t *)mask->data)[cell(mask, b, h, i, j)] != 0;
}

double call_addend(const mha_view *view, mha_dtype type, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i,
                   ptrdiff_t j)
{
    return view->data != NULL ? number_get(type, view->data, cell(view, b, h, i, j)) : 0.0;
}

static int32_t document(const int32_t *ids, const int64_t *starts, ptrdiff_t stride, ptrdiff_t b,
                        ptrdiff_t row)
{
    return ids[(starts != NULL ? (ptrdiff_t)starts[b] : b * stride) + row];
}

bool call_attends(const attention_call *call, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j)
{
    const mha_options *o = &call->options;
    ptrdiff_t low, high;
    if (i >= call_queries(call, b))
        return false;
    call_key_range(call, b, i, &low, &high);
    if (j < low || j >= high)
        return false;
    if (o->attend_mask.data != NULL && !byte_at(&o->attend_mask, b, h, i, j))
        return false;
    if (o->ignore_mask.data != NULL && byte_at(&o->ignore_mask, b, h, i, j))
        return false;
    if (o->q_documents != NULL &&
        document(o->q_documents, o->q_starts, o->q_documents_sb, b, i) !=
            document(o->k_documents, o->k_starts, o->k_documents_sb, b, j))
        return false;
    return call_addend(&o->add_mask, o->add_mask_type, b, h, i, j) != -(double)INFINITY &&
           call_addend(&o->bias, o->bias_type, b, h, i, j) != -(double)INFINITY;
}

double call_added(const attention_call *call, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j,
                  double *size)
{
    const mha_options *o = &call->options;
    const double mask = call_addend(&o->add_mask, o->add_mask_type, b, h, i, j);
    const double bias = call_addend(&o->bias, o->bias_type, b, h, i, j);
    const double distance = fabs((double)(i + call_offset(call, b) - j));
    const double alibi = o->alibi_slopes != NULL ? -(double)o->alibi_slopes[h] * distance : 0.0;
    *size += fabs(mask) + fabs(bias) + fabs(alibi);
    return mask + bias + alibi;
}

mha_view call_view_of(const mha_out *out)
{
    return (mha_view){out->data, out->sb, out->sh, out->sl};
}
