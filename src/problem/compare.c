/* SPDX-License-Identifier: MIT */
/*
 * The comparator: goes over all rows of a call, computes each with the oracle, and measures the
 * distance of output, log-sum-exp and weights in memory. Several results of the same problem (a
 * call and its f64 twin) can share the oracle's rows.
 */
#include "problem/compare.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "problem/number.h"
#include "problem/oracle.h"
#include "problem/problem_masks.h"

/* ----------------------------------------------------------- one element ----- */

/* E, if an error of `allowance` is free too. */
static double error_past(mha_dtype type, mha_dtype work, double got, double want, double unit,
                         double allowance)
{
    const double infinite = (double)INFINITY;
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0.0 : infinite;
    if (got == want || (isinf(got) && got == number_round(type, want)))
        return 0.0;
    if (isinf(want))
        return infinite;
    const bool narrow = type != work;
    if (isinf(got) && (!narrow || (got > 0.0) != (want > 0.0)))
        return infinite;
    /* The number that would follow the largest one rounds to infinity. */
    const double largest = number_largest(type);
    const double real = isinf(got) ? copysign(largest + number_spacing(type, largest), got) : got;
    const double nearer = fmin(fabs(real), fabs(want));
    const double rounding = narrow ? number_spacing(type, nearer) / 2.0 : 0.0;
    const double error = fabs(real - want) - rounding - allowance;
    if (!(error > 0.0))
        return 0.0;
    return unit > 0.0 ? error / unit : infinite;
}

double compare_error(mha_dtype type, mha_dtype work, double got, double want, double unit)
{
    return error_past(type, work, got, want, unit, 0.0);
}

/* -------------------------------------------------------------- one call ----- */

/* A set of outputs, and the precision it was computed in. */
typedef struct subject {
    const attention_call *call;
    comparison *result;
    mha_dtype work;
    double u, tiny, limit;
    double rounding; /* of p before it is multiplied, relative to it; 0: it is not rounded */
} subject;

typedef struct place {
    const char *name;
    ptrdiff_t b, h, i, at;
} place;

static subject subject_of(const attention_call *call, comparison *result)
{
    *result = (comparison){.limit = result->limit};
    if (call->shape.q_type == MHA_F64)
        return (subject){call, result, MHA_F64, 0x1p-53, DBL_MIN, 8.0 * result->limit, 0.0};
    const mha_shape *const s = &call->shape;
    const bool bf16 = s->q_type == MHA_BF16 && s->k_type == MHA_BF16 && s->v_type == MHA_BF16;
    const bool native = call->options.arithmetic == MHA_NATIVE && bf16;
    return (subject){
        call, result, MHA_F32, 0x1p-24, (double)FLT_MIN, result->limit, native ? 0x1p-8 : 0.0};
}

static void judge(const subject *s, double *worst, mha_dtype type, double got, double want,
                  double size, double allowance, place at)
{
    comparison *result = s->result;
    const double e = error_past(type, s->work, got, want, s->u * size, allowance);
    *worst = fmax(*worst, e);
    result->worst = fmax(result->worst, e);
    if (e <= s->limit || result->failures++ > 0)
        return;
    snprintf(result->first, sizeof result->first,
             "%s of b=%td h=%td i=%td at %td is %.9g, must be %.9g, E = %.3g", at.name, at.b, at.h,
             at.i, at.at, got, want, e);
}

static void compare_row(const subject *s, const oracle_row *row, ptrdiff_t b, ptrdiff_t h,
                        ptrdiff_t i)
{
    const attention_call *call = s->call;
    const mha_dtype type = call->shape.o_type;
    const mha_view o = call_view_of(&call->o), lse = call_view_of(&call->options.lse);
    const ptrdiff_t at = call_row_index(&o, call->options.q_starts, b, h, i);
    for (ptrdiff_t c = 0; c < call_value_width(call); c++)
        judge(s, &s->result->output, type, number_get(type, o.data, at + c), row->o[c],
              row->o_size[c], s->tiny * row->o_tiny[c] + s->rounding * row->o_mass[c],
              (place){"output", b, h, i, c});
    if (lse.data == NULL)
        return;
    const ptrdiff_t index = call_row_index(&lse, call->options.q_starts, b, h, i);
    judge(s, &s->result->lse, s->work, number_get(s->work, lse.data, index), row->lse,
          row->lse_size, 0.0, (place){"log-sum-exp", b, h, i, 0});
}

/* --------------------------------------------------------------- weights ----- */

static ptrdiff_t chosen(const int64_t *list, ptrdiff_t index)
{
    return list != NULL ? (ptrdiff_t)list[index] : index;
}

/* Row r of the weights, n-th of the heads, compared with what `row` holds as weights. */
static void compare_weights_row(const subject *s, const oracle_row *row, ptrdiff_t b, ptrdiff_t n,
                                ptrdiff_t r)
{
    const mha_out *w = &s->call->options.weights;
    const mha_dtype type = s->call->options.weights_type;
    for (ptrdiff_t j = 0; j < s->call->shape.S; j++) {
        const double got = number_get(type, w->data, b * w->sb + n * w->sh + r * w->sl + j);
        judge(s, &s->result->weights, type, got, row->weights[j], row->weights_size[j],
              s->tiny * row->weights_tiny[j], (place){"weights", b, n, r, j});
    }
}

/* Adds row `from`, one of `heads`, to the mean `to`. */
static void add_mean(oracle_row *to, const oracle_row *from, ptrdiff_t S, ptrdiff_t heads)
{
    for (ptrdiff_t j = 0; j < S; j++) {
        to->weights[j] += from->weights[j] / (double)heads;
        to->weights_size[j] += from->weights_size[j] / (double)heads;
        to->weights_tiny[j] += from->weights_tiny[j] / (double)heads;
    }
}

static bool compare_average(const subject *subjects, int count, oracle_row *row, ptrdiff_t b,
                            ptrdiff_t r, ptrdiff_t heads)
{
    const attention_call *call = subjects[0].call;
    oracle_row mean;
    if (!oracle_row_init(&mean, call))
        return false;
    for (ptrdiff_t n = 0; n < heads; n++) {
        oracle_row_compute(row, call, b, chosen(call->options.weights_heads, n),
                           chosen(call->options.weights_rows, r));
        add_mean(&mean, row, call->shape.S, heads);
    }
    for (int s = 0; s < count; s++)
        compare_weights_row(&subjects[s], &mean, b, 0, r);
    oracle_row_free(&mean);
    return true;
}

static bool compare_weights(const subject *subjects, int count, oracle_row *row, ptrdiff_t b)
{
    const attention_call *call = subjects[0].call;
    const mha_options *o = &call->options;
    const ptrdiff_t heads = o->weights_heads != NULL ? o->weights_head_count : call->shape.H;
    const ptrdiff_t rows = o->weights_rows != NULL ? o->weights_row_count : call->shape.L;
    for (ptrdiff_t r = 0; r < rows; r++) {
        const ptrdiff_t i = chosen(o->weights_rows, r);
        if (i >= call_queries(call, b))
            continue;
        if (o->flags & MHA_AVERAGE_WEIGHTS) {
            if (!compare_average(subjects, count, row, b, r, heads))
                return false;
            continue;
        }
        for (ptrdiff_t n = 0; n < heads; n++) {
            oracle_row_compute(row, call, b, chosen(o->weights_heads, n), i);
            for (int s = 0; s < count; s++)
                compare_weights_row(&subjects[s], row, b, n, r);
        }
    }
    return true;
}

/* ----------------------------------------------------------------- whole ----- */

static bool compare_rows(const subject *subjects, int count, oracle_row *row)
{
    const attention_call *call = subjects[0].call;
    for (ptrdiff_t b = 0; b < call->shape.B; b++) {
        for (ptrdiff_t h = 0; h < call->shape.H; h++) {
            for (ptrdiff_t i = 0; i < call_queries(call, b); i++) {
                oracle_row_compute(row, call, b, h, i);
                for (int s = 0; s < count; s++)
                    compare_row(&subjects[s], row, b, h, i);
            }
        }
        if (call->options.weights.data != NULL && !compare_weights(subjects, count, row, b))
            return false;
    }
    return true;
}

static void compare(const subject *subjects, int count)
{
    oracle_row row;
    /* Heads of width 0: nothing is computed and nothing written. */
    if (subjects[0].call->shape.D == 0)
        return;
    if (!oracle_row_init(&row, subjects[0].call) || !compare_rows(subjects, count, &row)) {
        subjects[0].result->failures++;
        snprintf(subjects[0].result->first, sizeof subjects[0].result->first, "out of memory");
    }
    oracle_row_free(&row);
}

void compare_call(const attention_call *call, comparison *result)
{
    const subject one = subject_of(call, result);
    compare(&one, 1);
}

void compare_twins(const attention_call *call, const attention_call *twin, comparison results[2])
{
    const subject both[] = {subject_of(call, &results[0]), subject_of(twin, &results[1])};
    compare(both, 2);
}
