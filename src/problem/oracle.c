/* SPDX-License-Identifier: MIT */
/*
 * One row: scores (with soft cap and everything that is added), softmax with the sink, the weighted
 * sum of values. Masks are in problem_masks.c, the comparison with a result in compare.c. Keys that
 * are masked are not read, unless the call asks to see their scores.
 */
#include "problem/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "problem/number.h"
#include "problem/problem_masks.h"

bool oracle_row_init(oracle_row *row, const attention_call *call)
{
    const size_t S = (size_t)call->shape.S, D = (size_t)call->shape.D;
    const size_t Dv = (size_t)call_value_width(call);
    double *const block = calloc(5 * Dv + 5 * S + 2 * D + 1, sizeof *block);
    *row = (oracle_row){.o = block};
    if (block == NULL)
        return false;
    row->o_size = block + Dv;
    row->o_tiny = block + 2 * Dv;
    row->o_mass = block + 3 * Dv;
    row->weights = block + 4 * Dv;
    row->weights_size = row->weights + S;
    row->weights_tiny = row->weights + 2 * S;
    row->scores = row->weights + 3 * S;
    row->sizes = row->weights + 4 * S;
    row->q = row->weights + 5 * S;
    row->k = row->q + D;
    row->v = row->k + D;
    return true;
}

void oracle_row_free(oracle_row *row)
{
    free(row->o);
    row->o = NULL;
}

/* ---------------------------------------------------------------- scores ----- */

/* scale * q.k of key j; *size becomes scale * sum |q_c k_c|. */
static double raw_score(oracle_row *row, const attention_call *call, ptrdiff_t b, ptrdiff_t h,
                        ptrdiff_t j, double *size)
{
    const ptrdiff_t D = call->shape.D;
    const double scale = call_scale(call);
    const ptrdiff_t at =
        call_row_index(&call->k, call->options.k_starts, b, call_group_of(call, h), j);
    number_get_row(call->shape.k_type, call->k.data, at, D, row->k);
    double dot = 0.0, sum = 0.0;
    for (ptrdiff_t c = 0; c < D; c++) {
        dot += row->q[c] * row->k[c];
        sum += fabs(row->q[c] * row->k[c]);
    }
    *size = sum * fabs(scale);
    return dot * scale;
}

static mha_head_mode mode_of(const attention_call *call, ptrdiff_t h)
{
    const uint8_t *modes = call->options.head_modes;
    return modes != NULL ? (mha_head_mode)modes[h] : MHA_HEAD_NORMAL;
}

static double capped(const attention_call *call, double score)
{
    const double cap = call_softcap(call);
    return cap != 0.0 ? cap * tanh(score / cap) : score;
}

/* Fills scores, sizes and, for the modes before the softmax, weights. */
static void compute_scores(oracle_row *row, const attention_call *call, ptrdiff_t b, ptrdiff_t h,
                           ptrdiff_t i)
{
    const mha_weights_mode mode = call->options.weights_mode;
    const bool before_masks = mode == MHA_WEIGHTS_RAW || mode == MHA_WEIGHTS_SOFTCAP;
    const bool show_masked = call->options.weights.data != NULL && before_masks;
    const bool normal = mode_of(call, h) == MHA_HEAD_NORMAL;
    const ptrdiff_t keys = call_keys(call, b);
    row->attended = 0;
    for (ptrdiff_t j = 0; j < call->shape.S; j++) {
        const bool attended = call_attends(call, b, h, i, j);
        double raw = 0.0, cap = 0.0, size = 0.0;
        if (normal && (attended || (show_masked && j < keys))) {
            raw = raw_score(row, call, b, h, j, &size);
            cap = capped(call, raw);
        }
        row->weights_size[j] = 1.0 + size;
        row->scores[j] = !attended ? -(double)INFINITY
                         : normal  ? cap + call_added(call, b, h, i, j, &size)
                                   : 0.0;
        if (!before_masks)
            row->weights_size[j] = 1.0 + size;
        row->weights_tiny[j] = 0.0;
        row->sizes[j] = attended ? size : -1.0;
        row->attended += attended;
        row->weights[j] = mode == MHA_WEIGHTS_RAW       ? raw
                          : mode == MHA_WEIGHTS_SOFTCAP ? cap
                                                        : row->scores[j];
    }
}

/* --------------------------------------------------------------- softmax ----- */

static bool is_attended(const oracle_row *row, ptrdiff_t j)
{
    return !(row->sizes[j] < 0.0);
}

/* Scores become probabilities; returns the size of the row. A row that attends to scores of -inf
 * only is NaN, since -inf - -inf is. */
static double softmax(oracle_row *row, const attention_call *call, ptrdiff_t h)
{
    const ptrdiff_t S = call->shape.S;
    const bool sinks = call->options.sinks != NULL && mode_of(call, h) == MHA_HEAD_NORMAL;
    const double nothing = -(double)INFINITY;
    const double sink = sinks ? (double)call->options.sinks[h] : nothing;
    double size = isfinite(sink) ? fabs(sink) : 0.0, top = sink;
    for (ptrdiff_t j = 0; j < S; j++) {
        if (is_attended(row, j)) {
            top = fmax(top, row->scores[j]);
            /* A score of -inf has no weight, and its size says nothing. */
            size = fmax(size, isfinite(row->sizes[j]) ? row->sizes[j] : 0.0);
        }
    }
    double sum = sink == nothing ? 0.0 : exp(sink - top);
    for (ptrdiff_t j = 0; j < S; j++) {
        row->scores[j] = is_attended(row, j) ? exp(row->scores[j] - top) : 0.0;
        sum += row->scores[j];
    }
    row->lse = top + log(sum);
    for (ptrdiff_t j = 0; j < S; j++)
        row->scores[j] = is_attended(row, j) ? row->scores[j] / sum : 0.0;
    return 1.0 + size;
}

static void show_no_weights(oracle_row *row, ptrdiff_t S)
{
    memset(row->weights, 0, (size_t)S * sizeof *row->weights);
    memset(row->weights_size, 0, (size_t)S * sizeof *row->weights_size);
}

static void show_weights(oracle_row *row, ptrdiff_t S, double size)
{
    for (ptrdiff_t j = 0; j < S; j++) {
        row->weights[j] = row->scores[j];
        row->weights_size[j] = is_attended(row, j) ? size * row->scores[j] : 0.0;
        row->weights_tiny[j] = is_attended(row, j) ? 1.0 : 0.0;
    }
}

/* ---------------------------------------------------------------- output ----- */

static void give_mean(oracle_row *row, const attention_call *call, ptrdiff_t h)
{
    const ptrdiff_t Dv = call_value_width(call);
    for (ptrdiff_t c = 0; c < Dv; c++)
        row->o[c] = (double)call->options.head_means[h * Dv + c];
}

static void sum_values(oracle_row *row, const attention_call *call, ptrdiff_t b, ptrdiff_t h,
                       double size)
{
    const ptrdiff_t Dv = call_value_width(call), g = call_group_of(call, h);
    for (ptrdiff_t j = 0; j < call->shape.S; j++) {
        if (!is_attended(row, j))
            continue;
        const ptrdiff_t at = call_row_index(&call->v, call->options.k_starts, b, g, j);
        number_get_row(call->shape.v_type, call->v.data, at, Dv, row->v);
        for (ptrdiff_t c = 0; c < Dv; c++) {
            row->o[c] += row->scores[j] * row->v[c];
            row->o_size[c] += size * row->scores[j] * fabs(row->v[c]);
            row->o_tiny[c] += fabs(row->v[c]);
            row->o_mass[c] += row->scores[j] * fabs(row->v[c]);
        }
    }
}

void oracle_row_compute(oracle_row *row, const attention_call *call, ptrdiff_t b, ptrdiff_t h,
                        ptrdiff_t i)
{
    const bool show = call->options.weights_mode == MHA_WEIGHTS_SOFTMAX;
    number_get_row(call->shape.q_type, call->q.data,
                   call_row_index(&call->q, call->options.q_starts, b, h, i), call->shape.D,
                   row->q);
    compute_scores(row, call, b, h, i);
    memset(row->o, 0, 4 * (size_t)call_value_width(call) * sizeof *row->o);
    row->lse = -(double)INFINITY;
    row->lse_size = 0.0;
    if (row->attended == 0) {
        if (show)
            show_no_weights(row, call->shape.S);
        return;
    }
    const bool mean = mode_of(call, h) == MHA_HEAD_MEAN;
    const double size = softmax(row, call, h);
    row->lse_size = size + fabs(row->lse);
    if (show && mean)
        show_no_weights(row, call->shape.S);
    else if (show)
        show_weights(row, call->shape.S, size);
    if (mean)
        give_mean(row, call, h);
    else
        sum_values(row, call, b, h, size);
}
