/* SPDX-License-Identifier: MIT */
/* The forward pass in double precision: see plain_model.h. */
#include "support/plain_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/convert.h"

typedef const model_files *files_t;

static double *numbers(ptrdiff_t count)
{
    double *const made = calloc((size_t)count + 1, sizeof *made);
    if (!made)
        abort();
    return made;
}

static double weight(const bound_matrix *m, ptrdiff_t out, ptrdiff_t in)
{
    return element_load(m->type, m->data, out * m->out_stride + in * m->in_stride);
}

static double element(const bound_vector *v, ptrdiff_t n, double otherwise)
{
    return v->data ? element_load(v->type, v->data, n) : otherwise;
}

static double activate(mha_activation kind, double x)
{
    switch (kind) {
    case MHA_ACTIVATION_RELU:
        return x > 0 ? x : 0;
    case MHA_ACTIVATION_GELU:
        return x * 0.5 * erfc(-x / sqrt(2.0));
    case MHA_ACTIVATION_GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case MHA_ACTIVATION_GELU_QUICK:
        return x / (1 + exp(-1.702 * x));
    case MHA_ACTIVATION_SILU:
        return x / (1 + exp(-x));
    case MHA_ACTIVATION_TANH:
        return tanh(x);
    default:
        return x;
    }
}

/* [rows][outputs] = x W^T + bias, to be freed. */
static double *product(const bound_linear *l, const double *x, ptrdiff_t rows, mha_activation kind)
{
    const ptrdiff_t outputs = l->weight.outputs, inputs = l->weight.inputs;
    double *const y = numbers(rows * outputs);
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t n = 0; n < outputs; n++) {
            double sum = element(&l->bias, n, 0);
            for (ptrdiff_t c = 0; c < inputs; c++)
                sum += x[i * inputs + c] * weight(&l->weight, n, c);
            y[i * outputs + n] = activate(kind, sum);
        }
    return y;
}

/* In place; a norm without weight is left out. */
static void normalise(mha_norm kind, double eps, double add, const bound_vector *weights,
                      const bound_vector *bias, double *x, ptrdiff_t width)
{
    double mean = 0, square = 0;
    if (!weights->data)
        return;
    for (ptrdiff_t c = 0; c < width; c++)
        mean += kind == MHA_NORM_LAYER ? x[c] / (double)width : 0;
    for (ptrdiff_t c = 0; c < width; c++)
        square += (x[c] - mean) * (x[c] - mean) / (double)width;
    for (ptrdiff_t c = 0; c < width; c++)
        x[c] = (x[c] - mean) / sqrt(square + eps) * (element(weights, c, 1) + add) +
               element(bias, c, 0);
}

static void normalise_rows(files_t f, const bound_norm *norm, double *x, ptrdiff_t rows,
                           ptrdiff_t width)
{
    const model_description *const d = &f->description;
    for (ptrdiff_t i = 0; i < rows; i++)
        normalise(d->norm, d->norm_eps, d->norm_add, &norm->weight, &norm->bias, x + i * width,
                  width);
}

/* ----------------------------------------------------------------- attention ----- */

static void rotate(const attention_description *a, int layer, ptrdiff_t position, double *head)
{
    const int width = a->rope_width ? a->rope_width : a->head_width;
    const bool local = attention_window(a, layer) > 0 && a->rope_local_base > 0;
    for (int n = 0; n < width / 2; n++) {
        const double base = local ? a->rope_local_base : a->rope_base;
        const double frequency = a->rope_frequencies && !local ? (double)a->rope_frequencies[n]
                                                               : pow(base, -2.0 * n / width);
        const double angle = (double)position * frequency;
        const bool halves = a->rope_pairs == MHA_ROPE_HALVES;
        double *const x = &head[halves ? n : 2 * n];
        double *const y = &head[halves ? n + width / 2 : 2 * n + 1];
        const double s = *x * cos(angle) - *y * sin(angle);
        *y = *x * sin(angle) + *y * cos(angle);
        *x = s;
    }
}

static double relative_bias(const stack_description *s, const bound_matrix *bias, ptrdiff_t i,
                            ptrdiff_t j, ptrdiff_t h)
{
    int buckets = s->attention.relative_buckets, bucket = 0;
    ptrdiff_t distance = j - i;
    if (!bias->data)
        return 0;
    if (!s->causal) {
        buckets /= 2;
        bucket = distance > 0 ? buckets : 0;
        distance = distance < 0 ? -distance : distance;
    } else {
        distance = distance > 0 ? 0 : -distance;
    }
    const int exact = buckets / 2;
    if (distance < exact)
        bucket += (int)distance;
    else {
        const double far = exact + floor(log((double)distance / exact) /
                                             log((double)s->attention.relative_distance / exact) *
                                             (buckets - exact) +
                                         1e-9);
        bucket += far < buckets - 1 ? (int)far : buckets - 1;
    }
    return weight(bias, bucket, h);
}

static bool visible(const stack_description *s, int layer, bool cross, ptrdiff_t i, ptrdiff_t j)
{
    const int window = cross ? 0 : attention_window(&s->attention, layer);
    if (cross)
        return true;
    if (s->causal)
        return j <= i && (window == 0 || i - j < window);
    return window == 0 || llabs(i - j) <= window / 2;
}

static double *attend(files_t f, int stack, int layer, const bound_attention *b, const double *x,
                      ptrdiff_t rows, const double *memory, ptrdiff_t keys)
{
    const model_description *const d = &f->description;
    const stack_description *const s = &d->stack[stack];
    const attention_description *const a = &s->attention;
    const bool cross = memory != NULL;
    const ptrdiff_t D = a->head_width, H = a->heads, G = a->key_heads;
    keys = cross ? keys : rows;
    double *const q = product(&b->q, x, rows, MHA_ACTIVATION_NONE);
    double *const k = product(&b->k, cross ? memory : x, keys, MHA_ACTIVATION_NONE);
    double *const v = product(&b->v, cross ? memory : x, keys, MHA_ACTIVATION_NONE);
    double *const heads = numbers(rows * H * D), *const p = numbers(keys);
    const bound_vector none = {0};
    for (ptrdiff_t n = 0; n < rows * H; n++) {
        normalise(a->qk_norm, d->norm_eps, d->norm_add, &b->q_norm, &none, q + n * D, D);
        if (s->embedding.position == POSITION_ROTARY)
            rotate(a, layer, n / H, q + n * D);
    }
    for (ptrdiff_t n = 0; n < keys * G; n++) {
        normalise(a->qk_norm, d->norm_eps, d->norm_add, &b->k_norm, &none, k + n * D, D);
        if (s->embedding.position == POSITION_ROTARY)
            rotate(a, layer, n / G, k + n * D);
    }
    const double scale = (a->scale != 0 ? (double)a->scale : 1 / sqrt((double)D)) /
                         (a->scale_by_layer ? layer + 1 : 1);
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t h = 0; h < H; h++) {
            const ptrdiff_t g = h / (H / G);
            double most = -INFINITY, sum = 0;
            for (ptrdiff_t j = 0; j < keys; j++) {
                double score = 0;
                for (ptrdiff_t c = 0; c < D; c++)
                    score += q[(i * H + h) * D + c] * k[(j * G + g) * D + c];
                score *= scale;
                if (a->softcap > 0)
                    score = a->softcap * tanh(score / a->softcap);
                if (!cross)
                    score += relative_bias(s, &f->binding.stack[stack].relative, i, j, h);
                p[j] = visible(s, layer, cross, i, j) ? score : -INFINITY;
                most = fmax(most, p[j]);
            }
            for (ptrdiff_t j = 0; j < keys; j++)
                sum += p[j] = exp(p[j] - most);
            for (ptrdiff_t j = 0; j < keys; j++)
                for (ptrdiff_t c = 0; c < D; c++)
                    heads[(i * H + h) * D + c] += p[j] / sum * v[(j * G + g) * D + c];
        }
    double *const y = product(&b->o, heads, rows, MHA_ACTIVATION_NONE);
    free(q);
    free(k);
    free(v);
    free(heads);
    free(p);
    return y;
}

static double *feed_forward(files_t f, const bound_feed_forward *b, const double *x, ptrdiff_t rows)
{
    const mha_activation kind = f->description.activation;
    const bool gated = f->description.gated;
    double *const up = product(&b->up, x, rows, gated ? MHA_ACTIVATION_NONE : kind);
    double *const gate = gated ? product(&b->gate, x, rows, kind) : NULL;
    for (ptrdiff_t n = 0; gated && n < rows * b->up.weight.outputs; n++)
        up[n] *= gate[n];
    double *const y = product(&b->down, up, rows, MHA_ACTIVATION_NONE);
    free(up);
    free(gate);
    return y;
}

/* -------------------------------------------------------------------- layers ----- */

typedef struct plain_pass {
    files_t files;
    int stack;
    ptrdiff_t rows, width;
    double *x;
    const double *memory;
    ptrdiff_t keys;
} plain_pass;

enum { SELF, CROSS, FEED_FORWARD, PARTS };

static void run_part(plain_pass *pass, int layer, int part)
{
    files_t const f = pass->files;
    const bound_stack *const s = &f->binding.stack[pass->stack];
    const bound_layer *const b = &s->layers[f->description.stack[pass->stack].shared ? 0 : layer];
    const bound_norms *const norms = part == SELF    ? &b->self.norms
                                     : part == CROSS ? &b->cross.norms
                                                     : &b->ff.norms;
    const ptrdiff_t count = pass->rows * pass->width;
    double *const in = numbers(count);
    memcpy(in, pass->x, (size_t)count * sizeof *in);
    normalise_rows(f, &norms->before, in, pass->rows, pass->width);
    double *const y =
        part == SELF ? attend(f, pass->stack, layer, &b->self, in, pass->rows, NULL, 0)
        : part == CROSS
            ? attend(f, pass->stack, layer, &b->cross, in, pass->rows, pass->memory, pass->keys)
            : feed_forward(f, &b->ff, in, pass->rows);
    normalise_rows(f, &norms->inside, y, pass->rows, pass->width);
    for (ptrdiff_t n = 0; n < count; n++)
        pass->x[n] += y[n];
    normalise_rows(f, &norms->after, pass->x, pass->rows, pass->width);
    free(in);
    free(y);
}

static double *run_layers(plain_pass *pass)
{
    files_t const f = pass->files;
    const int layers = f->description.stack[pass->stack].layers;
    const ptrdiff_t count = pass->rows * pass->width;
    double *const streams = numbers((layers + 1) * count);
    for (int n = 0; n < layers; n++) {
        memcpy(streams + n * count, pass->x, (size_t)count * sizeof *streams);
        for (int part = 0; part < PARTS; part++)
            if (part != CROSS || pass->memory)
                run_part(pass, n, part);
    }
    memcpy(streams + layers * count, pass->x, (size_t)count * sizeof *streams);
    normalise_rows(f, &f->binding.stack[pass->stack].final_norm, pass->x, pass->rows, pass->width);
    return streams;
}

/* ----------------------------------------------------------------- embedding ----- */

static void add_position(files_t f, int stack, ptrdiff_t i, double *x)
{
    const embedding_description *const e = &f->description.stack[stack].embedding;
    const bound_matrix *const table = &f->binding.stack[stack].position;
    const ptrdiff_t position = i + e->position_offset;
    for (int c = 0; c < e->width; c++) {
        const bool beside = e->position == POSITION_SINES_NEIGHBOURS;
        const int half = e->width / 2, n = beside ? c / 2 : c % half;
        const double angle = (double)position * pow(10000.0, -(double)n / e->sine_steps);
        const bool cosine = beside ? c % 2 == 1 : c >= half;
        if (e->position == POSITION_LEARNED)
            x[c] += weight(table, position, c);
        else if (e->position == POSITION_SINES || beside)
            x[c] += cosine ? cos(angle) : sin(angle);
    }
}

static double *embed(files_t f, int stack, const int32_t *ids, const int32_t *segments,
                     ptrdiff_t rows)
{
    const embedding_description *const e = &f->description.stack[stack].embedding;
    const bound_stack *const b = &f->binding.stack[stack];
    double *x = numbers(rows * e->width);
    for (ptrdiff_t i = 0; i < rows; i++) {
        for (int c = 0; c < e->width; c++) {
            x[i * e->width + c] = weight(&b->tokens, ids[i], c) * (e->scale != 0 ? e->scale : 1);
            if (b->segments.data)
                x[i * e->width + c] += weight(&b->segments, segments ? segments[i] : 0, c);
        }
        add_position(f, stack, i, x + i * e->width);
    }
    normalise_rows(f, &b->embedding_norm, x, rows, e->width);
    if (b->embedding_project.weight.data) {
        double *const wide = product(&b->embedding_project, x, rows, MHA_ACTIVATION_NONE);
        free(x);
        x = wide;
    }
    return x;
}

static double *embed_picture(files_t f, const float *pixels)
{
    const model_description *const d = &f->description;
    const bound_stack *const b = &f->binding.stack[STACK_ENCODER];
    const int across = d->image_size / d->patch, inputs = d->channels * d->patch * d->patch;
    const ptrdiff_t patches = (ptrdiff_t)across * across, width = d->width;
    double *const cut = numbers(patches * inputs);
    for (ptrdiff_t n = 0; n < patches * inputs; n++) {
        const ptrdiff_t place = n / inputs, at = n % inputs, size = d->image_size;
        const ptrdiff_t c = at / (d->patch * d->patch), y = at / d->patch % d->patch,
                        x = at % d->patch;
        cut[n] = (double)pixels[(c * size + place / across * d->patch + y) * size +
                                place % across * d->patch + x];
    }
    double *const rows = product(&b->patches, cut, patches, MHA_ACTIVATION_NONE);
    double *const all = numbers((patches + d->extra_tokens) * width);
    for (ptrdiff_t c = 0; c < width; c++) {
        all[c] = element(&b->class_token, c, 0);
        all[width + c] = element(&b->distillation_token, c, 0);
    }
    memcpy(all + d->extra_tokens * width, rows, (size_t)(patches * width) * sizeof *rows);
    for (ptrdiff_t i = 0; i < patches + d->extra_tokens; i++)
        add_position(f, STACK_ENCODER, i, all + i * width);
    free(cut);
    free(rows);
    return all;
}

/* ------------------------------------------------------------------- outputs ----- */

static double *logits_of(files_t f, const double *hidden, ptrdiff_t rows)
{
    const model_description *const d = &f->description;
    const model_binding *const b = &f->binding;
    double *x = numbers(rows * d->width);
    for (ptrdiff_t n = 0; n < rows * d->width; n++)
        x[n] = hidden[n] * (d->logit_scale != 0 ? (double)d->logit_scale : 1);
    if (b->transform.weight.data) {
        double *const y = product(&b->transform, x, rows, d->transform_activation);
        normalise_rows(f, &b->transform_norm, y, rows, b->transform.weight.outputs);
        free(x);
        x = y;
    }
    double *const logits = product(&b->output, x, rows, MHA_ACTIVATION_NONE);
    for (ptrdiff_t n = 0; d->logit_softcap > 0 && n < rows * d->vocabulary; n++)
        logits[n] = d->logit_softcap * tanh(logits[n] / d->logit_softcap);
    free(x);
    return logits;
}

static double *labels_of(files_t f, const double *hidden, const double *pooled)
{
    const model_binding *const b = &f->binding;
    double *const labels =
        product(&b->label, f->description.label_pooled ? pooled : hidden, 1, MHA_ACTIVATION_NONE);
    if (b->label_distilled.weight.data) {
        double *const second =
            product(&b->label_distilled, hidden + f->description.width, 1, MHA_ACTIVATION_NONE);
        for (int n = 0; n < f->description.labels; n++)
            labels[n] = (labels[n] + second[n]) / 2;
        free(second);
    }
    return labels;
}

plain_result plain_model_run(const model_files *files, const plain_input *input)
{
    const model_description *const d = &files->description;
    const int last = d->stack[STACK_DECODER].layers ? STACK_DECODER : STACK_ENCODER;
    plain_result r = {0};
    if (last == STACK_DECODER && d->stack[STACK_ENCODER].layers) {
        r.source_hidden = embed(files, STACK_ENCODER, input->source, NULL, input->source_count);
        plain_pass source = {
            files, STACK_ENCODER, input->source_count, d->width, r.source_hidden, NULL, 0};
        free(run_layers(&source));
    }
    r.rows = input->count;
    if (input->pixels) {
        r.rows =
            (ptrdiff_t)(d->image_size / d->patch) * (d->image_size / d->patch) + d->extra_tokens;
        r.hidden = embed_picture(files, input->pixels);
    } else {
        r.hidden = embed(files, last, input->ids, input->segments, input->count);
    }
    plain_pass pass = {
        files, last, r.rows, d->width, r.hidden, r.source_hidden, input->source_count};
    r.streams = run_layers(&pass);
    if (files->binding.output.weight.data)
        r.logits = logits_of(files, r.hidden, r.rows);
    if (files->binding.pooler.weight.data)
        r.pooled = product(&files->binding.pooler, r.hidden, 1, d->pooler_activation);
    if (files->binding.label.weight.data)
        r.labels = labels_of(files, r.hidden, r.pooled);
    return r;
}

void plain_result_free(plain_result *result)
{
    double *const all[] = {result->hidden,  result->source_hidden, result->logits,
                           result->streams, result->pooled,        result->labels};
    for (size_t n = 0; n < sizeof all / sizeof all[0]; n++)
        free(all[n]);
}
