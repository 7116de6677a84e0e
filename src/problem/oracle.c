/* SPDX-License-Identifier: MIT */
#include "problem/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "problem/attends.h"

bool row_model_create(row_model *row, const problem *p)
{
    const size_t S = (size_t)p->shape.S + 1, Dv = (size_t)p->shape.Dv + 1;
    memset(row, 0, sizeof *row);
    row->attended = calloc(S, sizeof *row->attended);
    /* One block for all numbers: five arrays over j, three over c. */
    row->raw = calloc(5 * S + 3 * Dv, sizeof *row->raw);
    if (row->attended == NULL || row->raw == NULL) {
        row_model_free(row);
        return false;
    }
    row->capped = row->raw + S;
    row->score = row->raw + 2 * S;
    row->weight = row->raw + 3 * S;
    row->magnitudes = row->raw + 4 * S;
    row->output = row->raw + 5 * S;
    row->output_magnitude = row->output + Dv;
    row->value_magnitude = row->output + 2 * Dv;
    return true;
}

void row_model_free(row_model *row)
{
    free(row->attended);
    free(row->raw);
    memset(row, 0, sizeof *row);
}

static double scale_of(const problem *p)
{
    return p->options.scale != 0.0f ? (double)p->options.scale : 1.0 / sqrt((double)p->shape.D);
}

/* All that is added to the score of key j; its magnitude goes into *magnitude. */
static double added(const problem *p, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j,
                    double *magnitude)
{
    double parts[3] = {0.0, 0.0, 0.0};
    if (p->bias.block != NULL)
        parts[0] = tensor_read(&p->bias, b, h, i, j);
    if (p->add_mask.block != NULL)
        parts[1] = tensor_read(&p->add_mask, b, h, i, j);
    if (p->options.alibi_slopes != NULL)
        parts[2] =
            -(double)p->options.alibi_slopes[h] * fabs((double)(i + problem_offset(p, b) - j));
    *magnitude = fabs(parts[0]) + fabs(parts[1]) + fabs(parts[2]);
    return parts[0] + parts[1] + parts[2];
}

static void compute_scores(row_model *row, const problem *p, const problem *twin, ptrdiff_t b,
                           ptrdiff_t h, ptrdiff_t i)
{
    const double scale = scale_of(p), cap = (double)p->options.softcap;
    const double *q = (const double *)twin->q.block + problem_q_index(twin, b, h, i, 0);
    const ptrdiff_t g = h / (p->shape.H / p->shape.G);
    for (ptrdiff_t j = 0; j < row->keys; j++) {
        const double *k = (const double *)twin->k.block + problem_k_index(twin, b, g, j, 0);
        double dot = 0.0, magnitude = 0.0, extra;
        for (ptrdiff_t c = 0; c < p->shape.D; c++) {
            dot += q[c] * k[c];
            magnitude += fabs(q[c] * k[c]);
        }
        row->raw[j] = scale * dot;
        row->capped[j] = cap > 0.0 ? cap * tanh(row->raw[j] / cap) : row->raw[j];
        row->attended[j] = problem_attends(p, b, h, i, j);
        row->score[j] = row->capped[j] + added(p, b, h, i, j, &extra);
        row->magnitudes[j] = fabs(scale) * magnitude + extra;
    }
}

static double largest_score(row_model *row)
{
    double largest = -(double)INFINITY;
    row->magnitude = 0.0;
    for (ptrdiff_t j = 0; j < row->keys; j++) {
        if (!row->attended[j]) {
            row->score[j] = -(double)INFINITY;
            continue;
        }
        largest = fmax(largest, row->score[j]);
        row->magnitude = fmax(row->magnitude, row->magnitudes[j]);
    }
    return largest;
}

static void compute_weights(row_model *row, const problem *p, ptrdiff_t h)
{
    const double nothing = -(double)INFINITY;
    const double sink = p->options.sinks != NULL ? (double)p->options.sinks[h] : nothing;
    double largest = largest_score(row);
    memset(row->weight, 0, (size_t)p->shape.S * sizeof *row->weight);
    row->lse = nothing;
    /* No key to attend to: a sink alone does not make a row. */
    if (largest == nothing)
        return;
    largest = fmax(largest, sink);
    if (p->options.sinks != NULL)
        row->magnitude = fmax(row->magnitude, fabs(sink));
    double sum = exp(sink - largest);
    for (ptrdiff_t j = 0; j < row->keys; j++)
        sum += row->weight[j] = exp(row->score[j] - largest);
    for (ptrdiff_t j = 0; j < row->keys; j++)
        row->weight[j] /= sum;
    row->lse = largest + log(sum);
}

static void compute_output(row_model *row, const problem *twin, ptrdiff_t b, ptrdiff_t h)
{
    const ptrdiff_t g = h / (twin->shape.H / twin->shape.G), Dv = twin->shape.Dv;
    const size_t bytes = (size_t)Dv * sizeof(double);
    memset(row->output, 0, bytes);
    memset(row->output_magnitude, 0, bytes);
    memset(row->value_magnitude, 0, bytes);
    for (ptrdiff_t j = 0; j < row->keys; j++) {
        if (!row->attended[j])
            continue;
        const double *v = (const double *)twin->v.block + problem_v_index(twin, b, g, j, 0);
        for (ptrdiff_t c = 0; c < Dv; c++) {
            row->output[c] += row->weight[j] * v[c];
            row->output_magnitude[c] += row->weight[j] * fabs(v[c]);
            row->value_magnitude[c] += fabs(v[c]);
        }
    }
}

void row_model_compute(row_model *row, const problem *p, const problem *twin, ptrdiff_t b,
                       ptrdiff_t h, ptrdiff_t i)
{
    row->keys = problem_keys(p, b);
    compute_scores(row, p, twin, b, h, i);
    compute_weights(row, p, h);
    compute_output(row, twin, b, h);
}
