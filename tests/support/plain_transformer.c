/* SPDX-License-Identifier: MIT */
/* Encoder and decoder in double, with loops over rows, heads and columns (plain_transformer.h). */
#include "support/plain_transformer.h"

#include <math.h>
#include <stdlib.h>

plain_transformer plain_transformer_new(const transformer_config *config, const float *values)
{
    plain_transformer t = {.config = *config, .values = values};
    transformer_map_fill(&t.map, config);
    return t;
}

static double *new_rows(int rows, int width)
{
    double *const x = calloc((size_t)rows * (size_t)width, sizeof *x);
    if (!x)
        abort();
    return x;
}

static double *embed(const plain_transformer *t, int side, const int *words, int rows)
{
    const int width = t->config.width;
    double *const x = new_rows(rows, width);
    for (int i = 0; i < rows; i++)
        for (int c = 0; c < width; c++) {
            const double angle = i * pow(10000.0, -(c - c % 2) / (double)width);
            const float e = t->values[t->map.embedding[side] + (size_t)(words[i] * width + c)];
            x[i * width + c] = (double)e * sqrt(width) + (c % 2 ? cos(angle) : sin(angle));
        }
    return x;
}

static double *norm(const plain_transformer *t, const weight_at *at, const double *x, int rows)
{
    const int width = t->config.width;
    double *const y = new_rows(rows, width);
    for (int i = 0; i < rows; i++) {
        double mean = 0.0, variance = 0.0;
        for (int c = 0; c < width; c++)
            mean += x[i * width + c] / width;
        for (int c = 0; c < width; c++)
            variance += pow(x[i * width + c] - mean, 2.0) / width;
        for (int c = 0; c < width; c++)
            y[i * width + c] = (x[i * width + c] - mean) / sqrt(variance + 1e-5) *
                                   (double)t->values[at->weight + (size_t)c] +
                               (double)t->values[at->bias + (size_t)c];
    }
    return y;
}

static double *linear(const plain_transformer *t, const weight_at *at, const double *x, int rows,
                      int inputs, int outputs)
{
    double *const y = new_rows(rows, outputs);
    for (int i = 0; i < rows; i++)
        for (int n = 0; n < outputs; n++) {
            y[i * outputs + n] = (double)t->values[at->bias + (size_t)n];
            for (int c = 0; c < inputs; c++)
                y[i * outputs + n] +=
                    x[i * inputs + c] * (double)t->values[at->weight + (size_t)(n * inputs + c)];
        }
    return y;
}

/* x += y; frees y. */
static void add(double *x, double *y, int count)
{
    for (int n = 0; n < count; n++)
        x[n] += y[n];
    free(y);
}

/* One row of one head: the weights p[S], and the head's columns of the output. */
static void attend_row(const double *q, const double *k, const double *v, int S, int width, int D,
                       double *p, double *o)
{
    double most = -INFINITY, sum = 0.0;
    for (int j = 0; j < S; j++) {
        p[j] = 0.0;
        for (int c = 0; c < D; c++)
            p[j] += q[c] * k[j * width + c] / sqrt(D);
        most = p[j] > most ? p[j] : most;
    }
    for (int j = 0; j < S; j++)
        sum += p[j] = exp(p[j] - most);
    for (int j = 0; j < S; j++)
        p[j] /= sum;
    for (int c = 0; c < D; c++)
        for (int j = 0; j < S; j++)
            o[c] += p[j] * v[j * width + c];
}

/* x += attention(norm(x), memory); if memory is NULL, self-attention, causal or not. */
static void attend(const plain_transformer *t, const attention_at *at, double *x, int rows,
                   const double *memory, int keys, bool causal, double *weights)
{
    const int width = t->config.width, D = width / t->config.heads;
    double *const y = norm(t, &at->norm, x, rows);
    const double *const from = memory ? memory : y;
    double *const q = linear(t, &at->q, y, rows, width, width);
    double *const k = linear(t, &at->k, from, keys, width, width);
    double *const v = linear(t, &at->v, from, keys, width, width);
    double *const o = new_rows(rows, width), *const p = new_rows(1, keys);
    for (int h = 0; h < t->config.heads; h++)
        for (int i = 0; i < rows; i++) {
            attend_row(q + i * width + h * D, k + h * D, v + h * D, causal ? i + 1 : keys, width, D,
                       p, o + i * width + h * D);
            for (int j = 0; weights && j < keys; j++)
                weights[(h * rows + i) * keys + j] = p[j];
        }
    add(x, linear(t, &at->o, o, rows, width, width), rows * width);
    free(y);
    free(q);
    free(k);
    free(v);
    free(o);
    free(p);
}

static void feed_forward(const plain_transformer *t, const feed_forward_at *at, double *x, int rows)
{
    const int width = t->config.width, inside = t->config.ff_width;
    double *const y = norm(t, &at->norm, x, rows);
    double *const z = linear(t, &at->in, y, rows, width, inside);
    for (int n = 0; n < rows * inside; n++)
        z[n] = z[n] > 0.0 ? z[n] : 0.0;
    add(x, linear(t, &at->out, z, rows, inside, width), rows * width);
    free(y);
    free(z);
}

static double *encode(const plain_transformer *t, const int *source, int count)
{
    double *const x = embed(t, TRANSFORMER_SOURCE, source, count);
    for (int n = 0; n < t->config.layers[TRANSFORMER_SOURCE]; n++) {
        const layer_at *const at = &t->map.layers[TRANSFORMER_SOURCE][n];
        attend(t, &at->self, x, count, NULL, count, false, NULL);
        feed_forward(t, &at->ff, x, count);
    }
    double *const memory = norm(t, &t->map.norm[TRANSFORMER_SOURCE], x, count);
    free(x);
    return memory;
}

/* Replaces the logits of a row by log-probabilities. */
static void log_softmax(double *row, int count)
{
    double most = -INFINITY, sum = 0.0;
    for (int n = 0; n < count; n++)
        most = row[n] > most ? row[n] : most;
    for (int n = 0; n < count; n++)
        sum += exp(row[n] - most);
    for (int n = 0; n < count; n++)
        row[n] -= most + log(sum);
}

void plain_transformer_run(const plain_transformer *t, const int *source, int source_count,
                           const int *words, int read, double *log_probabilities, double *weights)
{
    const int width = t->config.width, count = t->config.words[TRANSFORMER_TARGET];
    double *const memory = encode(t, source, source_count);
    double *const x = embed(t, TRANSFORMER_TARGET, words, read);
    for (int n = 0; n < t->config.layers[TRANSFORMER_TARGET]; n++) {
        const layer_at *const at = &t->map.layers[TRANSFORMER_TARGET][n];
        attend(t, &at->self, x, read, NULL, read, true, NULL);
        attend(t, &at->cross, x, read, memory, source_count, false,
               weights + n * t->config.heads * read * source_count);
        feed_forward(t, &at->ff, x, read);
    }
    double *const y = norm(t, &t->map.norm[TRANSFORMER_TARGET], x, read);
    const float *const embedding = t->values + t->map.embedding[TRANSFORMER_TARGET];
    for (int i = 0; i < read; i++) {
        for (int n = 0; n < count; n++) {
            double *const logit = &log_probabilities[i * count + n];
            *logit = 0.0;
            for (int c = 0; c < width; c++)
                *logit += y[i * width + c] * (double)embedding[n * width + c];
        }
        log_softmax(log_probabilities + i * count, count);
    }
    free(memory);
    free(x);
    free(y);
}
