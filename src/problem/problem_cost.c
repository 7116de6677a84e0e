/* SPDX-License-Identifier: MIT */
/*
 * The work of a problem: how many pairs its queries and keys make, and the operations and bytes
 * that any implementation needs for them. Benchmarks divide by these numbers.
 */
#include "problem/problem_cost.h"

#include <stdbool.h>

#include "problem/problem_masks.h"

/* Do masks cut single keys out of the range of a row? */
static bool has_holes(const attention_call *call)
{
    const mha_options *o = &call->options;
    return o->attend_mask.data != NULL || o->ignore_mask.data != NULL || o->q_documents != NULL ||
           o->add_mask.data != NULL || o->bias.data != NULL;
}

static bool same_in_all_heads(const attention_call *call)
{
    const mha_options *o = &call->options;
    return (o->attend_mask.data == NULL || o->attend_mask.sh == 0) &&
           (o->ignore_mask.data == NULL || o->ignore_mask.sh == 0) &&
           (o->add_mask.data == NULL || o->add_mask.sh == 0) &&
           (o->bias.data == NULL || o->bias.sh == 0);
}

static double row_pairs(const attention_call *call, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    ptrdiff_t low, high, pairs = 0;
    call_key_range(call, b, i, &low, &high);
    if (!has_holes(call))
        return high > low ? (double)(high - low) : 0.0;
    for (ptrdiff_t j = low; j < high; j++)
        pairs += call_attends(call, b, h, i, j);
    return (double)pairs;
}

static double sum_over_rows(const attention_call *call,
                            double (*row)(const attention_call *, ptrdiff_t, ptrdiff_t, ptrdiff_t))
{
    const ptrdiff_t heads = same_in_all_heads(call) && call->shape.H > 0 ? 1 : call->shape.H;
    double pairs = 0.0;
    for (ptrdiff_t b = 0; b < call->shape.B; b++)
        for (ptrdiff_t i = 0; i < call_queries(call, b); i++)
            for (ptrdiff_t h = 0; h < heads; h++)
                pairs += row(call, b, h, i);
    return heads > 0 ? pairs * (double)(call->shape.H / heads) : 0.0;
}

double call_pairs(const attention_call *call)
{
    return sum_over_rows(call, row_pairs);
}

/* Keys of a row in groups of GROUP that hold an attended one. */
static double row_group_pairs(const attention_call *call, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    enum { GROUP = 16 };
    ptrdiff_t low, high, pairs = 0;
    call_key_range(call, b, i, &low, &high);
    for (ptrdiff_t j = low; j < high;) {
        const ptrdiff_t next = (j / GROUP + 1) * GROUP, end = next < high ? next : high;
        bool any = false;
        for (ptrdiff_t t = j; t < end && !any; t++)
            any = call_attends(call, b, h, i, t);
        pairs += any ? end - j : 0;
        j = end;
    }
    return (double)pairs;
}

double call_flops(const attention_call *call)
{
    const double pairs = sum_over_rows(call, has_holes(call) ? row_group_pairs : row_pairs);
    return 2.0 * (double)(call->shape.D + call_value_width(call)) * pairs;
}

double call_backward_flops(const attention_call *call)
{
    const double D = (double)call->shape.D, Dv = (double)call_value_width(call);
    return D + Dv > 0.0 ? call_flops(call) * (3.0 * D + 2.0 * Dv) / (D + Dv) : 0.0;
}

static bool head_attends(const attention_call *call, ptrdiff_t b, ptrdiff_t g, ptrdiff_t j)
{
    const ptrdiff_t group = call->shape.H / call_groups(call);
    const ptrdiff_t heads = same_in_all_heads(call) ? 1 : group;
    for (ptrdiff_t h = g * group; h < g * group + heads; h++)
        for (ptrdiff_t i = call_queries(call, b) - 1; i >= 0; i--)
            if (call_attends(call, b, h, i, j))
                return true;
    return false;
}

static double attended_keys(const attention_call *call)
{
    const ptrdiff_t heads =
        same_in_all_heads(call) && call_groups(call) > 0 ? 1 : call_groups(call);
    double keys = 0.0;
    for (ptrdiff_t b = 0; b < call->shape.B; b++)
        for (ptrdiff_t g = 0; g < heads; g++)
            for (ptrdiff_t j = 0; j < call_keys(call, b); j++)
                keys += head_attends(call, b, g, j);
    return heads > 0 ? keys * (double)(call_groups(call) / heads) : 0.0;
}

double call_bytes(const attention_call *call)
{
    const mha_shape *s = &call->shape;
    const double key = (double)s->D * (double)mha_dtype_size(s->k_type) +
                       (double)call_value_width(call) * (double)mha_dtype_size(s->v_type);
    const double query = (double)s->D * (double)mha_dtype_size(s->q_type) +
                         (double)call_value_width(call) * (double)mha_dtype_size(s->o_type);
    double queries = 0.0;
    for (ptrdiff_t b = 0; b < s->B; b++)
        queries += (double)call_queries(call, b) * (double)s->H;
    return key * attended_keys(call) + query * queries;
}
