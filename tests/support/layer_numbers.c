/* SPDX-License-Identifier: MIT */
/* Numbers of a layer by name, out of the memory of a call; and the linear, which is short. */
#include "support/layer_backward_oracle.h"

#include <stdlib.h>

const char *const layer_part_names[PARTS] = {"d_query",
                                             "d_key",
                                             "d_value",
                                             "q",
                                             "k",
                                             "v",
                                             "o",
                                             "q_bias",
                                             "k_bias",
                                             "v_bias",
                                             "o_bias",
                                             "extra_key",
                                             "extra_value",
                                             "q_norm",
                                             "k_norm",
                                             "q_norm_bias",
                                             "k_norm_bias",
                                             "scores",
                                             "d_alibi_slopes",
                                             "d_sinks",
                                             "d_gates"};

num *nums(ptrdiff_t count)
{
    num *const array = calloc((size_t)count + 1, sizeof *array);
    if (!array)
        abort();
    return array;
}

/* ----------------------------------------------------------------- linear */

void linear_row(const num *w, const num *bias, ptrdiff_t inputs, ptrdiff_t outputs, const num *x,
                num *y)
{
    for (ptrdiff_t n = 0; n < outputs; n++) {
        num sum = {0};
        for (ptrdiff_t c = 0; c < inputs; c++)
            sum = num_fma(sum, x[c], w[n * inputs + c]);
        y[n] = bias ? num_add(sum, bias[n]) : sum;
    }
}

void linear_row_backward(const num *w, ptrdiff_t inputs, ptrdiff_t outputs, const num *x,
                         const num *d_y, num *d_x, num *d_w, num *d_bias)
{
    for (ptrdiff_t n = 0; n < outputs; n++) {
        for (ptrdiff_t c = 0; d_x && c < inputs; c++)
            d_x[c] = num_fma(d_x[c], d_y[n], w[n * inputs + c]);
        for (ptrdiff_t c = 0; d_w && c < inputs; c++)
            d_w[n * inputs + c] = num_fma(d_w[n * inputs + c], d_y[n], x[c]);
        if (d_bias)
            d_bias[n] = num_add(d_bias[n], d_y[n]);
    }
}

num *linear_weights(const mha_linear_config *config)
{
    num *const w = nums(config->inputs * config->outputs);
    double *const row = calloc((size_t)config->inputs + 1, sizeof *row);
    if (!row)
        abort();
    for (ptrdiff_t n = 0; n < config->outputs; n++) {
        linear_stored(config, n, row);
        for (ptrdiff_t c = 0; c < config->inputs; c++)
            w[n * config->inputs + c] = num_exact(row[c]);
    }
    free(row);
    return w;
}

/* ---------------------------------------------------------------- numbers */

layer_numbers layer_numbers_like(const layer_numbers *other)
{
    layer_numbers zeros = {0};
    for (int part = 0; part < PARTS; part++) {
        zeros.count[part] = other->count[part];
        zeros.of[part] = nums(other->count[part]);
    }
    return zeros;
}

void layer_numbers_free(layer_numbers *numbers)
{
    for (int part = 0; part < PARTS; part++)
        free(numbers->of[part]);
}

static void make(layer_pass *pass, layer_part part, ptrdiff_t count)
{
    pass->in.of[part] = nums(count);
    pass->in.count[part] = count;
}

/* An input that the call has: `rows` rows; batch b has counts(b) of them. */
static void read_input(layer_pass *pass, layer_part part, const mha_view *view,
                       const int64_t *starts, ptrdiff_t rows, ptrdiff_t width)
{
    const mha_layer_call *const call = &pass->p->call;
    const bool queries = part == PART_QUERY;
    make(pass, part, view->data ? call->B * rows * width : 0);
    for (ptrdiff_t b = 0; b < call->B && view->data; b++) {
        const ptrdiff_t q = call_queries(&pass->op, b), k = call_keys(&pass->op, b);
        const bool serves = !call->key.data; /* the query input stands in for keys or values */
        const ptrdiff_t count = !queries ? k : serves && k > q ? k : q;
        for (ptrdiff_t i = 0; i < count; i++)
            for (ptrdiff_t c = 0; c < width; c++)
                pass->in.of[part][(b * rows + i) * width + c] = num_exact(number_get(
                    call->input_type, view->data, call_row_index(view, starts, b, 0, i) + c));
    }
}

static void read_matrix(layer_pass *pass, layer_part part, const mha_matrix *matrix,
                        ptrdiff_t inputs, ptrdiff_t outputs)
{
    const mha_linear_config config = {
        .inputs = inputs, .outputs = outputs, .weight = *matrix, .stored = pass->config.stored};
    pass->in.of[part] = linear_weights(&config);
    pass->in.count[part] = inputs * outputs;
}

static void read_vector(layer_pass *pass, layer_part part, const mha_vector *vector,
                        ptrdiff_t count, double missing)
{
    make(pass, part, count);
    for (ptrdiff_t n = 0; n < count; n++)
        pass->in.of[part][n] =
            num_exact(vector->data ? number_get(vector->type, vector->data, n) : missing);
}

static void read_heads(layer_pass *pass, layer_part part, const float *numbers, ptrdiff_t batches,
                       ptrdiff_t stride)
{
    const ptrdiff_t H = pass->config.H;
    make(pass, part, numbers ? batches * H : 0);
    for (ptrdiff_t n = 0; n < pass->in.count[part]; n++)
        pass->in.of[part][n] = num_exact((double)numbers[n / H * stride + n % H]);
}

static void read_weights(layer_pass *pass)
{
    const mha_layer_config *const c = &pass->config;
    const mha_layer_weights *const w = &pass->p->weights;
    const ptrdiff_t normed = c->norm == MHA_NORM_NONE ? 0 : c->D;
    read_matrix(pass, PART_Q, &w->q, c->E, c->H * c->D);
    read_matrix(pass, PART_K, &w->k, c->key_width, c->G * c->D);
    read_matrix(pass, PART_V, &w->v, c->value_width, c->G * c->Dv);
    read_matrix(pass, PART_O, &w->o, c->H * c->Dv, c->output_width);
    read_vector(pass, PART_Q_BIAS, &w->q_bias, c->H * c->D, 0);
    read_vector(pass, PART_K_BIAS, &w->k_bias, c->G * c->D, 0);
    read_vector(pass, PART_V_BIAS, &w->v_bias, c->G * c->Dv, 0);
    read_vector(pass, PART_O_BIAS, &w->o_bias, c->output_width, 0);
    read_vector(pass, PART_EXTRA_KEY, &w->extra_key, w->extra_key.data ? c->G * c->D : 0, 0);
    read_vector(pass, PART_EXTRA_VALUE, &w->extra_value, w->extra_key.data ? c->G * c->Dv : 0, 0);
    read_vector(pass, PART_Q_NORM, &w->q_norm, normed, 1);
    read_vector(pass, PART_K_NORM, &w->k_norm, normed, 1);
    read_vector(pass, PART_Q_NORM_BIAS, &w->q_norm_bias, normed, 0);
    read_vector(pass, PART_K_NORM_BIAS, &w->k_norm_bias, normed, 0);
}

static void find_visible(layer_pass *pass)
{
    const mha_shape *const s = &pass->op.shape;
    const ptrdiff_t cells = s->B * s->H * s->L * pass->columns;
    pass->sees = calloc((size_t)cells + 1, sizeof *pass->sees);
    if (!pass->sees)
        abort();
    for (ptrdiff_t n = 0; n < cells; n++) {
        const ptrdiff_t j = n % pass->columns, row = n / pass->columns, i = row % s->L;
        const ptrdiff_t h = row / s->L % s->H, b = row / s->L / s->H;
        pass->sees[n] =
            i < call_queries(&pass->op, b) && (j >= s->S || call_attends(&pass->op, b, h, i, j));
    }
}

layer_pass *layer_pass_new(const layer_problem *p)
{
    layer_pass *const pass = calloc(1, sizeof *pass);
    if (!pass)
        abort();
    pass->p = p;
    pass->config = layer_defaults(&p->config);
    pass->op = layer_operator(p);
    pass->columns = layer_columns(p);
    const mha_layer_config *const c = &pass->config;
    const mha_shape *const s = &pass->op.shape;
    const mha_options *const o = &pass->op.options;
    read_input(pass, PART_QUERY, &p->call.query, o->q_starts, s->L, c->E);
    read_input(pass, PART_KEY, &p->call.key, o->k_starts, s->S, c->key_width);
    read_input(pass, PART_VALUE, &p->call.value, o->k_starts, s->S, c->value_width);
    read_weights(pass);
    make(pass, PART_SCORES, s->B * s->H * s->L * s->S);
    read_heads(pass, PART_SLOPES, o->alibi_slopes, 1, 0);
    read_heads(pass, PART_SINKS, o->sinks, 1, 0);
    read_heads(pass, PART_GATES, o->gates, s->B, o->gates_sb);
    pass->projected[0] = nums(s->B * s->L * s->H * s->D);
    pass->shaped[0] = nums(s->B * s->L * s->H * s->D);
    pass->projected[1] = nums(s->B * pass->columns * s->G * s->D);
    pass->shaped[1] = nums(s->B * pass->columns * s->G * s->D);
    pass->projected[2] = nums(s->B * pass->columns * s->G * s->Dv);
    pass->weights = nums(s->B * s->H * s->L * pass->columns);
    pass->cap = nums(s->B * s->H * s->L * pass->columns);
    pass->heads = nums(s->B * s->L * s->H * s->Dv);
    pass->lse = nums(s->B * s->H * s->L);
    pass->output = nums(s->B * s->L * c->output_width);
    find_visible(pass);
    return pass;
}

void layer_pass_free(layer_pass *pass)
{
    layer_numbers_free(&pass->in);
    for (int n = 0; n < 3; n++)
        free(pass->projected[n]);
    for (int n = 0; n < 2; n++)
        free(pass->shaped[n]);
    free(pass->sees);
    free(pass->weights);
    free(pass->cap);
    free(pass->heads);
    free(pass->lse);
    free(pass->output);
    free(pass);
}
