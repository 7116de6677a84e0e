/* SPDX-License-Identifier: MIT */
/* Queries, keys and values of single heads, and the norms of values after W_O, computed from the
 * parameters in double; and outputs of heads that are replaced. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heads/capture_parts.h"

static double dot(const float *a, const float *b, ptrdiff_t count)
{
    double sum = 0.0;
    for (ptrdiff_t c = 0; c < count; c++)
        sum += (double)a[c] * (double)b[c];
    return sum;
}

/* [layers][heads][rows][columns] of a kind, all 0. */
static float *floats(const capture_heads *h, ptrdiff_t rows, ptrdiff_t columns)
{
    return calloc((size_t)h->layers * (size_t)h->heads * (size_t)rows * (size_t)columns,
                  sizeof(float));
}

bool capture_weights_make(capture_heads *h)
{
    h->weights = floats(h, h->rows, h->columns);
    return h->weights;
}

bool capture_outputs_make(capture_heads *h)
{
    h->outputs = floats(h, h->rows, h->width);
    return h->outputs;
}

bool capture_vectors_make(capture_heads *h)
{
    h->q = floats(h, h->rows, h->width);
    h->k = floats(h, h->columns, h->width);
    h->v = floats(h, h->columns, h->width);
    h->value_norms = floats(h, h->columns, 1);
    return h->q && h->k && h->v && h->value_norms;
}

/* to[heads][rows][width of a head] of one layer = x W^T + bias. */
static void project(const translator *model, const weight_at *at, const float *x, ptrdiff_t rows,
                    int heads, float *to)
{
    const ptrdiff_t E = translator_config(model)->width, D = E / heads;
    for (ptrdiff_t n = 0; n < E; n++)
        for (ptrdiff_t i = 0; i < rows; i++)
            to[(n / D * rows + i) * D + n % D] =
                (float)(dot(x + i * E, translator_values(model) + at->weight + n * E, E) +
                        (double)translator_values(model)[at->bias + (size_t)n]);
}

/* |W_O v| of a value of the head, with the head's columns of W_O. */
static float projected_norm(const translator *model, const weight_at *o, int head, const float *v)
{
    const ptrdiff_t E = translator_config(model)->width, D = E / translator_config(model)->heads;
    double sum = 0.0;
    for (ptrdiff_t n = 0; n < E; n++) {
        const double part = dot(v, translator_values(model) + o->weight + n * E + head * D, D);
        sum += part * part;
    }
    return (float)sqrt(sum);
}

void capture_vectors_fill(const translator *model, capture_heads *h, int layer,
                          const capture_inputs *inputs)
{
    const ptrdiff_t first = (ptrdiff_t)layer * h->heads, D = h->width;
    project(model, &inputs->at->q, inputs->queries, h->rows, h->heads, h->q + first * h->rows * D);
    project(model, &inputs->at->k, inputs->keys, h->columns, h->heads,
            h->k + first * h->columns * D);
    project(model, &inputs->at->v, inputs->keys, h->columns, h->heads,
            h->v + first * h->columns * D);
    for (int head = 0; head < h->heads; head++) {
        const ptrdiff_t number = first + head;
        for (ptrdiff_t j = 0; j < h->columns; j++)
            h->value_norms[number * h->columns + j] =
                projected_norm(model, &inputs->at->o, head, h->v + (number * h->columns + j) * D);
    }
}

bool capture_patch(const capture_options *options, attention_kind kind, int layer,
                   const capture_heads *h, float *to)
{
    const size_t cells = (size_t)h->rows * (size_t)h->width;
    bool patched = false;
    for (int n = 0; n < options->patch_count; n++) {
        const head_patch *const p = &options->patches[n];
        if (p->kind != kind || p->layer != layer)
            continue;
        memcpy(to + (size_t)p->head * cells, p->outputs, cells * sizeof *to);
        patched = true;
    }
    return patched;
}
