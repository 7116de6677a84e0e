/* SPDX-License-Identifier: MIT */
/*
 * Gradients of a layer as plain loops over tracked numbers (tracked.h), so that every element has
 * the variance of its rounding errors. layer_numbers.c has the forward pass of the same kind.
 */
#include "support/layer_backward_oracle.h"

#include "support/backward_oracle.h"

#include <stdlib.h>
#include <string.h>

/* -------------------------------------------- the way from an input to heads */

/* One projection: from which numbers, with which, to how many heads. */
typedef struct projection {
    layer_part input, matrix, bias, norm, norm_bias;
    ptrdiff_t rows;          /* of the input */
    ptrdiff_t inputs, heads; /* widths of a row, and how many heads it becomes */
    ptrdiff_t width;         /* of a head */
    ptrdiff_t stride;        /* rows of a batch in `projected` */
} projection;

static layer_part input_of(const layer_pass *pass, int which)
{
    const mha_layer_call *const call = &pass->p->call;
    if (which == 2 && call->value.data)
        return PART_VALUE;
    return which > 0 && call->key.data ? PART_KEY : PART_QUERY;
}

static projection projection_of(const layer_pass *pass, int which)
{
    const mha_layer_config *const c = &pass->config;
    const ptrdiff_t widths[] = {c->E, c->key_width, c->value_width};
    const layer_part input = input_of(pass, which);
    return (projection){
        .input = input,
        .matrix = (layer_part)(PART_Q + which),
        .bias = (layer_part)(PART_Q_BIAS + which),
        .norm = which == 0 ? PART_Q_NORM : PART_K_NORM,
        .norm_bias = which == 0 ? PART_Q_NORM_BIAS : PART_K_NORM_BIAS,
        .rows = input == PART_QUERY ? pass->op.shape.L : pass->op.shape.S,
        .inputs = widths[which],
        .heads = which == 0 ? c->H : c->G,
        .width = which == 2 ? c->Dv : c->D,
        .stride = which == 0 ? pass->op.shape.L : pass->columns,
    };
}

static double position_of(const layer_pass *pass, int which, ptrdiff_t b, ptrdiff_t i)
{
    const mha_layer_call *const call = &pass->p->call;
    const mha_options *const o = &pass->op.options;
    const int64_t *const starts = which == 0 ? o->q_starts : o->k_starts;
    const int64_t *const list = which == 0 ? call->q_positions : call->k_positions;
    const ptrdiff_t extent = which == 0 ? pass->op.shape.L : pass->op.shape.S;
    if (list)
        return (double)list[starts ? (ptrdiff_t)starts[b] + i : b * extent + i];
    return (double)(which == 0 ? i + call_offset(&pass->op, b) : i);
}

/* Turn the pairs of a head by `position`, or back again. */
static void rotate(const mha_rope *rope, num *head, double position, bool back)
{
    const ptrdiff_t pairs = rope->width / 2;
    const bool halves = rope->pairs == MHA_ROPE_HALVES;
    for (ptrdiff_t n = 0; n < pairs && rope->pairs != MHA_ROPE_NONE; n++) {
        const double frequency = rope->frequencies
                                     ? (double)rope->frequencies[n]
                                     : pow(rope->base, -2.0 * (double)n / (double)rope->width);
        const double angle = (back ? -1 : 1) * position * frequency;
        num *const a = &head[halves ? n : 2 * n], *const b = &head[halves ? n + pairs : 2 * n + 1];
        const num c = num_rounded(cos(angle)), s = num_rounded(sin(angle)), x = *a, y = *b;
        *a = num_sub(num_mul(x, c), num_mul(y, s));
        *b = num_fma(num_mul(x, s), y, c);
    }
}

static num mean_of(const num *x, const num *y, ptrdiff_t count)
{
    num sum = {0};
    for (ptrdiff_t c = 0; c < count; c++)
        sum = y ? num_fma(sum, x[c], y[c]) : num_add(sum, x[c]);
    return num_div(sum, num_exact((double)count));
}

/* What is left of a head once its mean, with layer norm, and its size are taken away; the factor
 * comes back. */
static num normalise(const mha_layer_config *config, const num *head, num *to)
{
    const ptrdiff_t D = config->D;
    const num mean = config->norm == MHA_NORM_LAYER ? mean_of(head, NULL, D) : (num){0};
    for (ptrdiff_t c = 0; c < D; c++)
        to[c] = config->norm == MHA_NORM_LAYER ? num_sub(head[c], mean) : head[c];
    const num size = num_add(mean_of(to, to, D), num_exact((double)config->norm_eps));
    const num factor = num_div(num_exact(1), num_sqrt(size));
    for (ptrdiff_t c = 0; c < D; c++)
        to[c] = num_mul(to[c], factor);
    return factor;
}

static void shape_head(const layer_pass *pass, const projection *way, const num *head, num *to,
                       double position)
{
    const mha_layer_config *const config = &pass->config;
    memcpy(to, head, (size_t)way->width * sizeof *to);
    if (config->norm != MHA_NORM_NONE) {
        normalise(config, head, to);
        for (ptrdiff_t c = 0; c < config->D; c++)
            to[c] = num_fma(pass->in.of[way->norm_bias][c], to[c], pass->in.of[way->norm][c]);
    }
    rotate(&config->rope, to, position, false);
}

static void project_row(const layer_pass *pass, int which, ptrdiff_t b, ptrdiff_t i)
{
    const projection way = projection_of(pass, which);
    const ptrdiff_t columns = way.heads * way.width, at = (b * way.stride + i) * columns;
    linear_row(pass->in.of[way.matrix], pass->in.of[way.bias], way.inputs, columns,
               pass->in.of[way.input] + (b * way.rows + i) * way.inputs,
               pass->projected[which] + at);
    for (ptrdiff_t h = 0; h < way.heads && which < 2; h++)
        shape_head(pass, &way, pass->projected[which] + at + h * way.width,
                   pass->shaped[which] + at + h * way.width, position_of(pass, which, b, i));
}

/* The learned key and value of every batch, after the S others; that of zero attention is 0. */
static void place_extras(const layer_pass *pass, ptrdiff_t b)
{
    const ptrdiff_t k = pass->in.count[PART_EXTRA_KEY], v = pass->in.count[PART_EXTRA_VALUE];
    const ptrdiff_t row = b * pass->columns + pass->op.shape.S;
    if (k > 0)
        memcpy(pass->shaped[1] + row * k, pass->in.of[PART_EXTRA_KEY], (size_t)k * sizeof(num));
    if (v > 0)
        memcpy(pass->projected[2] + row * v, pass->in.of[PART_EXTRA_VALUE],
               (size_t)v * sizeof(num));
}

/* -------------------------------------------------------------- attention */

/* A query row, and where its numbers are. */
typedef struct place {
    ptrdiff_t b, h, g, i;
    ptrdiff_t row;            /* of [B][H][L] */
    const num *q;             /* [D] */
    const bool *sees;         /* [columns] */
    num *weights, *cap;       /* [columns] */
    ptrdiff_t head, k, v;     /* first element of the head, and of column 0 of its keys, values */
    ptrdiff_t k_step, v_step; /* from column to column */
} place;

static place place_of(const layer_pass *pass, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    const mha_shape *const s = &pass->op.shape;
    const ptrdiff_t g = h / (s->H / s->G), row = (b * s->H + h) * s->L + i;
    return (place){
        .b = b,
        .h = h,
        .g = g,
        .i = i,
        .row = row,
        .q = pass->shaped[0] + ((b * s->L + i) * s->H + h) * s->D,
        .sees = pass->sees + row * pass->columns,
        .weights = pass->weights + row * pass->columns,
        .cap = pass->cap + row * pass->columns,
        .head = ((b * s->L + i) * s->H + h) * s->Dv,
        .k = (b * pass->columns * s->G + g) * s->D,
        .v = (b * pass->columns * s->G + g) * s->Dv,
        .k_step = s->G * s->D,
        .v_step = s->G * s->Dv,
    };
}

static num scale_of(const layer_pass *pass)
{
    const float scale = pass->op.options.scale;
    return scale != 0 ? num_exact((double)scale) : num_rounded(1 / sqrt((double)pass->op.shape.D));
}

static num distance(const layer_pass *pass, const place *at, ptrdiff_t j)
{
    return num_exact(fabs((double)(at->i + call_offset(&pass->op, at->b) - j)));
}

static num added(const mha_view *view, mha_dtype type, const place *at, ptrdiff_t j)
{
    const ptrdiff_t index = at->b * view->sb + at->h * view->sh + at->i * view->sl + j;
    return num_exact(view->data ? number_get(type, view->data, index) : 0);
}

/* Bias, mask and ALiBi of a key. */
static num add_biases(const layer_pass *pass, const place *at, ptrdiff_t j, num score)
{
    const mha_options *const o = &pass->op.options;
    score = num_add(score, pass->in.of[PART_SCORES][at->row * pass->op.shape.S + j]);
    if (o->bias.data)
        score = num_add(score, added(&o->bias, o->bias_type, at, j));
    if (o->add_mask.data)
        score = num_add(score, added(&o->add_mask, o->add_mask_type, at, j));
    if (o->alibi_slopes)
        score = num_sub(score, num_mul(pass->in.of[PART_SLOPES][at->h], distance(pass, at, j)));
    return score;
}

static num score_of(const layer_pass *pass, const place *at, ptrdiff_t j)
{
    const num *const k = pass->shaped[1] + at->k + j * at->k_step;
    num score = {0};
    for (ptrdiff_t c = 0; c < pass->op.shape.D; c++)
        score = num_fma(score, at->q[c], k[c]);
    score = num_mul(score, scale_of(pass));
    at->cap[j] = num_exact(1);
    if (pass->op.options.softcap != 0) {
        const num cap = num_exact((double)pass->op.options.softcap);
        score = num_mul(cap, num_tanh(num_div(score, cap)));
        const num tanh_of = num_div(score, cap); /* again, from what is kept of a score */
        at->cap[j] = num_sub(num_exact(1), num_mul(tanh_of, tanh_of));
    }
    return j < pass->op.shape.S ? add_biases(pass, at, j, score) : score;
}

/* The log-sum-exp of the scores in `weights`. The maximum is only a choice: it has no error. */
static num log_sum_exp(const layer_pass *pass, const place *at, const num *sink)
{
    num top = {sink ? sink->x : -INFINITY, 0, sink ? sink->f : -INFINITY}, sum = {0};
    bool any = false;
    for (ptrdiff_t j = 0; j < pass->columns; j++)
        if (at->sees[j]) {
            any = true;
            top.x = fmax(top.x, at->weights[j].x);
            top.f = fmaxf(top.f, at->weights[j].f);
        }
    if (!any)
        return (num){-INFINITY, 0, -INFINITY};
    for (ptrdiff_t j = 0; j < pass->columns; j++)
        if (at->sees[j])
            sum = num_add(sum, num_exp(num_sub(at->weights[j], top)));
    if (sink)
        sum = num_add(sum, num_exp(num_sub(*sink, top)));
    return num_add(top, num_log(sum));
}

static num gate_of(const layer_pass *pass, const place *at)
{
    const num *const gates = pass->in.of[PART_GATES];
    return pass->in.count[PART_GATES] > 0 ? gates[at->b * pass->config.H + at->h] : num_exact(1);
}

/* What dropout multiplies a weight with: 0 or 1 / (1 - probability). */
static num thinning(const layer_pass *pass, const place *at, ptrdiff_t j)
{
    const mha_options *const o = &pass->op.options;
    const double dropped = (double)o->dropout;
    if (!(o->flags & MHA_TRAINING) || dropped == 0)
        return num_exact(1);
    const bool kept = oracle_keeps(o->dropout_seed, dropped, at->b, at->h, at->i, j);
    return num_rounded(kept ? 1 / (1 - dropped) : 0);
}

static void attend_row(const layer_pass *pass, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    const place at = place_of(pass, b, h, i);
    const ptrdiff_t Dv = pass->config.Dv;
    num *const o = pass->heads + at.head;
    const num *const sinks = pass->in.of[PART_SINKS];
    memset(o, 0, (size_t)Dv * sizeof *o);
    for (ptrdiff_t j = 0; j < pass->columns; j++)
        at.weights[j] = at.sees[j] ? score_of(pass, &at, j) : (num){0};
    pass->lse[at.row] = log_sum_exp(pass, &at, pass->in.count[PART_SINKS] > 0 ? &sinks[h] : NULL);
    for (ptrdiff_t j = 0; j < pass->columns; j++)
        if (at.sees[j]) {
            at.weights[j] = num_exp(num_sub(at.weights[j], pass->lse[at.row]));
            const num weight = num_mul(at.weights[j], thinning(pass, &at, j));
            for (ptrdiff_t c = 0; c < Dv; c++)
                o[c] = num_fma(o[c], weight, pass->projected[2][at.v + j * at.v_step + c]);
        }
    for (ptrdiff_t c = 0; c < Dv; c++)
        o[c] = num_mul(o[c], gate_of(pass, &at));
}

void layer_pass_forward(layer_pass *pass)
{
    const mha_shape *const s = &pass->op.shape;
    const ptrdiff_t inner = s->H * s->Dv, width = pass->config.output_width;
    for (ptrdiff_t b = 0; b < s->B; b++) {
        for (ptrdiff_t i = 0; i < call_queries(&pass->op, b); i++)
            project_row(pass, 0, b, i);
        for (ptrdiff_t j = 0; j < call_keys(&pass->op, b); j++) {
            project_row(pass, 1, b, j);
            project_row(pass, 2, b, j);
        }
        place_extras(pass, b);
        for (ptrdiff_t i = 0; i < call_queries(&pass->op, b); i++) {
            for (ptrdiff_t h = 0; h < s->H; h++)
                attend_row(pass, b, h, i);
            linear_row(pass->in.of[PART_O], pass->in.of[PART_O_BIAS], inner, width,
                       pass->heads + (b * s->L + i) * inner, pass->output + (b * s->L + i) * width);
        }
    }
}

/* --------------------------------------------------------------- backward */

/* Gradients on their way: of the heads' outputs, and of Q, K and V as attention saw them. */
typedef struct flow {
    layer_numbers *out;
    num *d_heads, *d_in[3];
} flow;

static void grow(num *sum, num by)
{
    *sum = num_add(*sum, by);
}

/* From the gradient of the score of column j on. */
static void spread_score(const layer_pass *pass, const flow *to, const place *at, ptrdiff_t j,
                         num ds)
{
    const mha_shape *const s = &pass->op.shape;
    const num by = num_mul(num_mul(ds, at->cap[j]), scale_of(pass));
    const num *const k = pass->shaped[1] + at->k + j * at->k_step;
    num *const d_q = to->d_in[0] + (at->q - pass->shaped[0]);
    num *const d_k = to->d_in[1] + at->k + j * at->k_step;
    for (ptrdiff_t c = 0; c < s->D; c++) {
        d_q[c] = num_fma(d_q[c], by, k[c]);
        d_k[c] = num_fma(d_k[c], by, at->q[c]);
    }
    if (j >= s->S)
        return;
    grow(&to->out->of[PART_SCORES][at->row * s->S + j], ds);
    if (pass->in.count[PART_SLOPES] > 0)
        grow(&to->out->of[PART_SLOPES][at->h], num_minus(num_mul(ds, distance(pass, at, j))));
}

/* d_o . v of column j. */
static num weight_gradient(const layer_pass *pass, const num *d_o, const place *at, ptrdiff_t j)
{
    const num *const v = pass->projected[2] + at->v + j * at->v_step;
    num dot = {0};
    for (ptrdiff_t c = 0; c < pass->config.Dv; c++)
        dot = num_fma(dot, d_o[c], v[c]);
    return dot;
}

static void attend_row_backward(const layer_pass *pass, const flow *to, ptrdiff_t b, ptrdiff_t h,
                                ptrdiff_t i, const num *d_lse)
{
    const place at = place_of(pass, b, h, i);
    const ptrdiff_t Dv = pass->config.Dv;
    const num *const d_o = to->d_heads + at.head, gate = gate_of(pass, &at);
    num delta = {0}, d_gate = {0};
    if (isinf(pass->lse[at.row].x))
        return;
    for (ptrdiff_t c = 0; c < Dv; c++)
        delta = num_fma(delta, d_o[c], pass->heads[at.head + c]);
    if (d_lse)
        delta = num_sub(delta, d_lse[at.row]);
    for (ptrdiff_t j = 0; j < pass->columns; j++)
        if (at.sees[j]) {
            const num thin = thinning(pass, &at, j), dp = weight_gradient(pass, d_o, &at, j);
            const num weight = num_mul(at.weights[j], num_mul(thin, gate));
            const num ds = num_sub(num_mul(num_mul(thin, gate), dp), delta);
            spread_score(pass, to, &at, j, num_mul(at.weights[j], ds));
            for (ptrdiff_t c = 0; c < Dv; c++) {
                num *const d_v = to->d_in[2] + at.v + j * at.v_step + c;
                *d_v = num_fma(*d_v, weight, d_o[c]);
            }
            d_gate = num_fma(d_gate, num_mul(at.weights[j], thin), dp);
        }
    if (pass->in.count[PART_GATES] > 0)
        grow(&to->out->of[PART_GATES][b * pass->config.H + h], d_gate);
    if (pass->in.count[PART_SINKS] > 0) {
        const num weight = num_exp(num_sub(pass->in.of[PART_SINKS][h], pass->lse[at.row]));
        grow(&to->out->of[PART_SINKS][h], num_minus(num_mul(weight, delta)));
    }
}

/* Through the norm of a head: d_head, the gradient after it, becomes that before it. */
static void normalise_backward(const layer_pass *pass, const flow *to, const projection *way,
                               const num *head, num *d_head)
{
    const mha_layer_config *const config = &pass->config;
    const ptrdiff_t D = config->D;
    num unit[MHA_MAX_HEAD_WIDTH];
    const num factor = normalise(config, head, unit);
    for (ptrdiff_t c = 0; c < D; c++) {
        grow(&to->out->of[way->norm_bias][c], d_head[c]);
        grow(&to->out->of[way->norm][c], num_mul(d_head[c], unit[c]));
        d_head[c] = num_mul(d_head[c], pass->in.of[way->norm][c]);
    }
    const num along = mean_of(d_head, unit, D);
    const num mean = config->norm == MHA_NORM_LAYER ? mean_of(d_head, NULL, D) : (num){0};
    for (ptrdiff_t c = 0; c < D; c++) {
        d_head[c] = num_sub(d_head[c], num_mul(unit[c], along));
        if (config->norm == MHA_NORM_LAYER)
            d_head[c] = num_sub(d_head[c], mean);
        d_head[c] = num_mul(d_head[c], factor);
    }
}

static void project_row_backward(const layer_pass *pass, const flow *to, int which, ptrdiff_t b,
                                 ptrdiff_t i)
{
    const projection way = projection_of(pass, which);
    const ptrdiff_t columns = way.heads * way.width, at = (b * way.stride + i) * columns;
    num *const d_y = to->d_in[which] + at;
    for (ptrdiff_t h = 0; h < way.heads && which < 2; h++) {
        rotate(&pass->config.rope, d_y + h * way.width, position_of(pass, which, b, i), true);
        if (pass->config.norm != MHA_NORM_NONE)
            normalise_backward(pass, to, &way, pass->projected[which] + at + h * way.width,
                               d_y + h * way.width);
    }
    const ptrdiff_t x = (b * way.rows + i) * way.inputs;
    linear_row_backward(pass->in.of[way.matrix], way.inputs, columns, pass->in.of[way.input] + x,
                        d_y, to->out->of[way.input] + x, to->out->of[way.matrix],
                        to->out->of[way.bias]);
}

static void take_extras(const layer_pass *pass, const flow *to, ptrdiff_t b)
{
    static const layer_part parts[] = {PART_EXTRA_KEY, PART_EXTRA_VALUE};
    const ptrdiff_t row = b * pass->columns + pass->op.shape.S;
    for (int n = 0; n < 2; n++)
        for (ptrdiff_t c = 0; c < pass->in.count[parts[n]]; c++)
            grow(&to->out->of[parts[n]][c], to->d_in[n + 1][row * pass->in.count[parts[n]] + c]);
}

static void batch_backward(const layer_pass *pass, const flow *to, ptrdiff_t b, const num *d_output,
                           const num *d_lse)
{
    const mha_shape *const s = &pass->op.shape;
    const ptrdiff_t inner = s->H * s->Dv, width = pass->config.output_width;
    for (ptrdiff_t i = 0; i < call_queries(&pass->op, b); i++) {
        const ptrdiff_t row = b * s->L + i;
        linear_row_backward(pass->in.of[PART_O], inner, width, pass->heads + row * inner,
                            d_output + row * width, to->d_heads + row * inner, to->out->of[PART_O],
                            to->out->of[PART_O_BIAS]);
        for (ptrdiff_t h = 0; h < s->H; h++)
            attend_row_backward(pass, to, b, h, i, d_lse);
    }
    for (ptrdiff_t i = 0; i < call_queries(&pass->op, b); i++)
        project_row_backward(pass, to, 0, b, i);
    for (ptrdiff_t j = 0; j < call_keys(&pass->op, b); j++) {
        project_row_backward(pass, to, 1, b, j);
        project_row_backward(pass, to, 2, b, j);
    }
    take_extras(pass, to, b);
}

layer_numbers layer_pass_backward(const layer_pass *pass, const num *d_output, const num *d_lse)
{
    const mha_shape *const s = &pass->op.shape;
    layer_numbers out = layer_numbers_like(&pass->in);
    const flow to = {
        .out = &out,
        .d_heads = nums(s->B * s->L * s->H * s->Dv),
        .d_in = {nums(s->B * s->L * s->H * s->D), nums(s->B * pass->columns * s->G * s->D),
                 nums(s->B * pass->columns * s->G * s->Dv)},
    };
    for (ptrdiff_t b = 0; b < s->B; b++)
        batch_backward(pass, &to, b, d_output, d_lse);
    free(to.d_heads);
    for (int n = 0; n < 3; n++)
        free(to.d_in[n]);
    return out;
}
