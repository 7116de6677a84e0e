/* SPDX-License-Identifier: MIT */
/*
 * Feed-forwards and fused linears: compared with double precision over shapes, types and
 * activations, in memory between guard pages; to the bit what separate calls give, for any number
 * of rows and threads, any strides and in place. Errors are in test_feed_forward_errors.c.
 */
#include "support/guard.h"
#include "support/layer_oracle.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const mha_dtype float_types[] = {MHA_F32, MHA_F16, MHA_BF16};
static const mha_dtype stored_types[] = {MHA_F32, MHA_F16, MHA_BF16, MHA_I8};

/* Units of u * size, see layer_oracle.h. */
static const double limit = 8;

/* ---------------------------------------------------------------------- cases ---- */

typedef struct spec {
    ptrdiff_t rows, inputs, inner, outputs;
    mha_activation activation;
    bool gated, bias, residual, in_out;
    mha_dtype stored, weight_type;
    ptrdiff_t gap; /* elements between rows */
    guard_side side;
    uint64_t seed;
} spec;

enum { GATE, UP, DOWN, LINEARS };

typedef struct ff_case {
    spec s;
    mha_linear_config linears[LINEARS]; /* the same, as linears of their own */
    guard_buffer weights[LINEARS], biases[LINEARS];
    guard_buffer x, residual, y;
    ptrdiff_t stride; /* of x, residual and y */
    mha_feed_forward *ff;
} ff_case;

/* Weights are multiples of 2^-10 that every type holds exactly; one weight of every output is 127
 * steps large, so that i8 finds the same steps. */
static void fill_linear(ff_case *f, int which, ptrdiff_t inputs, ptrdiff_t outputs,
                        test_random *random)
{
    const spec *const s = &f->s;
    const size_t size = mha_dtype_size(s->weight_type);
    f->weights[which] = guard_new((size_t)(inputs * outputs) * size, s->side);
    f->biases[which] = guard_new((size_t)outputs * size, s->side);
    mha_linear_config *const c = &f->linears[which];
    *c = (mha_linear_config){
        .size = sizeof *c, .inputs = inputs, .outputs = outputs, .stored = s->stored};
    c->weight = s->in_out ? mha_matrix_in_out(f->weights[which].data, s->weight_type, outputs)
                          : mha_matrix_out_in(f->weights[which].data, s->weight_type, inputs);
    if (s->bias)
        c->bias = (mha_vector){f->biases[which].data, s->weight_type};
    for (ptrdiff_t n = 0; n < outputs; n++) {
        number_set(s->weight_type, f->biases[which].data, n, (double)test_random_normal(random));
        for (ptrdiff_t i = 0; i < inputs; i++)
            number_set(s->weight_type, f->weights[which].data,
                       n * c->weight.out_stride + i * c->weight.in_stride,
                       (double)(i == 0 ? 127 : test_random_below(random, 255) - 127) * 0x1p-10);
    }
}

static guard_buffer numbers(size_t count, test_random *random, guard_side side)
{
    guard_buffer buffer = guard_new(count * sizeof(float), side);
    for (size_t n = 0; n < count; n++)
        ((float *)buffer.data)[n] = test_random_normal(random);
    return buffer;
}

static mha_feed_forward_config config_of(const ff_case *f)
{
    const spec *const s = &f->s;
    mha_feed_forward_config c = {.size = sizeof c,
                                 .inputs = s->inputs,
                                 .inner = s->inner,
                                 .outputs = s->outputs == s->inputs ? 0 : s->outputs,
                                 .activation = s->activation,
                                 .gated = s->gated,
                                 .up = f->linears[UP].weight,
                                 .down = f->linears[DOWN].weight,
                                 .up_bias = f->linears[UP].bias,
                                 .down_bias = f->linears[DOWN].bias,
                                 .stored = s->stored};
    if (s->gated) {
        c.gate = f->linears[GATE].weight;
        c.gate_bias = f->linears[GATE].bias;
    }
    return c;
}

static ff_case case_of(const spec *s)
{
    ff_case f = {.s = *s};
    test_random random = {s->seed};
    const ptrdiff_t width = s->inputs > s->outputs ? s->inputs : s->outputs;
    f.stride = width + s->gap;
    fill_linear(&f, GATE, s->inputs, s->inner, &random);
    fill_linear(&f, UP, s->inputs, s->inner, &random);
    fill_linear(&f, DOWN, s->inner, s->outputs, &random);
    const size_t all = s->rows > 0 ? (size_t)((s->rows - 1) * f.stride + width) : 0;
    f.x = numbers(all, &random, s->side);
    f.residual = numbers(all, &random, s->side);
    f.y = numbers(all, &random, s->side);
    const mha_feed_forward_config config = config_of(&f);
    const mha_status status = mha_feed_forward_create(&f.ff, &config);
    CHECK(status == MHA_OK && f.ff, "create: %s", mha_status_string(status));
    return f;
}

static void case_done(ff_case *f)
{
    mha_feed_forward_free(f->ff);
    for (int n = 0; n < LINEARS; n++) {
        guard_free(&f->weights[n]);
        guard_free(&f->biases[n]);
    }
    guard_free(&f->x);
    guard_free(&f->residual);
    guard_free(&f->y);
}

static const char *name_of(const spec *s)
{
    static char text[200];
    snprintf(text, sizeof text,
             "%td x %td -> %td -> %td, activation %d%s%s%s, stored %d from %d, gap %td, seed %llu",
             s->rows, s->inputs, s->inner, s->outputs, (int)s->activation,
             s->gated ? ", gated" : "", s->bias ? ", bias" : "", s->residual ? ", residual" : "",
             (int)s->stored, (int)s->weight_type, s->gap, (unsigned long long)s->seed);
    return text;
}

/* Run with a workspace of exactly the required size, at its own guard page. */
static void run_to(ff_case *f, const float *x, const float *residual, float *y, mha_pool *pool)
{
    const spec *const s = &f->s;
    const size_t size = mha_feed_forward_work_size(f->ff, s->rows, mha_pool_threads(pool));
    guard_buffer work = guard_new(size, s->side);
    memset(work.data, 0xff, size);
    const mha_status status = mha_feed_forward_run(f->ff, s->rows, x, f->stride, residual,
                                                   f->stride, y, f->stride, work.data, size, pool);
    CHECK(status == MHA_OK, "%s: %s", name_of(s), mha_status_string(status));
    CHECK(guard_intact(&work), "%s: written outside the workspace", name_of(s));
    guard_free(&work);
}

static void run_case(ff_case *f, mha_pool *pool)
{
    run_to(f, f->x.data, f->s.residual ? f->residual.data : NULL, f->y.data, pool);
    CHECK(guard_intact(&f->y), "%s: written outside", name_of(&f->s));
}

/* --------------------------------------------------------------------- oracle ---- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double activated(mha_activation activation, double x)
{
    switch (activation) {
    case MHA_ACTIVATION_RELU:
        return x > 0 ? x : 0;
    case MHA_ACTIVATION_GELU:
        return x * 0.5 * erfc(-x * 0.70710678118654752440);
    case MHA_ACTIVATION_GELU_TANH:
        return x * 0.5 * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case MHA_ACTIVATION_GELU_QUICK:
        return x * sigmoid(1.702 * x);
    case MHA_ACTIVATION_SILU:
        return x * sigmoid(x);
    case MHA_ACTIVATION_TANH:
        return tanh(x);
    default:
        return x;
    }
}

/* No activation is steeper than 1.2. */
static sized activate(mha_activation activation, sized x)
{
    const double y = activated(activation, x.x);
    return (sized){y, 1.2 * x.size + fabs(y)};
}

static void oracle(const ff_case *f, const float *x, sized *y)
{
    const spec *const s = &f->s;
    sized *const row = calloc((size_t)s->inputs + 1, sizeof *row);
    sized *const gate = calloc((size_t)s->inner + 1, sizeof *gate);
    sized *const up = calloc((size_t)s->inner + 1, sizeof *up);
    for (ptrdiff_t c = 0; c < s->inputs; c++)
        row[c].x = (double)x[c];
    linear_oracle(&f->linears[UP], row, up);
    if (s->gated)
        linear_oracle(&f->linears[GATE], row, gate);
    for (ptrdiff_t n = 0; n < s->inner; n++) {
        const sized a = activate(s->activation, s->gated ? gate[n] : up[n]);
        const double size = fabs(a.x) * up[n].size + fabs(up[n].x) * a.size;
        up[n] = s->gated ? (sized){a.x * up[n].x, size} : a;
    }
    linear_oracle(&f->linears[DOWN], up, y);
    free(row);
    free(gate);
    free(up);
}

static void check_row(const ff_case *f, ptrdiff_t i, sized *want)
{
    const spec *const s = &f->s;
    oracle(f, (const float *)f->x.data + i * f->stride, want);
    for (ptrdiff_t n = 0; n < s->outputs; n++) {
        const double got = (double)((float *)f->y.data)[i * f->stride + n];
        const double add = s->residual ? (double)((float *)f->residual.data)[i * f->stride + n] : 0;
        const double unit = 0x1p-24 * (want[n].size + fabs(add));
        CHECK(fabs(got - want[n].x - add) <= limit * unit,
              "%s: y(%td,%td) is %.9g, must be %.9g (%.3g units)", name_of(s), i, n, got,
              want[n].x + add, fabs(got - want[n].x - add) / unit);
    }
}

static void try_case(const spec *s, ptrdiff_t most)
{
    ff_case f = case_of(s);
    test_random random = {s->seed ^ 5};
    sized *const want = calloc((size_t)s->outputs + 1, sizeof *want);
    guard_seal(&f.x);
    guard_seal(&f.residual);
    run_case(&f, NULL);
    for (ptrdiff_t n = 0; n < most && n < s->rows; n++)
        check_row(&f, n == 0 ? s->rows - 1 : (ptrdiff_t)test_random_below(&random, s->rows), want);
    free(want);
    case_done(&f);
}

/* --------------------------------------------------------------------- shapes ---- */

static const ptrdiff_t sizes[] = {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 130, 257};
enum { SIZES = sizeof sizes / sizeof *sizes };

static spec any_spec(test_random *random)
{
    return (spec){.rows = 1 + (ptrdiff_t)test_random_below(random, 30),
                  .inputs = sizes[test_random_below(random, SIZES)],
                  .inner = sizes[test_random_below(random, SIZES)],
                  .outputs = sizes[test_random_below(random, SIZES)],
                  .activation = (mha_activation)test_random_below(random, 7),
                  .gated = test_random_below(random, 2),
                  .bias = test_random_below(random, 2),
                  .residual = test_random_below(random, 2),
                  .in_out = test_random_below(random, 2),
                  .stored = stored_types[test_random_below(random, 4)],
                  .weight_type = float_types[test_random_below(random, 3)],
                  .gap = (ptrdiff_t)test_random_below(random, 4),
                  .side = test_random_below(random, 2) ? GUARD_AFTER : GUARD_BEFORE,
                  .seed = test_random_u64(random)};
}

static void anything(void)
{
    test_random random = {test_seed(501)};
    for (int64_t n = 0; n < test_effort(500); n++) {
        const spec s = any_spec(&random);
        try_case(&s, 4);
    }
}

/* Parts of the inputs, several blocks of rows, and rows that do not fit in the workspace at once.
 */
static void large_shapes(void)
{
    static const ptrdiff_t shapes[][4] = {
        {100, 384, 1536, 384}, {13, 576, 1536, 576}, {1, 576, 1536, 576}, {450, 33, 70, 21},
        {3, 7, 11008, 5},      {20, 11, 11008, 9},   {20, 1400, 37, 1100}};
    for (int n = 0; n < 7 * 2; n++) {
        const ptrdiff_t *const size = shapes[n / 2];
        const spec s = {.rows = size[0],
                        .inputs = size[1],
                        .inner = size[2],
                        .outputs = size[3],
                        .activation = n % 2 ? MHA_ACTIVATION_SILU : MHA_ACTIVATION_GELU,
                        .gated = n % 2,
                        .bias = n % 3,
                        .residual = true,
                        .seed = (uint64_t)n};
        try_case(&s, 2);
    }
}

static void every_type_and_activation(void)
{
    for (int n = 0; n < 4 * 3 * 7 * 2; n++) {
        const spec s = {.rows = n % 5 ? 3 : 14,
                        .inputs = 70,
                        .inner = 35 + n % 40,
                        .outputs = 20,
                        .activation = (mha_activation)(n % 7),
                        .gated = n / 7 % 2,
                        .bias = true,
                        .stored = stored_types[n / 14 % 4],
                        .weight_type = float_types[n / 56],
                        .seed = (uint64_t)n};
        try_case(&s, 3);
    }
}

/* Nothing to sum, nothing to write. */
static void nothing_is_legal(void)
{
    static const ptrdiff_t extents[] = {0, 1, 17};
    for (int n = 0; n < 81 * 2; n++) {
        const spec s = {.rows = extents[n % 3],
                        .inputs = extents[n / 3 % 3],
                        .inner = extents[n / 9 % 3],
                        .outputs = extents[n / 27 % 3] ? extents[n / 27 % 3] : extents[n / 3 % 3],
                        .activation = MHA_ACTIVATION_GELU,
                        .gated = n / 81,
                        .bias = true,
                        .residual = n % 2,
                        .seed = (uint64_t)n};
        try_case(&s, 3);
    }
}

/* ----------------------------------------------------------------------- bits ---- */

static void same_bits(const ff_case *f, const float *got, const float *want, const char *what)
{
    const size_t size = (size_t)f->s.outputs * sizeof(float);
    for (ptrdiff_t i = 0; i < f->s.rows; i++)
        CHECK(memcmp(got + i * f->stride, want + i * f->stride, size) == 0,
              "%s: row %td has other bits %s", name_of(&f->s), i, what);
}

static mha_linear *linear_of(const ff_case *f, int which)
{
    mha_linear *linear;
    CHECK(mha_linear_create(&linear, &f->linears[which]) == MHA_OK, "linear");
    return linear;
}

static void run_linear(const mha_linear *linear, ptrdiff_t rows, const float *x, ptrdiff_t x_stride,
                       float *y, ptrdiff_t y_stride)
{
    CHECK(mha_linear_run(linear, rows, x, MHA_F32, x_stride, y, MHA_F32, y_stride, NULL, 0, NULL) ==
              MHA_OK,
          "linear");
}

/* inner by linears, activation and product one after another. */
static void inner_apart(const ff_case *f, float *inner, float *gate)
{
    const spec *const s = &f->s;
    const ptrdiff_t count = s->rows * s->inner;
    mha_linear *const a = linear_of(f, UP), *const b = linear_of(f, GATE);
    run_linear(a, s->rows, f->x.data, f->stride, inner, s->inner);
    run_linear(b, s->rows, f->x.data, f->stride, gate, s->inner);
    float *const activated_one = s->gated ? gate : inner;
    CHECK(mha_activation_run(s->activation, count, activated_one, activated_one, NULL) == MHA_OK,
          "activation");
    for (ptrdiff_t n = 0; s->gated && n < count; n++)
        inner[n] *= gate[n];
    mha_linear_free(a);
    mha_linear_free(b);
}

/* Fusing changes no bit. */
static void separate_calls_give_the_same(void)
{
    test_random random = {test_seed(502)};
    for (int64_t n = 0; n < test_effort(200); n++) {
        const spec s = any_spec(&random);
        ff_case f = case_of(&s);
        float *const inner = malloc(sizeof *inner * (size_t)(s.rows * s.inner));
        float *const gate = malloc(sizeof *gate * (size_t)(s.rows * s.inner));
        float *const y = malloc(f.y.size);
        inner_apart(&f, inner, gate);
        mha_linear *const down = linear_of(&f, DOWN);
        run_linear(down, s.rows, inner, s.inner, y, f.stride);
        for (ptrdiff_t i = 0; s.residual && i < s.rows; i++)
            for (ptrdiff_t c = 0; c < s.outputs; c++)
                y[i * f.stride + c] += ((float *)f.residual.data)[i * f.stride + c];
        run_case(&f, NULL);
        same_bits(&f, f.y.data, y, "than separate calls");
        CHECK(mha_feed_forward_bytes(f.ff) >=
                  (s.gated ? 2 : 1) * (size_t)(s.inputs * s.inner) * mha_dtype_size(s.stored) +
                      mha_linear_bytes(down),
              "bytes");
        mha_linear_free(down);
        free(inner);
        free(gate);
        free(y);
        case_done(&f);
    }
}

/* One row at a time, with strides of its own, and several threads. */
static void rows_and_threads_do_not_matter(void)
{
    for (int n = 0; n < 8; n++) {
        const spec s = {.rows = n % 4 == 3 ? 700 : 40 + 60 * (n % 4),
                        .inputs = n % 4 == 1 ? 1300 : 50,
                        .inner = n % 4 == 0 ? 1400 : 90,
                        .outputs = 50,
                        .activation = n / 4 ? MHA_ACTIVATION_SILU : MHA_ACTIVATION_GELU,
                        .gated = n / 4,
                        .bias = true,
                        .residual = true,
                        .stored = stored_types[n % 4],
                        .seed = (uint64_t)n};
        ff_case f = case_of(&s);
        float *const want = malloc(f.y.size);
        run_case(&f, NULL);
        memcpy(want, f.y.data, f.y.size);
        for (int threads = 2; threads <= 4; threads++) {
            mha_pool *pool;
            CHECK(mha_pool_create(&pool, threads) == MHA_OK, "pool");
            memset(f.y.data, 0, f.y.size);
            run_case(&f, pool);
            same_bits(&f, f.y.data, want, "with more threads");
            mha_pool_free(pool);
        }
        memset(f.y.data, 0, f.y.size);
        for (ptrdiff_t i = 0; i < s.rows; i += 7) {
            const ptrdiff_t at = i * f.stride, rows = s.rows - i < 7 ? s.rows - i : 7;
            CHECK(mha_feed_forward_run(f.ff, rows, (float *)f.x.data + at, f.stride,
                                       (float *)f.residual.data + at, f.stride,
                                       (float *)f.y.data + at, f.stride, NULL, 0, NULL) == MHA_OK,
                  "run");
        }
        same_bits(&f, f.y.data, want, "in smaller calls");
        free(want);
        case_done(&f);
    }
}

/* y may be x, the residual, or both. */
static void in_place(void)
{
    test_random random = {test_seed(503)};
    for (int64_t n = 0; n < test_effort(90); n++) {
        spec s = any_spec(&random);
        s.rows = n % 9 == 0 ? 500 : s.rows;
        s.residual = n % 3 != 0;
        ff_case f = case_of(&s);
        float *const want = malloc(f.y.size);
        if (n % 3 == 2)
            memcpy(f.residual.data, f.x.data, f.x.size);
        run_to(&f, f.x.data, s.residual ? f.residual.data : NULL, want, NULL);
        if (n % 3 == 0)
            run_to(&f, f.x.data, NULL, f.x.data, NULL);
        else if (n % 3 == 1)
            run_to(&f, f.x.data, f.residual.data, f.residual.data, NULL);
        else
            run_to(&f, f.x.data, f.x.data, f.x.data, NULL);
        same_bits(&f, n % 3 == 1 ? f.residual.data : f.x.data, want, "in place");
        free(want);
        case_done(&f);
    }
}

/* The caller's weights may go once they are packed. */
static void weights_are_copied(void)
{
    test_random random = {test_seed(504)};
    spec s = any_spec(&random);
    s.gated = true;
    ff_case f = case_of(&s);
    float *const want = malloc(f.y.size);
    run_to(&f, f.x.data, NULL, want, NULL);
    for (int n = 0; n < LINEARS; n++) {
        guard_free(&f.weights[n]);
        guard_free(&f.biases[n]);
    }
    run_to(&f, f.x.data, NULL, f.y.data, NULL);
    same_bits(&f, f.y.data, want, "without the caller's weights");
    free(want);
    case_done(&f);
}

/* NaN and infinity stay in their row. */
static void nan_stays_in_its_row(void)
{
    for (int n = 0; n < 2 * 7; n++) {
        const spec s = {.rows = 15,
                        .inputs = 40,
                        .inner = 50,
                        .outputs = 40,
                        .activation = (mha_activation)(n % 7),
                        .gated = n / 7,
                        .seed = (uint64_t)n};
        ff_case f = case_of(&s);
        ((float *)f.x.data)[4 * f.stride + 3] = NAN;
        run_case(&f, NULL);
        for (ptrdiff_t i = 0; i < s.rows * s.outputs; i++) {
            const float y = ((float *)f.y.data)[i / s.outputs * f.stride + i % s.outputs];
            CHECK(isnan(y) == (i / s.outputs == 4), "%s: y[%td] is %g", name_of(&s), i, (double)y);
        }
        case_done(&f);
    }
}

/* -------------------------------------------------------------- fused linears ---- */

/* y in every type is the rounded f32 result of separate calls. */
static void fused_linears(void)
{
    test_random random = {test_seed(505)};
    for (int64_t n = 0; n < test_effort(200); n++) {
        const spec s = any_spec(&random);
        ff_case f = case_of(&s);
        const mha_dtype type = float_types[n % 3];
        mha_linear *const up = linear_of(&f, UP);
        const ptrdiff_t stride = s.inner + s.gap;
        const size_t count = (size_t)((s.rows - 1) * stride + s.inner);
        guard_buffer residual = numbers(count, &random, s.side);
        guard_buffer y = guard_new(count * mha_dtype_size(type), s.side);
        float *const want = calloc(count, sizeof *want);
        run_linear(up, s.rows, f.x.data, f.stride, want, stride);
        mha_activation_run(s.activation, (ptrdiff_t)count, want, want, NULL);
        for (size_t c = 0; s.residual && c < count; c++)
            want[c] += ((float *)residual.data)[c];
        const size_t size = mha_linear_work_size(up, s.rows, 1);
        guard_buffer work = guard_new(size, s.side);
        const bool over = type == MHA_F32 && s.residual && n % 2;
        CHECK(mha_linear_run_fused(up, s.rows, f.x.data, MHA_F32, f.stride, s.activation,
                                   s.residual ? residual.data : NULL, stride,
                                   over ? residual.data : y.data, type, stride, work.data, size,
                                   NULL) == MHA_OK,
              "fused");
        CHECK(guard_intact(&y) && guard_intact(&residual) && guard_intact(&work), "outside");
        for (ptrdiff_t i = 0; i < s.rows * s.inner; i++) {
            const ptrdiff_t at = i / s.inner * stride + i % s.inner;
            const double got = number_get(type, over ? residual.data : y.data, at);
            float rounded[1] = {0};
            number_set(type, rounded, 0, (double)want[at]);
            CHECK(got == number_get(type, rounded, 0), "%s: fused y[%td] is %a, must be %a",
                  name_of(&s), i, got, (double)want[at]);
        }
        mha_linear_free(up);
        free(want);
        guard_free(&residual);
        guard_free(&y);
        guard_free(&work);
        case_done(&f);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(anything);
    RUN(large_shapes);
    RUN(every_type_and_activation);
    RUN(nothing_is_legal);
    RUN(separate_calls_give_the_same);
    RUN(rows_and_threads_do_not_matter);
    RUN(in_place);
    RUN(weights_are_copied);
    RUN(nan_stays_in_its_row);
    RUN(fused_linears);
    return test_end();
}
