/* SPDX-License-Identifier: MIT */
#include "problem/attends.h"

#include <math.h>
#include <stdint.h>

static ptrdiff_t true_rows(const int64_t *lengths, const int64_t *starts, ptrdiff_t longest,
                           ptrdiff_t b)
{
    if (lengths != NULL)
        return (ptrdiff_t)lengths[b];
    return starts != NULL ? (ptrdiff_t)(starts[b + 1] - starts[b]) : longest;
}

ptrdiff_t problem_queries(const problem *p, ptrdiff_t b)
{
    return true_rows(p->options.q_lengths, p->options.q_starts, p->shape.L, b);
}

ptrdiff_t problem_keys(const problem *p, ptrdiff_t b)
{
    return true_rows(p->options.k_lengths, p->options.k_starts, p->shape.S, b);
}

ptrdiff_t problem_offset(const problem *p, ptrdiff_t b)
{
    const mha_options *o = &p->options;
    if (o->position == MHA_POSITION_BOTTOM_RIGHT)
        return problem_keys(p, b) - problem_queries(p, b);
    if (o->position == MHA_POSITION_OFFSET)
        return o->offsets != NULL ? (ptrdiff_t)o->offsets[b] : o->offset;
    return 0;
}

/* Keys [*low, *high) that position, window and lengths leave to query i. */
static void key_range(const problem *p, ptrdiff_t b, ptrdiff_t i, ptrdiff_t *low, ptrdiff_t *high)
{
    const mha_options *o = &p->options;
    const ptrdiff_t place = i + problem_offset(p, b);
    *low = 0;
    *high = problem_keys(p, b);
    if ((o->flags & MHA_CAUSAL) && *high > place + 1)
        *high = place + 1;
    if (!(o->flags & MHA_WINDOW))
        return;
    if (o->window_right >= 0 && *high > place + o->window_right + 1)
        *high = place + o->window_right + 1;
    if (o->window_left >= 0 && *low < place - o->window_left)
        *low = place - o->window_left;
}

static bool mask_byte(const mha_view *mask, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j)
{
    return ((const uint8_t *)mask->data)[b * mask->sb + h * mask->sh + i * mask->sl + j] != 0;
}

static int32_t document(const int32_t *ids, const int64_t *starts, ptrdiff_t stride, ptrdiff_t b,
                        ptrdiff_t row)
{
    return ids[(starts != NULL ? (ptrdiff_t)starts[b] : b * stride) + row];
}

static bool ruled_out(const tensor *additive, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j)
{
    return additive->block != NULL && tensor_read(additive, b, h, i, j) == -(double)INFINITY;
}

bool problem_attends(const problem *p, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j)
{
    const mha_options *o = &p->options;
    ptrdiff_t low, high;
    if (i >= problem_queries(p, b))
        return false;
    key_range(p, b, i, &low, &high);
    if (j < low || j >= high)
        return false;
    if (o->attend_mask.data != NULL && !mask_byte(&o->attend_mask, b, h, i, j))
        return false;
    if (o->ignore_mask.data != NULL && mask_byte(&o->ignore_mask, b, h, i, j))
        return false;
    if (o->q_documents != NULL &&
        document(o->q_documents, o->q_starts, o->q_documents_sb, b, i) !=
            document(o->k_documents, o->k_starts, o->k_documents_sb, b, j))
        return false;
    return !ruled_out(&p->add_mask, b, h, i, j) && !ruled_out(&p->bias, b, h, i, j);
}

static ptrdiff_t row_index(const tensor *t, const int64_t *starts, ptrdiff_t b, ptrdiff_t h,
                           ptrdiff_t row, ptrdiff_t c)
{
    if (starts != NULL)
        return tensor_index(t, 0, h, (ptrdiff_t)starts[b] + row, c);
    return tensor_index(t, b, h, row, c);
}

ptrdiff_t problem_q_index(const problem *p, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t c)
{
    return row_index(&p->q, p->options.q_starts, b, h, i, c);
}

ptrdiff_t problem_k_index(const problem *p, ptrdiff_t b, ptrdiff_t g, ptrdiff_t j, ptrdiff_t c)
{
    return row_index(&p->k, p->options.k_starts, b, g, j, c);
}

ptrdiff_t problem_v_index(const problem *p, ptrdiff_t b, ptrdiff_t g, ptrdiff_t j, ptrdiff_t c)
{
    return row_index(&p->v, p->options.k_starts, b, g, j, c);
}

ptrdiff_t problem_o_index(const problem *p, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t c)
{
    return row_index(&p->o, p->options.q_starts, b, h, i, c);
}

ptrdiff_t problem_lse_index(const problem *p, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    return row_index(&p->lse, p->options.q_starts, b, h, i, 0);
}

/* ------------------------------------------------------------------ work ----- */

/* Do masks cut single keys out of the range of a row? */
static bool has_holes(const problem *p)
{
    const mha_options *o = &p->options;
    return o->attend_mask.data != NULL || o->ignore_mask.data != NULL || o->q_documents != NULL ||
           p->add_mask.block != NULL || p->bias.block != NULL;
}

static bool same_in_all_heads(const problem *p)
{
    const mha_options *o = &p->options;
    return (o->attend_mask.data == NULL || o->attend_mask.sh == 0) &&
           (o->ignore_mask.data == NULL || o->ignore_mask.sh == 0) &&
           (p->add_mask.block == NULL || p->add_mask.sh == 0) &&
           (p->bias.block == NULL || p->bias.sh == 0);
}

static double row_pairs(const problem *p, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    ptrdiff_t low, high, pairs = 0;
    key_range(p, b, i, &low, &high);
    if (!has_holes(p))
        return high > low ? (double)(high - low) : 0.0;
    for (ptrdiff_t j = low; j < high; j++)
        pairs += problem_attends(p, b, h, i, j);
    return (double)pairs;
}

static double sum_over_rows(const problem *p,
                            double (*row)(const problem *, ptrdiff_t, ptrdiff_t, ptrdiff_t))
{
    const ptrdiff_t heads = same_in_all_heads(p) && p->shape.H > 0 ? 1 : p->shape.H;
    double pairs = 0.0;
    for (ptrdiff_t b = 0; b < p->shape.B; b++)
        for (ptrdiff_t i = 0; i < problem_queries(p, b); i++)
            for (ptrdiff_t h = 0; h < heads; h++)
                pairs += row(p, b, h, i);
    return heads > 0 ? pairs * (double)(p->shape.H / heads) : 0.0;
}

double problem_pairs(const problem *p)
{
    return sum_over_rows(p, row_pairs);
}

/* Keys of a row in groups of GROUP that hold an attended one. */
static double row_group_pairs(const problem *p, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    enum { GROUP = 16 };
    ptrdiff_t low, high, pairs = 0;
    key_range(p, b, i, &low, &high);
    for (ptrdiff_t j = low; j < high;) {
        const ptrdiff_t next = (j / GROUP + 1) * GROUP, end = next < high ? next : high;
        bool any = false;
        for (ptrdiff_t t = j; t < end && !any; t++)
            any = problem_attends(p, b, h, i, t);
        pairs += any ? end - j : 0;
        j = end;
    }
    return (double)pairs;
}

double problem_flops(const problem *p)
{
    const double pairs = sum_over_rows(p, has_holes(p) ? row_group_pairs : row_pairs);
    return 2.0 * (double)(p->shape.D + p->shape.Dv) * pairs;
}

double problem_backward_flops(const problem *p)
{
    const double D = (double)p->shape.D, Dv = (double)p->shape.Dv;
    return D + Dv > 0.0 ? problem_flops(p) * (3.0 * D + 2.0 * Dv) / (D + Dv) : 0.0;
}

static bool head_attends(const problem *p, ptrdiff_t b, ptrdiff_t g, ptrdiff_t j)
{
    const ptrdiff_t group = p->shape.H / p->shape.G;
    const ptrdiff_t heads = same_in_all_heads(p) ? 1 : group;
    for (ptrdiff_t h = g * group; h < g * group + heads; h++)
        for (ptrdiff_t i = problem_queries(p, b) - 1; i >= 0; i--)
            if (problem_attends(p, b, h, i, j))
                return true;
    return false;
}

static double attended_keys(const problem *p)
{
    const ptrdiff_t heads = same_in_all_heads(p) && p->shape.G > 0 ? 1 : p->shape.G;
    double keys = 0.0;
    for (ptrdiff_t b = 0; b < p->shape.B; b++)
        for (ptrdiff_t g = 0; g < heads; g++)
            for (ptrdiff_t j = 0; j < problem_keys(p, b); j++)
                keys += head_attends(p, b, g, j);
    return heads > 0 ? keys * (double)(p->shape.G / heads) : 0.0;
}

double problem_bytes(const problem *p)
{
    const mha_shape *s = &p->shape;
    const double key = (double)s->D * (double)mha_dtype_size(s->k_type) +
                       (double)s->Dv * (double)mha_dtype_size(s->v_type);
    const double query = (double)s->D * (double)mha_dtype_size(s->q_type) +
                         (double)s->Dv * (double)mha_dtype_size(s->o_type);
    double queries = 0.0;
    for (ptrdiff_t b = 0; b < s->B; b++)
        queries += (double)problem_queries(p, b) * (double)s->H;
    return key * attended_keys(p) + query * queries;
}
