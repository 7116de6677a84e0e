/* SPDX-License-Identifier: MIT */
/*
 * Draws layers: configuration, weights in whole steps, inputs, and the options of a problem of
 * src/problem whose tensors become the inputs and the output.
 */
#include "support/layer_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ specs */

static ptrdiff_t below(test_random *random, ptrdiff_t n)
{
    return (ptrdiff_t)test_random_below(random, n);
}

static ptrdiff_t one_to(test_random *random, ptrdiff_t most)
{
    return 1 + below(random, most);
}

static mha_dtype random_type(test_random *random)
{
    static const mha_dtype types[] = {MHA_F32, MHA_F32, MHA_F16, MHA_BF16};
    return types[test_random_below(random, 4)];
}

static mha_rope random_rope(test_random *random, ptrdiff_t D)
{
    mha_rope rope = {.pairs = (mha_rope_pairs)test_random_below(random, 3)};
    if (D < 2 || rope.pairs == MHA_ROPE_NONE)
        return (mha_rope){0};
    if (D % 2 != 0 || below(random, 2))
        rope.width = 2 * one_to(random, D / 2);
    if (below(random, 2))
        rope.base = 100;
    return rope;
}

static mha_layer_config random_config(test_random *random)
{
    mha_layer_config config = {.size = sizeof config};
    config.G = one_to(random, 3);
    config.H = config.G * one_to(random, 3);
    config.D = one_to(random, below(random, 4) ? 12 : 40);
    config.E = below(random, 2) ? config.H * config.D : one_to(random, 70);
    config.Dv = below(random, 2) ? 0 : one_to(random, 20);
    config.output_width = below(random, 2) ? 0 : one_to(random, 40);
    config.stored = (mha_dtype[]){MHA_F32, MHA_F32, MHA_F16, MHA_BF16, MHA_I8}[below(random, 5)];
    config.norm = (mha_norm)below(random, 3);
    config.norm_eps = below(random, 2) ? 0 : 1e-3f;
    config.rope = random_rope(random, config.D);
    config.flags = below(random, 4) ? 0 : MHA_LAYER_ZERO_ATTN;
    if (config.E == config.H * config.D && below(random, 2))
        config.D = 0;
    if (config.G == config.H && below(random, 2))
        config.G = 0;
    return config;
}

layer_spec layer_spec_random(uint64_t seed)
{
    test_random random = {seed * 0x9e3779b97f4a7c15u + 5};
    layer_spec spec = {.seed = seed, .config = random_config(&random)};
    spec.B = one_to(&random, 3);
    spec.L = one_to(&random, below(&random, 3) ? 9 : 40);
    spec.S = one_to(&random, below(&random, 3) ? 9 : 70);
    const int64_t rarity = one_to(&random, 4);
    for (unsigned bit = 1; bit <= LAYER_EVERYTHING; bit <<= 1)
        spec.parts |= test_random_below(&random, rarity + 1) == 0 ? bit : 0;
    for (unsigned bit = 1; bit <= FEATURE_EVERYTHING; bit <<= 1)
        spec.options |= test_random_below(&random, 2 * rarity) == 0 ? bit : 0;
    spec.options &= FEATURE_EVERYTHING;
    if (spec.parts & LAYER_CROSS && below(&random, 2))
        spec.config.key_width = one_to(&random, 50);
    if (spec.parts & LAYER_VALUE && below(&random, 2))
        spec.config.value_width = one_to(&random, 50);
    else if (!(spec.parts & LAYER_VALUE)) /* values come from the key input */
        spec.config.value_width = spec.config.key_width;
    spec.weight_type = random_type(&random);
    spec.input_type = random_type(&random);
    spec.output_type = random_type(&random);
    return spec;
}

layer_spec layer_spec_small(unsigned parts, unsigned options)
{
    return (layer_spec){
        .seed = 11,
        .config = {.size = sizeof(mha_layer_config), .E = 24, .H = 4, .G = 2, .Dv = 5},
        .B = 2,
        .L = 5,
        .S = 7,
        .parts = parts | LAYER_BIASES,
        .options = options,
    };
}

/* ---------------------------------------------------------------- weights */

static void *numbers(layer_case *c, ptrdiff_t count)
{
    return problem_alloc(c->memory, (size_t)count * mha_dtype_size(c->spec.weight_type));
}

/* Whole steps, the first of each output 127 of them: about 1/sqrt(inputs) large. */
static mha_matrix random_matrix(layer_case *c, test_random *random, ptrdiff_t inputs,
                                ptrdiff_t outputs)
{
    void *const data = numbers(c, inputs * outputs);
    const mha_dtype type = c->spec.weight_type;
    const double step = exp2(-nearbyint(log2(73 * sqrt((double)inputs))));
    const mha_matrix matrix = c->spec.parts & LAYER_IN_OUT ? mha_matrix_in_out(data, type, outputs)
                                                           : mha_matrix_out_in(data, type, inputs);
    for (ptrdiff_t n = 0; n < outputs; n++)
        for (ptrdiff_t i = 0; i < inputs; i++)
            number_set(type, data, n * matrix.out_stride + i * matrix.in_stride,
                       step * (double)(i == 0 ? 127 : test_random_below(random, 255) - 127));
    return matrix;
}

/* Numbers around `mean`, if the case has that part. */
static mha_vector random_vector(layer_case *c, test_random *random, unsigned part, ptrdiff_t count,
                                double mean)
{
    if (!(c->spec.parts & part))
        return (mha_vector){0};
    void *const data = numbers(c, count);
    for (ptrdiff_t n = 0; n < count; n++)
        number_set(c->spec.weight_type, data, n, mean + 0.4 * (double)test_random_normal(random));
    return (mha_vector){data, c->spec.weight_type};
}

static void make_weights(layer_case *c, test_random *random)
{
    const mha_layer_config f = layer_defaults(&c->p.config);
    mha_layer_weights *const w = &c->p.weights;
    *w = (mha_layer_weights){.size = sizeof *w};
    w->q = random_matrix(c, random, f.E, f.H * f.D);
    w->k = random_matrix(c, random, f.key_width, f.G * f.D);
    w->v = random_matrix(c, random, f.value_width, f.G * f.Dv);
    w->o = random_matrix(c, random, f.H * f.Dv, f.output_width);
    w->q_bias = random_vector(c, random, LAYER_Q_BIAS, f.H * f.D, 0);
    w->k_bias = random_vector(c, random, LAYER_K_BIAS, f.G * f.D, 0);
    w->v_bias = random_vector(c, random, LAYER_V_BIAS, f.G * f.Dv, 0);
    w->o_bias = random_vector(c, random, LAYER_O_BIAS, f.output_width, 0);
    w->extra_key = random_vector(c, random, LAYER_EXTRA, f.G * f.D, 0);
    w->extra_value = random_vector(c, random, LAYER_EXTRA, f.G * f.Dv, 0);
    if (f.norm != MHA_NORM_NONE) {
        w->q_norm = random_vector(c, random, LAYER_Q_NORM, f.D, 1);
        w->k_norm = random_vector(c, random, LAYER_K_NORM, f.D, 1);
        w->q_norm_bias = random_vector(c, random, LAYER_Q_NORM_BIAS, f.D, 0);
        w->k_norm_bias = random_vector(c, random, LAYER_K_NORM_BIAS, f.D, 0);
    }
    if (c->spec.parts & LAYER_FREQUENCIES && f.rope.pairs != MHA_ROPE_NONE) {
        float *const turns = problem_alloc(c->memory, (size_t)f.rope.width / 2 * sizeof *turns);
        for (ptrdiff_t n = 0; n < f.rope.width / 2; n++)
            turns[n] = test_random_float(random);
        c->p.config.rope.frequencies = turns;
    }
}

/* ---------------------------------------------------------------- options */

static bool is_self(const layer_spec *spec)
{
    return !(spec->parts & (LAYER_CROSS | LAYER_VALUE));
}

static ptrdiff_t keys_of(const layer_spec *spec)
{
    return spec->parts & LAYER_CROSS ? spec->S : spec->L;
}

static ptrdiff_t extras_of(const layer_spec *spec)
{
    return ((spec->parts & LAYER_EXTRA) != 0) + ((spec->config.flags & MHA_LAYER_ZERO_ATTN) != 0);
}

/* The case was built with the extra columns among its keys; lengths and starts must not count
 * them. Keys made from the query input are packed as it is. */
static void correct_lengths(layer_case *c)
{
    mha_options *const o = &c->memory->call.options;
    const ptrdiff_t keys = keys_of(&c->spec);
    int64_t *const starts = (int64_t *)o->k_starts, *const lengths = (int64_t *)o->k_lengths;
    for (ptrdiff_t b = c->spec.B; b > 0 && starts; b--)
        starts[b] -= starts[b - 1];
    for (ptrdiff_t b = 0; b < c->spec.B && starts; b++)
        starts[b + 1] = starts[b] + (starts[b + 1] < keys ? starts[b + 1] : keys);
    if (!(c->spec.parts & LAYER_CROSS) && starts) {
        o->k_starts = o->q_starts;
        if (o->k_documents)
            o->k_documents = o->q_documents;
    }
    for (ptrdiff_t b = 0; b < c->spec.B && lengths; b++) {
        const int64_t most = o->k_starts ? o->k_starts[b + 1] - o->k_starts[b] : keys;
        lengths[b] = lengths[b] < most ? lengths[b] : most;
    }
    c->memory->call.shape.S = keys;
    if (o->position == MHA_POSITION_UNSET && c->spec.L != keys)
        o->position = MHA_POSITION_TOP_LEFT;
}

static problem *make_options(layer_case *c)
{
    const mha_layer_config f = layer_defaults(&c->spec.config);
    const layer_spec *const s = &c->spec;
    const problem_spec spec = {
        .shape = {.B = s->B,
                  .H = f.H,
                  .G = f.G,
                  .L = s->L,
                  .S = keys_of(s) + extras_of(s),
                  .D = 1,
                  .Dv = 1,
                  .q_type = s->input_type,
                  .k_type = s->input_type,
                  .v_type = s->input_type,
                  .o_type = s->output_type},
        .features = s->options,
        .seed = s->seed,
        .memory = s->memory,
    };
    return problem_new(&spec);
}

/* ------------------------------------------------------------------- rows */

/* An input or the output: rows of one head, laid out as the spec says. */
static void make_rows(layer_case *c, test_random *random, tensor_id id, ptrdiff_t rows,
                      ptrdiff_t width, const int64_t *starts)
{
    const ptrdiff_t B = c->spec.B;
    const ptrdiff_t n[4] = {starts ? 1 : B, 1, starts ? (ptrdiff_t)starts[B] : rows, width};
    const bool strides = (c->spec.options & FEATURE_STRIDES) != 0;
    problem_tensor(c->memory, id, mha_dtype_size(problem_type(c->memory, id)), n,
                   strides ? random : NULL, 0);
    tensor *const t = &c->memory->tensors[id];
    if (c->spec.parts & LAYER_SEQUENCE_FIRST && !strides && !starts) {
        t->s[0] = width;
        t->s[2] = B * width;
    }
}

/* Numbers in the first `count` rows of batch b; the others stay NaN. */
static void fill_rows(layer_case *c, test_random *random, tensor_id id, const int64_t *starts,
                      ptrdiff_t b, ptrdiff_t count)
{
    const ptrdiff_t first = starts ? (ptrdiff_t)starts[b] : 0;
    for (ptrdiff_t i = 0; i < count; i++)
        for (ptrdiff_t n = 0; n < c->memory->tensors[id].n[3]; n++)
            problem_set(c->memory, id, starts ? 0 : b, 0, first + i, n,
                        (double)test_random_normal(random));
}

static void make_inputs(layer_case *c, test_random *random)
{
    const mha_layer_config f = layer_defaults(&c->spec.config);
    const attention_call *const op = &c->memory->call;
    const int64_t *const q_starts = op->options.q_starts, *const k_starts = op->options.k_starts;
    const bool cross = c->spec.parts & LAYER_CROSS, value = c->spec.parts & LAYER_VALUE;
    make_rows(c, random, TENSOR_Q, c->spec.L, f.E, q_starts);
    make_rows(c, random, TENSOR_O, c->spec.L, f.output_width, q_starts);
    c->memory->tensors[TENSOR_K].memory = c->memory->tensors[TENSOR_V].memory = NULL;
    if (cross)
        make_rows(c, random, TENSOR_K, keys_of(&c->spec), f.key_width, k_starts);
    if (value)
        make_rows(c, random, TENSOR_V, keys_of(&c->spec), f.value_width, k_starts);
    for (ptrdiff_t b = 0; b < c->spec.B; b++) {
        const ptrdiff_t queries = call_queries(op, b), keys = call_keys(op, b);
        fill_rows(c, random, TENSOR_Q, q_starts, b, cross || queries > keys ? queries : keys);
        if (cross)
            fill_rows(c, random, TENSOR_K, k_starts, b, keys);
        if (value)
            fill_rows(c, random, TENSOR_V, k_starts, b, keys);
    }
}

static const int64_t *make_positions(layer_case *c, test_random *random, ptrdiff_t rows,
                                     const int64_t *starts)
{
    const ptrdiff_t count = starts ? (ptrdiff_t)starts[c->spec.B] : c->spec.B * rows;
    if (!(c->spec.parts & LAYER_POSITIONS))
        return NULL;
    int64_t *const positions = problem_alloc(c->memory, (size_t)count * sizeof *positions);
    for (ptrdiff_t n = 0; n < count; n++)
        positions[n] = test_random_below(random, 400) - 100;
    return positions;
}

/* ------------------------------------------------------------------- case */

static void connect(layer_case *c, test_random *random)
{
    attention_call *const op = &c->memory->call;
    problem_connect(c->memory);
    c->p.call = (mha_layer_call){
        .size = sizeof c->p.call,
        .B = c->spec.B,
        .L = c->spec.L,
        .S = is_self(&c->spec) ? 0 : keys_of(&c->spec),
        .query = op->q,
        .key = op->k,
        .value = op->v,
        .output = op->o,
        .input_type = c->spec.input_type,
        .output_type = c->spec.output_type,
        .q_positions = make_positions(c, random, c->spec.L, op->options.q_starts),
        .k_positions = make_positions(c, random, keys_of(&c->spec), op->options.k_starts),
        .options = &op->options,
    };
}

layer_case *layer_case_new(const layer_spec *spec)
{
    layer_case *const c = calloc(1, sizeof *c);
    test_random random = {spec->seed ^ 0x1a9e};
    if (!c)
        abort();
    c->spec = *spec;
    c->p.config = spec->config;
    c->memory = make_options(c);
    correct_lengths(c);
    make_weights(c, &random);
    make_inputs(c, &random);
    connect(c, &random);
    const mha_status status = mha_layer_create(&c->layer, &c->p.config, &c->p.weights);
    CHECK(status == MHA_OK, "%s: create: %s", layer_case_name(c), mha_status_string(status));
    return c;
}

void layer_case_free(layer_case *c)
{
    mha_layer_free(c->layer);
    problem_delete(c->memory);
    free(c);
}

const char *layer_case_name(const layer_case *c)
{
    static char text[240];
    const mha_layer_config *const g = &c->spec.config;
    snprintf(text, sizeof text,
             "seed %llu E%td h%tdg%td d%tdv%td k%td v%td o%td b%tdl%tds%td stored %d norm %d "
             "rope %d/%td zero %u types %d%d%d parts %#x options %#x",
             (unsigned long long)c->spec.seed, g->E, g->H, g->G, g->D, g->Dv, g->key_width,
             g->value_width, g->output_width, c->spec.B, c->spec.L, c->spec.S, (int)g->stored,
             (int)g->norm, (int)g->rope.pairs, g->rope.width, g->flags, (int)c->spec.weight_type,
             (int)c->spec.input_type, (int)c->spec.output_type, c->spec.parts, c->spec.options);
    return text;
}

void layer_case_run(layer_case *c, mha_pool *pool)
{
    const size_t size = mha_layer_work_size(c->layer, &c->p.call, mha_pool_threads(pool));
    guard_buffer work = guard_new(size, c->spec.seed % 2 ? GUARD_AFTER : GUARD_BEFORE);
    problem_reset(c->memory);
    c->memory->message[0] = '\0';
    const mha_status status = mha_layer_run(c->layer, &c->p.call, work.data, size, pool);
    CHECK(status == MHA_OK, "%s: status %d, %s", layer_case_name(c), (int)status,
          c->memory->message);
    CHECK(guard_intact(&work), "%s: written outside the workspace", layer_case_name(c));
    guard_free(&work);
}

double layer_case_check(layer_case *c, double limit)
{
    comparison result = {.limit = limit};
    layer_compare(&c->p, &result);
    CHECK(result.failures == 0, "%s: %td wrong, first %s", layer_case_name(c), result.failures,
          result.first);
    problem_expect_untouched(c->memory);
    return result.worst;
}
