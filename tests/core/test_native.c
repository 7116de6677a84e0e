/* SPDX-License-Identifier: MIT */
/*
 * Native arithmetic of linears, feed-forwards and layers: errors against double precision, bits
 * that depend on nothing but the row (those of i8 not even on the instruction set), what is not
 * finite, and that types without native products are computed exactly.
 */
#include "support/test.h"

#include <mha/mha.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const mha_dtype native_types[] = {MHA_BF16, MHA_I8};
static const ptrdiff_t odd[] = {1, 2, 3, 5, 16, 31, 33, 59, 64, 100, 255, 256, 257, 700};
enum { ODD = sizeof odd / sizeof odd[0] };

static ptrdiff_t odd_extent(test_random *random)
{
    return odd[test_random_below(random, ODD)];
}

static void *take(size_t bytes)
{
    void *const memory = malloc(bytes + 1);
    if (!memory)
        abort();
    return memory;
}

/* --------------------------------------------------------------------- linears ---- */

typedef struct native_case {
    ptrdiff_t rows, inputs, outputs;
    mha_dtype stored;
    float *w, *bias, *x, *y; /* weights that the stored type holds exactly */
    mha_linear *linear;
} native_case;

/* Numbers that a stored type holds exactly. i8, Q8_0: multiples of 2^-10, up to 127 of them in
 * size; one of each group is as large as that. Q4_0: from -8 to 7 with a -8, Q4_1: from 0 to 15
 * with both. */
static float stored_weight_of(mha_dtype stored, test_random *random, ptrdiff_t c)
{
    if (stored == MHA_Q4_0)
        return (float)(c % 32 == 0 ? -8 : test_random_below(random, 16) - 8) * 0x1p-6f;
    if (stored == MHA_Q4_1)
        return (float)(c % 32 < 2 ? c % 32 * 15 : test_random_below(random, 16)) * 0x1p-6f;
    if (stored == MHA_Q8_0 && c % 32 == 0)
        return 127 * 0x1p-10f;
    return (float)(c == 0 ? 127 : test_random_below(random, 255) - 127) * 0x1p-10f;
}

static mha_linear *linear_of(const native_case *c, mha_arithmetic arithmetic)
{
    mha_linear *linear = NULL;
    const mha_linear_config config = {.size = sizeof config,
                                      .inputs = c->inputs,
                                      .outputs = c->outputs,
                                      .weight = mha_matrix_out_in(c->w, MHA_F32, c->inputs),
                                      .bias = {c->bias, MHA_F32},
                                      .stored = c->stored,
                                      .arithmetic = arithmetic};
    const mha_status status = mha_linear_create(&linear, &config);
    CHECK(status == MHA_OK && linear, "create: %s", mha_status_string(status));
    return linear;
}

static native_case case_new(test_random *random, ptrdiff_t rows, ptrdiff_t inputs,
                            ptrdiff_t outputs, mha_dtype stored)
{
    native_case c = {rows, inputs, outputs, stored, NULL, NULL, NULL, NULL, NULL};
    c.w = take(sizeof(float) * (size_t)(inputs * outputs));
    c.bias = take(sizeof(float) * (size_t)outputs);
    c.x = take(sizeof(float) * (size_t)(rows * inputs));
    c.y = take(sizeof(float) * (size_t)(rows * outputs));
    for (ptrdiff_t n = 0; n < outputs; n++) {
        c.bias[n] = test_random_normal(random);
        for (ptrdiff_t i = 0; i < inputs; i++)
            c.w[n * inputs + i] = stored_weight_of(stored, random, i);
    }
    for (ptrdiff_t i = 0; i < rows * inputs; i++)
        c.x[i] = test_random_normal(random) + (i / inputs % 3 == 1 ? 2.0f : 0.0f);
    c.linear = linear_of(&c, MHA_NATIVE);
    return c;
}

static void case_free(native_case *c)
{
    mha_linear_free(c->linear);
    free(c->w);
    free(c->bias);
    free(c->x);
    free(c->y);
}

static void run(const native_case *c, const mha_linear *linear, float *y, mha_pool *pool)
{
    const mha_status status = mha_linear_run(linear, c->rows, c->x, MHA_F32, c->inputs, y, MHA_F32,
                                             c->outputs, NULL, 0, pool);
    CHECK(status == MHA_OK, "run: %s", mha_status_string(status));
}

static bool same_bits(const float *a, const float *b, ptrdiff_t count)
{
    return memcmp(a, b, sizeof(float) * (size_t)count) == 0;
}

/* What the inputs of a row may be off by, in the native type: docs/numerics.md. */
static void input_errors(const native_case *c, const float *x, double *errors)
{
    const ptrdiff_t inputs = c->inputs, group = c->stored == MHA_I8 ? inputs : 32;
    for (ptrdiff_t first = 0; first < inputs; first += group) {
        double low = 0, high = 0;
        for (ptrdiff_t n = first; n < inputs && n < first + group; n++) {
            low = fmin(low, (double)x[n]);
            high = fmax(high, (double)x[n]);
        }
        for (ptrdiff_t n = first; n < inputs && n < first + group; n++)
            errors[n] = c->stored == MHA_BF16 ? fabs((double)x[n]) * 0x1p-8
                        : c->stored == MHA_I8 ? (high - low) / 253 * 0.50005
                                              : fmax(high, -low) / 127 * 0.50005;
    }
}

static void check_row(const native_case *c, ptrdiff_t r)
{
    const float *const x = c->x + r * c->inputs;
    double *const errors = take(sizeof(double) * (size_t)c->inputs);
    input_errors(c, x, errors);
    for (ptrdiff_t n = 0; n < c->outputs; n++) {
        double exact = (double)c->bias[n], size = fabs(exact), bound = 0;
        for (ptrdiff_t i = 0; i < c->inputs; i++) {
            const double w = (double)c->w[n * c->inputs + i];
            exact += w * (double)x[i];
            size += fabs(w * (double)x[i]);
            bound += errors[i] * fabs(w);
        }
        bound += size * 0x1p-24 * (c->stored == MHA_I8 ? 4.0 : (double)c->inputs + 4);
        const double error = fabs((double)c->y[r * c->outputs + n] - exact);
        CHECK(error <= bound, "%td rows, %td inputs, %td outputs, type %d: %g, at most %g", c->rows,
              c->inputs, c->outputs, (int)c->stored, error, bound);
    }
    free(errors);
}

static void errors_are_bounded(void)
{
    test_random random = {test_seed(301)};
    for (int n = 0; n < 60; n++) {
        const ptrdiff_t inputs = odd_extent(&random), outputs = odd_extent(&random);
        native_case c = case_new(&random, 1 + test_random_below(&random, 20), inputs, outputs,
                                 native_types[n % 2]);
        run(&c, c.linear, c.y, NULL);
        for (ptrdiff_t r = 0; r < c.rows; r++)
            check_row(&c, r);
        case_free(&c);
    }
}

/* The error of i8 is that of its inputs, and not of twice as many steps: the bound is not slack. */
static void rounding_shows(void)
{
    test_random random = {test_seed(302)};
    for (int t = 0; t < 2; t++) {
        native_case c = case_new(&random, 8, 512, 64, native_types[t]);
        float *const exact = take(sizeof(float) * (size_t)(c.rows * c.outputs));
        mha_linear *const plain = linear_of(&c, MHA_EXACT);
        double error = 0, size = 0;
        run(&c, c.linear, c.y, NULL);
        run(&c, plain, exact, NULL);
        for (ptrdiff_t n = 0; n < c.rows * c.outputs; n++) {
            error += pow((double)c.y[n] - (double)exact[n], 2);
            size += pow((double)exact[n], 2);
        }
        CHECK(error > 0 && sqrt(error / size) < 1.2e-2, "type %d: error %g", (int)c.stored,
              sqrt(error / size));
        mha_linear_free(plain);
        free(exact);
        case_free(&c);
    }
}

/* Rows alone, together, and by several threads. */
static void bits_depend_on_the_row_alone(void)
{
    test_random random = {test_seed(303)};
    mha_pool *pool = NULL;
    CHECK(mha_pool_create(&pool, 3) == MHA_OK, "pool");
    for (int n = 0; n < 24; n++) {
        const ptrdiff_t rows = n % 8 == 7 ? 300 : 1 + test_random_below(&random, 40);
        native_case c =
            case_new(&random, rows, odd_extent(&random), odd_extent(&random), native_types[n % 2]);
        float *const other = take(sizeof(float) * (size_t)(rows * c.outputs));
        run(&c, c.linear, c.y, NULL);
        run(&c, c.linear, other, pool);
        CHECK(same_bits(c.y, other, rows * c.outputs), "threads: %td x %td x %td", rows, c.inputs,
              c.outputs);
        for (ptrdiff_t r = 0; r < rows; r++) {
            native_case one = c;
            one.rows = 1;
            one.x += r * c.inputs;
            run(&one, c.linear, other, NULL);
            CHECK(same_bits(c.y + r * c.outputs, other, c.outputs), "row %td of %td x %td x %td", r,
                  rows, c.inputs, c.outputs);
        }
        free(other);
        case_free(&c);
    }
    mha_pool_free(pool);
}

/* Inputs in any type, and rows at any stride: those of f32. */
static void bits_do_not_depend_on_types_and_strides(void)
{
    test_random random = {test_seed(304)};
    for (int n = 0; n < 12; n++) {
        native_case c =
            case_new(&random, 9, odd_extent(&random), odd_extent(&random), native_types[n % 2]);
        const ptrdiff_t stride = c.inputs + 3;
        uint16_t *const halves = take(sizeof *halves * (size_t)(c.rows * stride));
        float *const other = take(sizeof(float) * (size_t)(c.rows * c.outputs));
        for (ptrdiff_t i = 0; i < c.rows * c.inputs; i++) {
            uint32_t bits;
            memcpy(&bits, &c.x[i], sizeof bits);
            bits &= 0xffff0000u;
            memcpy(&c.x[i], &bits, sizeof bits);
            halves[i / c.inputs * stride + i % c.inputs] = (uint16_t)(bits >> 16);
        }
        run(&c, c.linear, c.y, NULL);
        CHECK(mha_linear_run(c.linear, c.rows, halves, MHA_BF16, stride, other, MHA_F32, c.outputs,
                             NULL, 0, NULL) == MHA_OK,
              "run");
        CHECK(same_bits(c.y, other, c.rows * c.outputs), "%td x %td", c.inputs, c.outputs);
        free(halves);
        free(other);
        case_free(&c);
    }
}

/* ------------------------------------------------------------ instruction sets ---- */

static const char *const isas[] = {"c",          "avx2", "avx2vnni", "avx512",   "avx512vnni",
                                   "avx512bf16", "neon", "neondot",  "neonbf16", "wasm"};
enum { ISAS = sizeof isas / sizeof isas[0] };

static void bits_of_i8_are_those_of_every_instruction_set(void)
{
    const char *const forced = getenv("MHA_ISA");
    char before[64] = "";
    if (forced)
        snprintf(before, sizeof before, "%s", forced);
    test_random random = {test_seed(305)};
    for (int n = 0; n < 10; n++) {
        native_case c = case_new(&random, 11, odd_extent(&random), odd_extent(&random), MHA_I8);
        float *const other = take(sizeof(float) * (size_t)(c.rows * c.outputs));
        run(&c, c.linear, c.y, NULL);
        for (int i = 0; i < ISAS; i++) {
            setenv("MHA_ISA", isas[i], 1);
            if (!mha_isa_name())
                continue;
            mha_linear *const linear = linear_of(&c, MHA_NATIVE);
            run(&c, linear, other, NULL);
            CHECK(same_bits(c.y, other, c.rows * c.outputs), "%s: %td x %td", isas[i], c.inputs,
                  c.outputs);
            mha_linear_free(linear);
        }
        if (forced)
            setenv("MHA_ISA", before, 1);
        else
            unsetenv("MHA_ISA");
        free(other);
        case_free(&c);
    }
}

/* -------------------------------------------------------------- special numbers ---- */

static void rows_that_are_not_finite(void)
{
    static const float special[] = {INFINITY, -INFINITY, NAN};
    test_random random = {test_seed(306)};
    for (int n = 0; n < 12; n++) {
        native_case c =
            case_new(&random, 9, odd_extent(&random), odd_extent(&random), native_types[n % 2]);
        float *const plain = take(sizeof(float) * (size_t)(c.rows * c.outputs));
        run(&c, c.linear, plain, NULL);
        c.x[4 * c.inputs + test_random_below(&random, c.inputs)] = special[n % 3];
        run(&c, c.linear, c.y, NULL);
        CHECK(same_bits(plain, c.y, 4 * c.outputs) &&
                  same_bits(plain + 5 * c.outputs, c.y + 5 * c.outputs, 4 * c.outputs),
              "another row changed");
        for (ptrdiff_t i = 0; c.stored == MHA_I8 && i < c.outputs; i++)
            CHECK(isnan(c.y[4 * c.outputs + i]), "output %td is %g", i,
                  (double)c.y[4 * c.outputs + i]);
        /* The weight of input 0 is never 0: there bf16 is infinite or NaN. */
        c.x[4 * c.inputs] = special[n % 3];
        run(&c, c.linear, c.y, NULL);
        for (ptrdiff_t i = 0; i < c.outputs; i++)
            CHECK(!isfinite(c.y[4 * c.outputs + i]), "output %td is %g", i,
                  (double)c.y[4 * c.outputs + i]);
        free(plain);
        case_free(&c);
    }
}

static void rows_of_zeros_give_the_bias(void)
{
    test_random random = {test_seed(307)};
    for (int n = 0; n < 8; n++) {
        native_case c =
            case_new(&random, 3, odd_extent(&random), odd_extent(&random), native_types[n % 2]);
        for (ptrdiff_t i = 0; i < c.inputs; i++) {
            c.x[i] = 0.0f;
            c.x[c.inputs + i] = (i % 2 ? 1.0f : -1.0f) * 0x1p-130f; /* too small for a scale */
        }
        run(&c, c.linear, c.y, NULL);
        CHECK(same_bits(c.y, c.bias, c.outputs) && same_bits(c.y + c.outputs, c.bias, c.outputs),
              "%td x %td, type %d", c.inputs, c.outputs, (int)c.stored);
        case_free(&c);
    }
}

/* ------------------------------------------------------------------ exact types ---- */

static void other_types_are_exact(void)
{
    static const mha_dtype types[] = {MHA_F32, MHA_F16};
    test_random random = {test_seed(308)};
    for (int t = 0; t < 2; t++) {
        native_case c = case_new(&random, 7, 64, 33, types[t]);
        mha_linear *const exact = linear_of(&c, MHA_EXACT);
        float *const other = take(sizeof(float) * (size_t)(c.rows * c.outputs));
        run(&c, c.linear, c.y, NULL);
        run(&c, exact, other, NULL);
        CHECK(same_bits(c.y, other, c.rows * c.outputs), "type %d", (int)types[t]);
        mha_linear_free(exact);
        free(other);
        case_free(&c);
    }
}

/* Block types are native where products of exact arithmetic are whole numbers, too. */
static void block_types_have_a_scale_for_32_inputs(void)
{
    static const mha_dtype types[] = {MHA_Q8_0, MHA_Q4_0, MHA_Q4_1};
    test_random random = {test_seed(315)};
    for (int n = 0; n < 18; n++) {
        const ptrdiff_t inputs = 32 * (1 + test_random_below(&random, 20)), rows = 1 + n;
        native_case c = case_new(&random, rows, inputs, odd_extent(&random), types[n % 3]);
        mha_linear *const exact = linear_of(&c, MHA_EXACT);
        float *const other = take(sizeof(float) * (size_t)(rows * c.outputs));
        const bool native =
            strncmp(mha_arithmetic_explain(MHA_NATIVE, types[n % 3], inputs), "native", 6) == 0;
        memset(c.x, 0, 32 * sizeof(float)); /* a group without a scale */
        run(&c, c.linear, c.y, NULL);
        run(&c, exact, other, NULL);
        const bool same = same_bits(c.y, other, rows * c.outputs);
        CHECK(native ? rows == 1 || !same : same, "type %d", (int)types[n % 3]);
        for (ptrdiff_t r = 0; r < rows; r++)
            check_row(&c, r);
        native_case one = c;
        one.rows = 1;
        one.x += (rows - 1) * inputs;
        run(&one, c.linear, other, NULL);
        CHECK(same_bits(c.y + (rows - 1) * c.outputs, other, c.outputs), "a row alone");
        c.x[1] = INFINITY;
        run(&c, c.linear, c.y, NULL);
        for (ptrdiff_t i = 0; native && i < c.outputs; i++)
            CHECK(isnan(c.y[i]), "output %td is %g", i, (double)c.y[i]);
        mha_linear_free(exact);
        free(other);
        case_free(&c);
    }
}

/* Sums of so many inputs would not fit into int32. */
static void too_many_inputs_are_exact(void)
{
    test_random random = {test_seed(309)};
    for (ptrdiff_t inputs = 65536; inputs <= 65537; inputs++) {
        native_case c = case_new(&random, 2, inputs, 3, MHA_I8);
        mha_linear *const exact = linear_of(&c, MHA_EXACT);
        float other[6];
        run(&c, c.linear, c.y, NULL);
        run(&c, exact, other, NULL);
        CHECK(same_bits(c.y, other, 6) == (inputs > 65536), "%td inputs", inputs);
        CHECK(strncmp(mha_arithmetic_explain(MHA_NATIVE, MHA_I8, inputs),
                      inputs > 65536 ? "exact" : "native", 5) == 0,
              "%s", mha_arithmetic_explain(MHA_NATIVE, MHA_I8, inputs));
        mha_linear_free(exact);
        case_free(&c);
    }
}

static void explanations_say_what_is_computed(void)
{
    static const mha_dtype exact[] = {MHA_F32, MHA_F16};
    for (int n = 0; n < 2; n++)
        CHECK(strncmp(mha_arithmetic_explain(MHA_NATIVE, exact[n], 64), "exact", 5) == 0, "%s",
              mha_arithmetic_explain(MHA_NATIVE, exact[n], 64));
    for (int n = 0; n < 2; n++) {
        CHECK(strncmp(mha_arithmetic_explain(MHA_NATIVE, native_types[n], 64), "native", 6) == 0,
              "%s", mha_arithmetic_explain(MHA_NATIVE, native_types[n], 64));
        CHECK(strncmp(mha_arithmetic_explain(MHA_EXACT, native_types[n], 64), "exact", 5) == 0,
              "%s", mha_arithmetic_explain(MHA_EXACT, native_types[n], 64));
    }
}

/* ----------------------------------------------------------- updates, gradients ---- */

static void updates_are_packed_alike(void)
{
    test_random random = {test_seed(310)};
    for (int n = 0; n < 6; n++) {
        const mha_dtype stored = native_types[n % 2];
        const ptrdiff_t inputs = odd_extent(&random), outputs = odd_extent(&random);
        native_case a = case_new(&random, 5, inputs, outputs, stored);
        native_case b = case_new(&random, 5, inputs, outputs, stored);
        memcpy(b.x, a.x, sizeof(float) * (size_t)(5 * inputs));
        run(&a, a.linear, a.y, NULL);
        CHECK(mha_linear_update(b.linear, mha_matrix_out_in(a.w, MHA_F32, inputs),
                                (mha_vector){a.bias, MHA_F32}) == MHA_OK,
              "update");
        run(&b, b.linear, b.y, NULL);
        CHECK(same_bits(a.y, b.y, 5 * outputs), "%td x %td", inputs, outputs);
        case_free(&a);
        case_free(&b);
    }
}

/* The backward pass of i8 is exact: it only reads other panels. */
static void gradients_of_i8_are_those_of_exact_weights(void)
{
    test_random random = {test_seed(311)};
    for (int n = 0; n < 6; n++) {
        native_case c = case_new(&random, 7, odd_extent(&random), odd_extent(&random), MHA_I8);
        mha_linear *const exact = linear_of(&c, MHA_EXACT);
        float *const d_y = take(sizeof(float) * (size_t)(7 * c.outputs));
        float *d_x[2];
        for (ptrdiff_t i = 0; i < 7 * c.outputs; i++)
            d_y[i] = test_random_normal(&random);
        for (int k = 0; k < 2; k++) {
            d_x[k] = take(sizeof(float) * (size_t)(7 * c.inputs));
            const mha_linear_gradients g = {.size = sizeof g,
                                            .d_y = d_y,
                                            .d_y_type = MHA_F32,
                                            .d_y_stride = c.outputs,
                                            .d_x = d_x[k],
                                            .d_x_stride = c.inputs};
            CHECK(mha_linear_backward(k ? exact : c.linear, 7, c.x, MHA_F32, c.inputs, &g, NULL, 0,
                                      NULL) == MHA_OK,
                  "backward");
        }
        CHECK(same_bits(d_x[0], d_x[1], 7 * c.inputs), "%td x %td", c.inputs, c.outputs);
        free(d_x[0]);
        free(d_x[1]);
        free(d_y);
        mha_linear_free(exact);
        case_free(&c);
    }
}

/* ----------------------------------------------------------------- feed-forward ---- */

/* A feed-forward has the bits of its linears. */
static void feed_forwards_are_their_linears(void)
{
    test_random random = {test_seed(312)};
    for (int n = 0; n < 8; n++) {
        const ptrdiff_t inputs = odd_extent(&random), inner = odd_extent(&random), rows = 13;
        native_case up = case_new(&random, rows, inputs, inner, native_types[n % 2]);
        native_case down = case_new(&random, rows, inner, inputs, native_types[n % 2]);
        float *const y = take(sizeof(float) * (size_t)(rows * inputs));
        mha_feed_forward *ff = NULL;
        const mha_feed_forward_config config = {.size = sizeof config,
                                                .inputs = inputs,
                                                .inner = inner,
                                                .activation = MHA_ACTIVATION_GELU,
                                                .up = mha_matrix_out_in(up.w, MHA_F32, inputs),
                                                .down = mha_matrix_out_in(down.w, MHA_F32, inner),
                                                .up_bias = {up.bias, MHA_F32},
                                                .down_bias = {down.bias, MHA_F32},
                                                .stored = native_types[n % 2],
                                                .arithmetic = MHA_NATIVE};
        CHECK(mha_feed_forward_create(&ff, &config) == MHA_OK, "create");
        CHECK(mha_feed_forward_run(ff, rows, up.x, inputs, NULL, 0, y, inputs, NULL, 0, NULL) ==
                  MHA_OK,
              "run");
        CHECK(mha_linear_run_fused(up.linear, rows, up.x, MHA_F32, inputs, MHA_ACTIVATION_GELU,
                                   NULL, 0, down.x, MHA_F32, inner, NULL, 0, NULL) == MHA_OK,
              "up");
        run(&down, down.linear, down.y, NULL);
        CHECK(same_bits(y, down.y, rows * inputs), "%td x %td, type %d", inputs, inner,
              (int)up.stored);
        mha_feed_forward_free(ff);
        free(y);
        case_free(&up);
        case_free(&down);
    }
}

/* ------------------------------------------------------------------------ layers ---- */

enum { WIDTH = 96, HEADS = 6, TOKENS = 21 };

typedef struct layer_numbers {
    float w[4][WIDTH * WIDTH], x[TOKENS * WIDTH];
} layer_numbers;

static layer_numbers *numbers_new(test_random *random)
{
    layer_numbers *const all = take(sizeof *all);
    for (int m = 0; m < 4; m++)
        for (int n = 0; n < WIDTH * WIDTH; n++)
            all->w[m][n] = stored_weight_of(MHA_I8, random, n % WIDTH);
    for (int n = 0; n < TOKENS * WIDTH; n++)
        all->x[n] = test_random_normal(random);
    return all;
}

static mha_layer *layer_of(const layer_numbers *all, mha_dtype stored, mha_arithmetic arithmetic)
{
    mha_layer *layer = NULL;
    const mha_layer_config config = {
        .size = sizeof config, .E = WIDTH, .H = HEADS, .stored = stored, .arithmetic = arithmetic};
    const mha_layer_weights weights = {.size = sizeof weights,
                                       .q = mha_matrix_out_in(all->w[0], MHA_F32, WIDTH),
                                       .k = mha_matrix_out_in(all->w[1], MHA_F32, WIDTH),
                                       .v = mha_matrix_out_in(all->w[2], MHA_F32, WIDTH),
                                       .o = mha_matrix_out_in(all->w[3], MHA_F32, WIDTH)};
    CHECK(mha_layer_create(&layer, &config, &weights) == MHA_OK, "create");
    CHECK(mha_layer_get_config(layer).arithmetic == arithmetic, "arithmetic");
    return layer;
}

static void run_layer(const mha_layer *layer, const float *x, const float *gates, float *y)
{
    const mha_options options = {.size = sizeof options, .gates = gates};
    const mha_layer_call call = {.size = sizeof call,
                                 .B = 1,
                                 .L = TOKENS,
                                 .query = mha_view_ble(x, TOKENS, WIDTH),
                                 .output = mha_out_ble(y, TOKENS, WIDTH),
                                 .options = &options};
    CHECK(mha_layer_run(layer, &call, NULL, 0, NULL) == MHA_OK, "run");
}

/* The Euclidean norm of a - b, relative to that of b. */
static double difference(const float *a, const float *b, ptrdiff_t count)
{
    double error = 0, size = 0;
    for (ptrdiff_t n = 0; n < count; n++) {
        error += pow((double)a[n] - (double)b[n], 2);
        size += pow((double)b[n], 2);
    }
    return sqrt(error / size);
}

static void layers_are_close_to_exact_ones(void)
{
    test_random random = {test_seed(313)};
    layer_numbers *const all = numbers_new(&random);
    for (int t = 0; t < 2; t++) {
        float y[TOKENS * WIDTH], exact[TOKENS * WIDTH];
        mha_layer *const native = layer_of(all, native_types[t], MHA_NATIVE);
        mha_layer *const plain = layer_of(all, native_types[t], MHA_EXACT);
        run_layer(native, all->x, NULL, y);
        run_layer(plain, all->x, NULL, exact);
        const double error = difference(y, exact, TOKENS * WIDTH);
        CHECK(error > 0 && error < 2e-2, "type %d: %g", (int)native_types[t], error);
        mha_layer_free(native);
        mha_layer_free(plain);
    }
    free(all);
}

typedef struct layer_gradients {
    float w[4][WIDTH * WIDTH], bias[4][WIDTH], x[TOKENS * WIDTH];
} layer_gradients;

/* The gradients of a layer whose output has the gradient of `d_y`. */
static void run_layer_back(const mha_layer *layer, const layer_numbers *all, const float *d_y,
                           mha_pool *pool, layer_gradients *g)
{
    float *const y = take(sizeof(float) * TOKENS * WIDTH);
    const mha_options options = {.size = sizeof options, .flags = MHA_TRAINING};
    mha_layer_call call = {.size = sizeof call,
                           .B = 1,
                           .L = TOKENS,
                           .query = mha_view_ble(all->x, TOKENS, WIDTH),
                           .output = mha_out_ble(y, TOKENS, WIDTH),
                           .options = &options};
    call.tape_size = mha_layer_tape_size(layer, &call);
    call.tape = aligned_alloc(64, (call.tape_size + 63) / 64 * 64);
    const mha_layer_gradients request = {.size = sizeof request,
                                         .d_output = mha_view_ble(d_y, TOKENS, WIDTH),
                                         .d_query = mha_out_ble(g->x, TOKENS, WIDTH),
                                         .q = {g->w[0], WIDTH, 1},
                                         .k = {g->w[1], WIDTH, 1},
                                         .v = {g->w[2], WIDTH, 1},
                                         .o = {g->w[3], WIDTH, 1},
                                         .q_bias = g->bias[0],
                                         .k_bias = g->bias[1],
                                         .v_bias = g->bias[2],
                                         .o_bias = g->bias[3]};
    CHECK(mha_layer_run(layer, &call, NULL, 0, pool) == MHA_OK, "run");
    CHECK(mha_layer_backward(layer, &call, &request, NULL, 0, pool) == MHA_OK, "backward");
    free(call.tape);
    free(y);
}

/* All gradients, which are f32 too: none of exact arithmetic to the bit, all within 2 %, and the
 * same for any number of threads. */
static void gradients_of_layers_are_close_to_exact_ones(void)
{
    test_random random = {test_seed(316)};
    layer_numbers *const all = numbers_new(&random);
    layer_gradients *const g[3] = {take(sizeof *g[0]), take(sizeof *g[0]), take(sizeof *g[0])};
    float *const d_y = take(sizeof(float) * TOKENS * WIDTH);
    mha_pool *pool = NULL;
    for (int n = 0; n < TOKENS * WIDTH; n++)
        d_y[n] = test_random_normal(&random);
    CHECK(mha_pool_create(&pool, 2) == MHA_OK, "pool");
    mha_layer *const native = layer_of(all, MHA_BF16, MHA_NATIVE);
    mha_layer *const plain = layer_of(all, MHA_BF16, MHA_EXACT);
    run_layer_back(plain, all, d_y, NULL, g[0]);
    run_layer_back(native, all, d_y, NULL, g[1]);
    run_layer_back(native, all, d_y, pool, g[2]);
    CHECK(memcmp(g[1], g[2], sizeof *g[1]) == 0, "other bits with 2 threads");
    for (int m = 0; m < 4; m++) {
        const double error = difference(g[1]->w[m], g[0]->w[m], WIDTH * WIDTH);
        CHECK(error > 0 && error < 2e-2, "matrix %d: %g", m, error);
    }
    const double error = difference(g[1]->x, g[0]->x, TOKENS * WIDTH);
    CHECK(error > 0 && error < 2e-2, "x: %g", error);
    CHECK(same_bits(g[0]->bias[3], g[1]->bias[3], WIDTH), "the bias of the output is no product");
    mha_layer_free(native);
    mha_layer_free(plain);
    mha_pool_free(pool);
    free(d_y);
    for (int n = 0; n < 3; n++)
        free(g[n]);
    free(all);
}

/* A pruned layer has other rows in its output projection, and i8 rounds those again. */
static void pruned_layers(void)
{
    test_random random = {test_seed(314)};
    layer_numbers *const all = numbers_new(&random);
    for (int t = 0; t < 2; t++) {
        static const uint8_t every[HEADS] = {1, 1, 1, 1, 1, 1}, some[HEADS] = {1, 0, 1, 1, 0, 1};
        float gates[HEADS], y[TOKENS * WIDTH], pruned_y[TOKENS * WIDTH];
        mha_layer *const layer = layer_of(all, native_types[t], MHA_NATIVE), *pruned = NULL;
        run_layer(layer, all->x, NULL, y);
        CHECK(mha_layer_prune(&pruned, layer, every, NULL, 0) == MHA_OK, "prune");
        run_layer(pruned, all->x, NULL, pruned_y);
        CHECK(same_bits(y, pruned_y, TOKENS * WIDTH), "all heads, type %d", (int)native_types[t]);
        mha_layer_free(pruned);
        for (int h = 0; h < HEADS; h++)
            gates[h] = some[h];
        run_layer(layer, all->x, gates, y);
        CHECK(mha_layer_prune(&pruned, layer, some, NULL, 0) == MHA_OK, "prune");
        run_layer(pruned, all->x, NULL, pruned_y);
        CHECK(difference(pruned_y, y, TOKENS * WIDTH) < (t ? 1e-2 : 1e-6), "some heads: %g",
              difference(pruned_y, y, TOKENS * WIDTH));
        mha_layer_free(pruned);
        mha_layer_free(layer);
    }
    free(all);
}

/* ------------------------------------------------------------------------ errors ---- */

static void other_arithmetic_is_refused(void)
{
    static const float one[4] = {1, 1, 1, 1};
    char message[200] = "";
    float o[4];
    mha_linear *linear = NULL;
    mha_feed_forward *ff = NULL;
    mha_layer *layer = NULL;
    const mha_matrix w = mha_matrix_out_in(one, MHA_F32, 2);
    const mha_arithmetic odd_one = (mha_arithmetic)2;
    const mha_linear_config l = {.size = sizeof l,
                                 .inputs = 2,
                                 .outputs = 2,
                                 .weight = w,
                                 .message = message,
                                 .message_size = sizeof message,
                                 .arithmetic = odd_one};
    CHECK(mha_linear_create(&linear, &l) == MHA_ERR_FLAG && strstr(message, "arithmetic"),
          "linear: %s", message);
    const mha_feed_forward_config f = {
        .size = sizeof f, .inputs = 2, .inner = 2, .up = w, .down = w, .arithmetic = odd_one};
    CHECK(mha_feed_forward_create(&ff, &f) == MHA_ERR_FLAG, "feed-forward");
    const mha_layer_config c = {.size = sizeof c, .E = 2, .H = 1, .arithmetic = odd_one};
    const mha_layer_weights all = {.size = sizeof all, .q = w, .k = w, .v = w, .o = w};
    CHECK(mha_layer_create(&layer, &c, &all) == MHA_ERR_FLAG, "layer");
    const mha_shape shape = {.B = 1, .H = 1, .L = 2, .S = 2, .D = 2};
    const mha_options options = {.size = sizeof options, .arithmetic = odd_one};
    const mha_view view = mha_view_bhld(one, 1, 2, 2);
    CHECK(mha_attention(&shape, view, view, view, mha_out_bhld(o, 1, 2, 2), &options, NULL) ==
              MHA_ERR_FLAG,
          "attention");
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(errors_are_bounded);
    RUN(rounding_shows);
    RUN(bits_depend_on_the_row_alone);
    RUN(bits_do_not_depend_on_types_and_strides);
    RUN(bits_of_i8_are_those_of_every_instruction_set);
    RUN(rows_that_are_not_finite);
    RUN(rows_of_zeros_give_the_bias);
    RUN(other_types_are_exact);
    RUN(block_types_have_a_scale_for_32_inputs);
    RUN(too_many_inputs_are_exact);
    RUN(explanations_say_what_is_computed);
    RUN(updates_are_packed_alike);
    RUN(gradients_of_i8_are_those_of_exact_weights);
    RUN(feed_forwards_are_their_linears);
    RUN(layers_are_close_to_exact_ones);
    RUN(gradients_of_layers_are_close_to_exact_ones);
    RUN(pruned_layers);
    RUN(other_arithmetic_is_refused);
    return test_end();
}
