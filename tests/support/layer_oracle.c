/* SPDX-License-Identifier: MIT */
/*
 * Linears and layers in double precision with sizes of errors: projections, norm and RoPE here,
 * attention by the rows of problem/oracle.h on a dense mask.
 */
#include "support/layer_oracle.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double roundoff = 0x1p-24;

static void *zeros(ptrdiff_t count, size_t size)
{
    void *const array = calloc((size_t)count + 1, size);
    if (!array)
        abort();
    return array;
}

static double square(double x)
{
    return x * x;
}

/* ----------------------------------------------------------------- linear */

static double element(const mha_matrix *m, ptrdiff_t n, ptrdiff_t c)
{
    return number_get(m->type, m->data, n * m->out_stride + c * m->in_stride);
}

/* The step between stored numbers of output n: i8 spreads 127 of them up to the largest weight. */
static double i8_step(const mha_linear_config *config, ptrdiff_t n)
{
    double largest = 0;
    for (ptrdiff_t c = 0; c < config->inputs; c++)
        largest = fmax(largest, fabs(element(&config->weight, n, c)));
    return largest / 127;
}

static double stored(const mha_linear_config *config, double step, double weight)
{
    if (config->stored != MHA_I8)
        return number_round(config->stored, weight);
    return step > 0 ? nearbyint(weight / step) * step : 0;
}

void linear_stored(const mha_linear_config *config, ptrdiff_t n, double *weights)
{
    const double step = config->stored == MHA_I8 ? i8_step(config, n) : 0;
    for (ptrdiff_t c = 0; c < config->inputs; c++)
        weights[c] = stored(config, step, element(&config->weight, n, c));
}

void linear_oracle(const mha_linear_config *config, const sized *x, sized *y)
{
    double *const weights = zeros(config->inputs, sizeof *weights);
    for (ptrdiff_t n = 0; n < config->outputs; n++) {
        const double bias =
            config->bias.data ? number_get(config->bias.type, config->bias.data, n) : 0;
        linear_stored(config, n, weights);
        y[n] = (sized){bias, fabs(bias)};
        double squares = 0;
        for (ptrdiff_t c = 0; c < config->inputs; c++) {
            const double weight = weights[c];
            y[n].x += x[c].x * weight;
            y[n].size += fabs(x[c].x * weight);
            squares += square(x[c].size * weight);
        }
        y[n].size += sqrt(squares);
    }
    free(weights);
}

/* ---------------------------------------------------------------- extents */

mha_layer_config layer_defaults(const mha_layer_config *config)
{
    mha_layer_config full = *config;
    full.G = full.G ? full.G : full.H;
    full.D = full.D ? full.D : full.E / full.H;
    full.Dv = full.Dv ? full.Dv : full.D;
    full.key_width = full.key_width ? full.key_width : full.E;
    full.value_width = full.value_width ? full.value_width : full.key_width;
    full.output_width = full.output_width ? full.output_width : full.E;
    full.norm_eps = full.norm_eps != 0 ? full.norm_eps : 1e-5f;
    full.rope.width = full.rope.width ? full.rope.width : full.D;
    full.rope.base = full.rope.base != 0 ? full.rope.base : 10000;
    return full;
}

ptrdiff_t layer_keys(const layer_problem *p)
{
    return p->call.key.data ? p->call.S : p->call.L;
}

ptrdiff_t layer_columns(const layer_problem *p)
{
    return layer_keys(p) + (p->weights.extra_key.data != NULL) +
           ((p->config.flags & MHA_LAYER_ZERO_ATTN) != 0);
}

attention_call layer_operator(const layer_problem *p)
{
    const mha_layer_config config = layer_defaults(&p->config);
    attention_call op = {.options = *p->call.options};
    op.shape.B = p->call.B;
    op.shape.H = config.H;
    op.shape.G = config.G;
    op.shape.L = p->call.L;
    op.shape.S = layer_keys(p);
    op.shape.D = config.D;
    op.shape.Dv = config.Dv;
    op.shape.q_type = op.shape.k_type = op.shape.v_type = op.shape.o_type = MHA_F64;
    return op;
}

/* ------------------------------------------------------ heads of one token */

/* Take the mean away, for layer norm. */
static void centre(sized *head, ptrdiff_t D)
{
    double mean = 0, squares = 0;
    for (ptrdiff_t c = 0; c < D; c++) {
        mean += head[c].x / (double)D;
        squares += square(head[c].size / (double)D);
    }
    for (ptrdiff_t c = 0; c < D; c++)
        head[c] =
            (sized){head[c].x - mean, head[c].size + sqrt(squares) + fabs(head[c].x) + fabs(mean)};
}

/* x / sqrt(mean(x^2) + eps) * weight + bias. The size also carries what a wrong mean does. */
static void normalise(const mha_layer_config *config, mha_vector weight, mha_vector bias,
                      sized *head)
{
    const ptrdiff_t D = config->D;
    double mean = (double)config->norm_eps, squares = 0;
    if (config->norm == MHA_NORM_LAYER)
        centre(head, D);
    for (ptrdiff_t c = 0; c < D; c++) {
        mean += square(head[c].x) / (double)D;
        squares += square(head[c].x * head[c].size / (double)D);
    }
    for (ptrdiff_t c = 0; c < D; c++) {
        const double w = weight.data ? number_get(weight.type, weight.data, c) : 1;
        const double b = bias.data ? number_get(bias.type, bias.data, c) : 0;
        const double x = head[c].x / sqrt(mean);
        const double size = head[c].size / sqrt(mean) + fabs(x) * (sqrt(squares) / mean + 1);
        head[c] = (sized){x * w + b, size * fabs(w) + fabs(b)};
    }
}

static void turn(sized *a, sized *b, double angle)
{
    const double c = cos(angle), s = sin(angle);
    const sized x = *a, y = *b;
    *a = (sized){x.x * c - y.x * s, hypot(x.size * c, y.size * s) + fabs(x.x * c) + fabs(y.x * s)};
    *b = (sized){x.x * s + y.x * c, hypot(x.size * s, y.size * c) + fabs(x.x * s) + fabs(y.x * c)};
}

static void rotate(const mha_rope *rope, sized *head, double position)
{
    const ptrdiff_t pairs = rope->width / 2;
    for (ptrdiff_t n = 0; n < pairs && rope->pairs != MHA_ROPE_NONE; n++) {
        const double frequency = rope->frequencies
                                     ? (double)rope->frequencies[n]
                                     : pow(rope->base, -2.0 * (double)n / (double)rope->width);
        const bool halves = rope->pairs == MHA_ROPE_HALVES;
        turn(&head[halves ? n : 2 * n], &head[halves ? n + pairs : 2 * n + 1],
             position * frequency);
    }
}

/* ---------------------------------------------------------------- tensors */

/* The layer's tensors, in double: q [B][H][L], k and v [B][G][columns], o [B][L][H]. */
typedef struct tensors {
    const layer_problem *p;
    mha_layer_config config;
    attention_call op;
    ptrdiff_t columns;
    sized *q, *k, *v, *o;
} tensors;

static sized *row_of(sized *rows_of_heads, ptrdiff_t heads, ptrdiff_t rows, ptrdiff_t width,
                     ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    return rows_of_heads + ((b * heads + h) * rows + i) * width;
}

/* Row (b, i) of an input through one projection; caller frees. */
static sized *project(const tensors *t, const mha_view *input, const int64_t *starts, ptrdiff_t b,
                      ptrdiff_t i, const mha_linear_config *linear)
{
    sized *const x = zeros(linear->inputs, sizeof *x), *const y = zeros(linear->outputs, sizeof *y);
    const ptrdiff_t at = call_row_index(input, starts, b, 0, i);
    for (ptrdiff_t c = 0; c < linear->inputs; c++) {
        const double value = number_get(t->p->call.input_type, input->data, at + c);
        x[c] = (sized){value, 0};
    }
    linear_oracle(linear, x, y);
    free(x);
    return y;
}

static void make_queries(const tensors *t, ptrdiff_t b, ptrdiff_t i)
{
    const mha_layer_config *const config = &t->config;
    const mha_layer_call *const call = &t->p->call;
    const mha_layer_weights *const w = &t->p->weights;
    const int64_t *const starts = t->op.options.q_starts;
    const mha_linear_config linear = {.inputs = config->E,
                                      .outputs = config->H * config->D,
                                      .weight = w->q,
                                      .bias = w->q_bias,
                                      .stored = config->stored};
    const ptrdiff_t row = starts ? (ptrdiff_t)starts[b] + i : b * call->L + i;
    const double position =
        call->q_positions ? (double)call->q_positions[row] : (double)(i + call_offset(&t->op, b));
    sized *const y = project(t, &call->query, starts, b, i, &linear);
    for (ptrdiff_t h = 0; h < config->H; h++) {
        sized *const head = y + h * config->D;
        if (config->norm != MHA_NORM_NONE)
            normalise(config, w->q_norm, w->q_norm_bias, head);
        rotate(&config->rope, head, position);
        memcpy(row_of(t->q, config->H, call->L, config->D, b, h, i), head,
               (size_t)config->D * sizeof *head);
    }
    free(y);
}

static void make_keys(const tensors *t, ptrdiff_t b, ptrdiff_t j)
{
    const mha_layer_config *const config = &t->config;
    const mha_layer_call *const call = &t->p->call;
    const mha_layer_weights *const w = &t->p->weights;
    const int64_t *const starts = t->op.options.k_starts;
    const mha_linear_config linear = {.inputs = config->key_width,
                                      .outputs = config->G * config->D,
                                      .weight = w->k,
                                      .bias = w->k_bias,
                                      .stored = config->stored};
    const ptrdiff_t row = starts ? (ptrdiff_t)starts[b] + j : b * t->op.shape.S + j;
    const double position = call->k_positions ? (double)call->k_positions[row] : (double)j;
    const mha_view *const input = call->key.data ? &call->key : &call->query;
    sized *const y = project(t, input, starts, b, j, &linear);
    for (ptrdiff_t g = 0; g < config->G; g++) {
        sized *const head = y + g * config->D;
        if (config->norm != MHA_NORM_NONE)
            normalise(config, w->k_norm, w->k_norm_bias, head);
        rotate(&config->rope, head, position);
        memcpy(row_of(t->k, config->G, t->columns, config->D, b, g, j), head,
               (size_t)config->D * sizeof *head);
    }
    free(y);
}

static void make_values(const tensors *t, ptrdiff_t b, ptrdiff_t j)
{
    const mha_layer_config *const config = &t->config;
    const mha_layer_call *const call = &t->p->call;
    const mha_linear_config linear = {.inputs = config->value_width,
                                      .outputs = config->G * config->Dv,
                                      .weight = t->p->weights.v,
                                      .bias = t->p->weights.v_bias,
                                      .stored = config->stored};
    const mha_view *const keys = call->key.data ? &call->key : &call->query;
    sized *const y =
        project(t, call->value.data ? &call->value : keys, t->op.options.k_starts, b, j, &linear);
    for (ptrdiff_t g = 0; g < config->G; g++)
        memcpy(row_of(t->v, config->G, t->columns, config->Dv, b, g, j), y + g * config->Dv,
               (size_t)config->Dv * sizeof *y);
    free(y);
}

/* The key and value of every sequence, after the S others. That of zero attention is 0 already. */
static void make_extra(const tensors *t, ptrdiff_t b, mha_vector from, sized *rows_of_heads,
                       ptrdiff_t width)
{
    for (ptrdiff_t g = 0; g < t->config.G && from.data; g++) {
        sized *const row =
            row_of(rows_of_heads, t->config.G, t->columns, width, b, g, t->op.shape.S);
        for (ptrdiff_t c = 0; c < width; c++) {
            row[c] = (sized){number_get(from.type, from.data, g * width + c), 0};
        }
    }
}

static tensors make_tensors(const layer_problem *p)
{
    tensors t = {.p = p, .config = layer_defaults(&p->config), .op = layer_operator(p)};
    const mha_shape *const s = &t.op.shape;
    t.columns = layer_columns(p);
    t.q = zeros(s->B * s->H * s->L * s->D, sizeof *t.q);
    t.k = zeros(s->B * s->G * t.columns * s->D, sizeof *t.k);
    t.v = zeros(s->B * s->G * t.columns * s->Dv, sizeof *t.v);
    t.o = zeros(s->B * s->L * s->H * s->Dv, sizeof *t.o);
    for (ptrdiff_t b = 0; b < s->B; b++) {
        for (ptrdiff_t i = 0; i < call_queries(&t.op, b); i++)
            make_queries(&t, b, i);
        for (ptrdiff_t j = 0; j < call_keys(&t.op, b); j++) {
            make_keys(&t, b, j);
            make_values(&t, b, j);
        }
        make_extra(&t, b, p->weights.extra_key, t.k, s->D);
        make_extra(&t, b, p->weights.extra_value, t.v, s->Dv);
    }
    return t;
}

/* -------------------------------------------------------------- attention */

/* The numbers without their sizes. */
static double *plain(const sized *from, ptrdiff_t count)
{
    double *const to = zeros(count, sizeof *to);
    for (ptrdiff_t n = 0; n < count; n++)
        to[n] = from[n].x;
    return to;
}

/* Dense masks of all columns for the f64 operator: what is attended, and what is added to scores.
 */
static void make_masks(const tensors *t, unsigned char *attend, double *add)
{
    const mha_shape *const s = &t->op.shape;
    ptrdiff_t at = 0;
    for (ptrdiff_t b = 0; b < s->B; b++)
        for (ptrdiff_t h = 0; h < s->H; h++)
            for (ptrdiff_t i = 0; i < s->L; i++)
                for (ptrdiff_t j = 0; j < t->columns; j++, at++) {
                    const bool query = i < call_queries(&t->op, b);
                    attend[at] = j >= s->S || (query && call_attends(&t->op, b, h, i, j));
                    double size = 0;
                    add[at] = j < s->S && attend[at] ? call_added(&t->op, b, h, i, j, &size) : 0;
                }
}

/* The size of a score, 1 for exp() and its argument included. */
static double score_size(const tensors *t, const sized *q, const sized *k, double bias)
{
    const ptrdiff_t D = t->config.D;
    const double scale =
        t->op.options.scale != 0 ? fabs((double)t->op.options.scale) : 1 / sqrt((double)D);
    double sum = 0, squares = 0;
    for (ptrdiff_t c = 0; c < D; c++) {
        sum += fabs(q[c].x * k[c].x);
        squares += square(q[c].size * k[c].x) + square(q[c].x * k[c].size);
    }
    return 1 + scale * (sum + sqrt(squares)) + fabs(bias);
}

/* Sizes of the weights of one row; the largest of a score the row attends to is returned. */
static double size_weights(const tensors *t, const attention_call *dense, const oracle_row *row,
                           sized *weights, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    const mha_layer_config *const config = &t->config;
    const ptrdiff_t at = (b * config->H + h) * t->op.shape.L + i, g = h / (config->H / config->G);
    const unsigned char *const attend = dense->options.attend_mask.data;
    const double *const add = dense->options.add_mask.data;
    double largest = 1 + (t->op.options.sinks ? fabs((double)t->op.options.sinks[h]) : 0);
    for (ptrdiff_t j = 0; j < t->columns; j++) {
        const sized *const k = row_of(t->k, config->G, t->columns, config->D, b, g, j);
        const double bias = add[at * t->columns + j];
        weights[j] = (sized){row->weights[j], score_size(t, t->q + at * config->D, k, bias)};
        if (attend[at * t->columns + j])
            largest = fmax(largest, weights[j].size);
    }
    for (ptrdiff_t j = 0; j < t->columns; j++)
        if (t->op.options.weights_mode == MHA_WEIGHTS_SOFTMAX)
            weights[j].size = attend[at * t->columns + j] ? row->scores[j] * largest + 1e-30 : 0;
    return largest;
}

/* What the operator's oracle found for one row, into the answer, with sizes. */
static void take_row(const tensors *t, const attention_call *dense, const oracle_row *row,
                     layer_answer *answer, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    const mha_layer_config *const config = &t->config;
    const ptrdiff_t at = (b * config->H + h) * t->op.shape.L + i, g = h / (config->H / config->G);
    const unsigned char *const attend = dense->options.attend_mask.data;
    sized *const o = t->o + ((b * t->op.shape.L + i) * config->H + h) * config->Dv;
    const double largest = size_weights(t, dense, row, answer->weights + at * t->columns, b, h, i);
    for (ptrdiff_t c = 0; c < config->Dv; c++) {
        double sum = 0, squares = 0;
        for (ptrdiff_t j = 0; j < t->columns; j++) {
            const sized v = row_of(t->v, config->G, t->columns, config->Dv, b, g, j)[c];
            if (attend[at * t->columns + j]) {
                sum += (row->scores[j] + 1e-30) * fabs(v.x);
                squares += square(row->scores[j] * v.size);
            }
        }
        o[c] = (sized){row->o[c], largest * sum + sqrt(squares)};
    }
    answer->lse[at] = (sized){row->lse, isfinite(row->lse) ? largest + fabs(row->lse) : 0};
}

static void attend_all(const tensors *t, layer_answer *answer)
{
    const mha_shape *const s = &t->op.shape;
    const ptrdiff_t cells = s->B * s->H * s->L * t->columns;
    unsigned char *const attend = zeros(cells, 1);
    double *const add = zeros(cells, sizeof *add);
    double *const q = plain(t->q, s->B * s->H * s->L * s->D);
    double *const k = plain(t->k, s->B * s->G * t->columns * s->D);
    double *const v = plain(t->v, s->B * s->G * t->columns * s->Dv);
    make_masks(t, attend, add);
    attention_call dense = {.shape = *s, .q = mha_view_bhld(q, s->H, s->L, s->D)};
    dense.shape.S = t->columns;
    dense.k = mha_view_bhld(k, s->G, t->columns, s->D);
    dense.v = mha_view_bhld(v, s->G, t->columns, s->Dv);
    dense.options.scale = t->op.options.scale;
    dense.options.softcap = t->op.options.softcap;
    dense.options.sinks = t->op.options.sinks;
    dense.options.attend_mask = mha_view_bhld(attend, s->H, s->L, t->columns);
    dense.options.add_mask = mha_view_bhld(add, s->H, s->L, t->columns);
    dense.options.add_mask_type = MHA_F64;
    dense.options.weights_mode = t->op.options.weights_mode;
    dense.options.weights.data = answer->weights; /* wanted; not written by the oracle */

    oracle_row row;
    oracle_row_init(&row, &dense);
    for (ptrdiff_t b = 0; b < s->B; b++)
        for (ptrdiff_t h = 0; h < s->H; h++)
            for (ptrdiff_t i = 0; i < call_queries(&t->op, b); i++) {
                oracle_row_compute(&row, &dense, b, h, i);
                take_row(t, &dense, &row, answer, b, h, i);
            }
    oracle_row_free(&row);
    free(attend);
    free(add);
    free(q);
    free(k);
    free(v);
}

/* ------------------------------------------------------------------ layer */

layer_answer layer_oracle(const layer_problem *p)
{
    tensors t = make_tensors(p);
    const mha_shape *const s = &t.op.shape;
    const mha_layer_config *const config = &t.config;
    const mha_linear_config linear = {.inputs = s->H * s->Dv,
                                      .outputs = config->output_width,
                                      .weight = p->weights.o,
                                      .bias = p->weights.o_bias,
                                      .stored = config->stored};
    layer_answer answer = {
        .output = zeros(s->B * s->L * config->output_width, sizeof(sized)),
        .weights = zeros(s->B * s->H * s->L * t.columns, sizeof(sized)),
        .lse = zeros(s->B * s->H * s->L, sizeof(sized)),
    };
    attend_all(&t, &answer);
    for (ptrdiff_t b = 0; b < s->B; b++)
        for (ptrdiff_t i = 0; i < call_queries(&t.op, b); i++)
            linear_oracle(&linear, t.o + (b * s->L + i) * linear.inputs,
                          answer.output + (b * s->L + i) * linear.outputs);
    free(t.q);
    free(t.k);
    free(t.v);
    free(t.o);
    return answer;
}

void layer_answer_free(layer_answer *answer)
{
    free(answer->output);
    free(answer->weights);
    free(answer->lse);
}

/* ------------------------------------------------------------- comparison */

static void judge(comparison *result, mha_dtype type, const void *data, ptrdiff_t index, sized want,
                  const char *format, ...) __attribute__((format(printf, 6, 7)));

static void judge(comparison *result, mha_dtype type, const void *data, ptrdiff_t index, sized want,
                  const char *format, ...)
{
    const double got = number_get(type, data, index);
    const double error = compare_error(type, MHA_F32, got, want.x, roundoff * want.size);
    result->worst = fmax(result->worst, error);
    if (error <= result->limit || result->failures++ > 0)
        return;
    char place[80];
    va_list list;
    va_start(list, format);
    vsnprintf(place, sizeof place, format, list);
    va_end(list);
    snprintf(result->first, sizeof result->first, "%s is %.9g, must be %.9g (E %.3g)", place, got,
             want.x, error);
}

static void compare_row(const layer_problem *p, const attention_call *op,
                        const layer_answer *answer, ptrdiff_t b, ptrdiff_t i, comparison *result)
{
    const ptrdiff_t width = layer_defaults(&p->config).output_width;
    const mha_view y = call_view_of(&p->call.output), lse = call_view_of(&op->options.lse);
    const ptrdiff_t at = call_row_index(&y, op->options.q_starts, b, 0, i);
    for (ptrdiff_t c = 0; c < width; c++)
        judge(result, p->call.output_type, y.data, at + c,
              answer->output[(b * p->call.L + i) * width + c], "output(b%td,i%td,c%td)", b, i, c);
    for (ptrdiff_t h = 0; h < op->shape.H && lse.data; h++)
        judge(result, MHA_F32, lse.data, call_row_index(&lse, op->options.q_starts, b, h, i),
              answer->lse[(b * op->shape.H + h) * p->call.L + i], "lse(b%td,h%td,i%td)", b, h, i);
}

static ptrdiff_t chosen(const int64_t *list, ptrdiff_t index)
{
    return list ? (ptrdiff_t)list[index] : index;
}

/* Column j of the weights of query i: of the n-th chosen head, or with n < 0 the mean of all. */
static sized weight_of(const layer_problem *p, const attention_call *op, const layer_answer *answer,
                       ptrdiff_t b, ptrdiff_t n, ptrdiff_t i, ptrdiff_t j)
{
    const mha_options *const o = &op->options;
    const ptrdiff_t columns = layer_columns(p), H = op->shape.H;
    const ptrdiff_t heads = o->weights_heads ? o->weights_head_count : H;
    sized sum = {0, 0};
    for (ptrdiff_t m = n < 0 ? 0 : n; m < (n < 0 ? heads : n + 1); m++) {
        const ptrdiff_t h = chosen(o->weights_heads, m);
        const sized w = answer->weights[((b * H + h) * p->call.L + i) * columns + j];
        sum.x += n < 0 ? w.x / (double)heads : w.x;
        sum.size += n < 0 ? w.size / (double)heads : w.size;
    }
    return sum;
}

static void compare_weights(const layer_problem *p, const attention_call *op,
                            const layer_answer *answer, ptrdiff_t b, comparison *result)
{
    const mha_options *const o = &op->options;
    const bool average = (o->flags & MHA_AVERAGE_WEIGHTS) != 0;
    const ptrdiff_t heads = average ? 1 : o->weights_heads ? o->weights_head_count : op->shape.H;
    const ptrdiff_t rows = o->weights_rows ? o->weights_row_count : op->shape.L;
    for (ptrdiff_t n = 0; n < heads; n++)
        for (ptrdiff_t r = 0; r < rows; r++) {
            const ptrdiff_t i = chosen(o->weights_rows, r);
            const ptrdiff_t at = b * o->weights.sb + (average ? 0 : n * o->weights.sh);
            for (ptrdiff_t j = 0; j < layer_columns(p) && i < call_queries(op, b); j++)
                judge(result, o->weights_type, o->weights.data, at + r * o->weights.sl + j,
                      weight_of(p, op, answer, b, average ? -1 : n, i, j),
                      "weights(b%td,n%td,r%td,j%td)", b, n, r, j);
        }
}

void layer_compare(const layer_problem *p, comparison *result)
{
    const attention_call op = layer_operator(p);
    layer_answer answer = layer_oracle(p);
    result->worst = 0;
    result->failures = 0;
    result->first[0] = '\0';
    for (ptrdiff_t b = 0; b < p->call.B; b++) {
        for (ptrdiff_t i = 0; i < call_queries(&op, b); i++)
            compare_row(p, &op, &answer, b, i, result);
        if (op.options.weights.data)
            compare_weights(p, &op, &answer, b, result);
    }
    layer_answer_free(&answer);
}
