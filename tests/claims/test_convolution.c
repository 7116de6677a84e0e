/* SPDX-License-Identifier: MIT */
/*
 * Convolutions as attention: geometry, plain loop, heads with one tap each, and mixtures with
 * several taps per head, compared with a second loop. A layer that is slightly wrong must be
 * noticed.
 */
#include "support/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "claims/convolution.h"
#include "claims/convolution_mixed.h"

static double *numbers(test_random *random, ptrdiff_t count)
{
    double *const x = malloc((size_t)(count + 1) * sizeof *x);
    for (ptrdiff_t n = 0; n < count; n++)
        x[n] = (double)test_random_float(random);
    return x;
}

/* ------------------------------------------------------------- geometry ---- */

static void sources_beyond_the_border(void)
{
    static const struct {
        conv_padding padding;
        ptrdiff_t at, wanted;
    } cases[] = {
        {CONV_REPLICATE, -7, 0}, {CONV_REPLICATE, 9, 4}, {CONV_REPLICATE, 3, 3},
        {CONV_ZERO, -1, -1},     {CONV_ZERO, 5, -1},     {CONV_ZERO, 4, 4},
        {CONV_CIRCULAR, -1, 4},  {CONV_CIRCULAR, 5, 0},  {CONV_CIRCULAR, -11, 4},
        {CONV_VALID, 0, 0},      {CONV_VALID, 5, -1},    {CONV_CIRCULAR, 12, 2},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        const ptrdiff_t got = conv_source(cases[n].padding, cases[n].at, 5);
        CHECK(got == cases[n].wanted, "case %zu: %td, not %td", n, got, cases[n].wanted);
    }
}

static void taps_of_kernels(void)
{
    const conv_spec odd = {.kernel = {3, 5}, .dilation = 2};
    const conv_spec even = {.kernel = {2, 4}, .dilation = 1};
    CHECK(conv_tap(&odd, 0).row == -2 && conv_tap(&odd, 0).column == -4, "3x5: first");
    CHECK(conv_tap(&odd, 7).row == 0 && conv_tap(&odd, 7).column == 0, "3x5: middle");
    CHECK(conv_tap(&odd, 14).row == 2 && conv_tap(&odd, 14).column == 4, "3x5: last");
    CHECK(conv_tap(&even, 0).row == 0 && conv_tap(&even, 0).column == -1, "2x4: first");
    CHECK(conv_tap(&even, 7).row == 1 && conv_tap(&even, 7).column == 2, "2x4: last");
}

static void extents_of_outputs(void)
{
    conv_spec spec = {.picture = {7, 4}, .kernel = {3, 3}, .stride = 2, .dilation = 1};
    CHECK(conv_output(&spec).row == 4 && conv_output(&spec).column == 2, "same");
    spec.padding = CONV_VALID;
    CHECK(conv_output(&spec).row == 3 && conv_output(&spec).column == 1, "valid");
    spec.dilation = 2;
    CHECK(conv_output(&spec).row == 2 && conv_output(&spec).column == 0, "valid, dilated");
}

/* ----------------------------------------------------------------- loop ---- */

/* A second, independent loop: starts from the bias and adds one product after another, for every
 * output and tap. */
static void scatter(const conv_spec *spec, const double *picture, double *y)
{
    const conv_point out = conv_output(spec), first = conv_tap(spec, 0);
    const ptrdiff_t taps = spec->kernel.row * spec->kernel.column;
    for (ptrdiff_t n = 0; n < out.row * out.column * spec->outputs; n++)
        y[n] = spec->bias != NULL ? spec->bias[n % spec->outputs] : 0.0;
    for (ptrdiff_t place = 0; place < out.row * out.column * taps; place++) {
        const ptrdiff_t t = place % taps, q = place / taps;
        const conv_point tap = conv_tap(spec, t);
        ptrdiff_t r = q / out.column * spec->stride + tap.row;
        ptrdiff_t c = q % out.column * spec->stride + tap.column;
        if (spec->padding == CONV_VALID) {
            r -= first.row;
            c -= first.column;
        }
        if (spec->padding == CONV_REPLICATE) {
            r = r < 0 ? 0 : r >= spec->picture.row ? spec->picture.row - 1 : r;
            c = c < 0 ? 0 : c >= spec->picture.column ? spec->picture.column - 1 : c;
        }
        if (spec->padding == CONV_CIRCULAR) {
            r = (r + 100 * spec->picture.row) % spec->picture.row;
            c = (c + 100 * spec->picture.column) % spec->picture.column;
        }
        if (r < 0 || c < 0 || r >= spec->picture.row || c >= spec->picture.column)
            continue;
        for (ptrdiff_t in = 0; in < spec->inputs; in++)
            for (ptrdiff_t n = 0; n < spec->outputs; n++)
                y[q * spec->outputs + n] +=
                    picture[(r * spec->picture.column + c) * spec->inputs + in] *
                    spec->weights[(t * spec->inputs + in) * spec->outputs + n];
    }
}

typedef struct conv_case {
    conv_spec spec;
    double *picture, *weights, *bias;
} conv_case;

/* Random settings. The kernel may be larger than the picture. */
static conv_case random_case(test_random *random)
{
    conv_case c = {0};
    conv_spec *const s = &c.spec;
    s->picture = (conv_point){1 + test_random_below(random, 7), 1 + test_random_below(random, 7)};
    s->kernel = (conv_point){1 + test_random_below(random, 4), 1 + test_random_below(random, 4)};
    s->inputs = 1 + test_random_below(random, 4);
    s->outputs = 1 + test_random_below(random, 4);
    s->stride = 1 + test_random_below(random, 3);
    s->dilation = 1 + test_random_below(random, 2);
    s->padding = (conv_padding)test_random_below(random, 4);
    s->code = (conv_code)test_random_below(random, 4);
    s->factoring = (conv_factoring)test_random_below(random, 3);
    s->type = test_random_below(random, 2) == 0 ? MHA_F32 : MHA_F64;
    s->sharpness = s->type == MHA_F32 ? 32.0 : 64.0;
    c.picture = numbers(random, s->picture.row * s->picture.column * s->inputs);
    c.weights = numbers(random, s->kernel.row * s->kernel.column * s->inputs * s->outputs);
    c.bias = numbers(random, s->outputs);
    s->weights = c.weights;
    s->bias = test_random_below(random, 2) == 0 ? c.bias : NULL;
    return c;
}

static void case_free(conv_case *c)
{
    free(c->picture);
    free(c->weights);
    free(c->bias);
}

static void the_loop_is_the_definition(void)
{
    test_random random = {test_seed(1)};
    for (int64_t n = 0; n < test_effort(300); n++) {
        conv_case c = random_case(&random);
        const conv_point out = conv_output(&c.spec);
        const ptrdiff_t count = out.row * out.column * c.spec.outputs;
        double *const y = numbers(&random, count), *const z = numbers(&random, count);
        conv_direct(&c.spec, CONV_F64, c.picture, y);
        scatter(&c.spec, c.picture, z);
        for (ptrdiff_t k = 0; k < count; k++)
            if (!CHECK(fabs(y[k] - z[k]) < 1e-13, "case %d: %g, not %g", (int)n, y[k], z[k]))
                break;
        free(y);
        free(z);
        case_free(&c);
    }
}

/* ---------------------------------------------------------------- heads ---- */

/* The heads of a case with their inputs and outputs; `weights` is [H][L][S]. */
typedef struct run_result {
    conv_heads heads;
    double *keys, *queries, *y, *weights;
} run_result;

static bool run_heads(const conv_case *c, run_result *r, mha_pool *pool)
{
    *r = (run_result){0};
    if (!CHECK(conv_heads_create(&r->heads, &c->spec) == MHA_OK, "create"))
        return false;
    const conv_heads *const h = &r->heads;
    r->keys = malloc((size_t)(h->S * h->E) * sizeof(double));
    r->queries = malloc((size_t)(h->L * h->E + 1) * sizeof(double));
    r->y = malloc((size_t)(h->L * c->spec.outputs + 1) * sizeof(double));
    r->weights = malloc((size_t)(h->H * h->L * h->S + 1) * sizeof(double));
    conv_tokens(h, c->picture, r->keys, r->queries);
    return CHECK(conv_run(h, 1, r->keys, r->queries, r->y, r->weights, pool) == MHA_OK, "run");
}

static void run_free(run_result *r)
{
    conv_heads_free(&r->heads);
    free(r->keys);
    free(r->queries);
    free(r->y);
    free(r->weights);
}

/* Largest |a - b|, or NaN if a difference is NaN. */
static double difference(const double *a, const double *b, ptrdiff_t count)
{
    double worst = 0.0;
    for (ptrdiff_t n = 0; n < count; n++)
        if (!(fabs(a[n] - b[n]) <= worst) && !isnan(worst))
            worst = fabs(a[n] - b[n]);
    return worst;
}

/* Largest sum of |x| |w| over an output, plus 1. */
static double magnitude(const conv_case *c)
{
    conv_spec spec = c->spec;
    const conv_point out = conv_output(&spec);
    const ptrdiff_t pixels = spec.picture.row * spec.picture.column * spec.inputs;
    const ptrdiff_t taps = spec.kernel.row * spec.kernel.column * spec.inputs * spec.outputs;
    const ptrdiff_t count = out.row * out.column * spec.outputs;
    double *const x = malloc((size_t)(pixels + taps) * sizeof *x), *const w = x + pixels;
    double *const y = calloc((size_t)count + 1, sizeof *y);
    double top = 0.0;
    for (ptrdiff_t n = 0; n < pixels; n++)
        x[n] = fabs(c->picture[n]);
    for (ptrdiff_t n = 0; n < taps; n++)
        w[n] = fabs(c->weights[n]);
    spec.weights = w;
    spec.bias = NULL;
    conv_direct(&spec, CONV_F64, x, y);
    for (ptrdiff_t n = 0; n < count; n++)
        top = y[n] > top ? y[n] : top;
    free(x);
    free(y);
    return top + 1.0;
}

/* Compares the heads of a case with the loop: within both bounds, and bit by bit for hard heads. */
static void check_case(const conv_case *c, int number)
{
    run_result r;
    if (!run_heads(c, &r, NULL))
        return;
    const ptrdiff_t count = r.heads.L * c->spec.outputs;
    double *const truth = calloc((size_t)count + 1, sizeof *truth);
    double *const same = calloc((size_t)count + 1, sizeof *same);
    conv_direct(&c->spec, CONV_F64, c->picture, truth);
    conv_direct(&c->spec, conv_arithmetic_of(c->spec.type), c->picture, same);
    const double error = difference(r.y, truth, count), bound = conv_bound(&r.heads, r.keys);
    CHECK(error <= bound, "case %d, code %d: %g of %g allowed", number, (int)c->spec.code, error,
          bound);
    CHECK(error <= 1e-6 * magnitude(c), "case %d, code %d: %g of %g", number, (int)c->spec.code,
          error, 1e-6 * magnitude(c));
    if (c->spec.code == CONV_HARD && c->spec.factoring != CONV_BY_RANK)
        CHECK(difference(r.y, same, count) == 0.0, "case %d: not bit-equal", number);
    free(truth);
    free(same);
    run_free(&r);
}

static void heads_are_the_convolution(void)
{
    test_random random = {test_seed(2)};
    for (int64_t n = 0; n < test_effort(300); n++) {
        conv_case c = random_case(&random);
        check_case(&c, (int)n);
        case_free(&c);
    }
}

/* With 9 * 40 head elements, the sums of W_O run over two slices of 256 products. */
static void long_sums_are_bit_equal_too(void)
{
    test_random random = {test_seed(3)};
    for (int factoring = CONV_BY_OUTPUTS; factoring <= CONV_BY_INPUTS; factoring++) {
        conv_case c = {.picture = numbers(&random, 12 * 40),
                       .weights = numbers(&random, 9 * 40 * 40),
                       .bias = numbers(&random, 40)};
        c.spec = (conv_spec){.picture = {4, 3},
                             .kernel = {3, 3},
                             .inputs = 40,
                             .outputs = 40,
                             .stride = 1,
                             .dilation = 1,
                             .code = CONV_HARD,
                             .factoring = (conv_factoring)factoring,
                             .type = MHA_F32};
        c.spec.weights = c.weights;
        c.spec.bias = c.bias;
        check_case(&c, factoring);
        case_free(&c);
    }
}

static conv_case plain_case(test_random *random, conv_code code, mha_dtype type, double sharpness)
{
    conv_case c = {.picture = numbers(random, 42 * 2), .weights = numbers(random, 9 * 2 * 3)};
    c.spec = (conv_spec){.picture = {6, 7},
                         .kernel = {3, 3},
                         .inputs = 2,
                         .outputs = 3,
                         .stride = 1,
                         .dilation = 1,
                         .code = code,
                         .sharpness = sharpness,
                         .type = type,
                         .weights = c.weights};
    return c;
}

/* exp(-128) is 0 in f32, so that every weight is 0 or 1. */
static void sharp_heads_choose(void)
{
    test_random random = {test_seed(4)};
    for (int code = CONV_QUADRATIC; code <= CONV_HARD; code++) {
        conv_case c = plain_case(&random, (conv_code)code, MHA_F32, 128.0);
        run_result r;
        if (run_heads(&c, &r, NULL)) {
            ptrdiff_t ones = 0, others = 0;
            for (ptrdiff_t n = 0; n < r.heads.H * r.heads.L * r.heads.S; n++) {
                ones += r.weights[n] == 1.0;
                others += r.weights[n] != 0.0 && r.weights[n] != 1.0;
            }
            CHECK(others == 0, "code %d: %td weights are neither 0 nor 1", code, others);
            CHECK(ones == r.heads.H * r.heads.L, "code %d: %td rows choose", code, ones);
        }
        run_free(&r);
        case_free(&c);
    }
}

/* Where the tap of a hard head lies outside, the row is fully masked: zero padding at no cost. */
static void hard_heads_read_zero_outside(void)
{
    test_random random = {test_seed(5)};
    conv_case c = plain_case(&random, CONV_HARD, MHA_F32, 0.0);
    c.spec.padding = CONV_ZERO;
    run_result r;
    if (run_heads(&c, &r, NULL)) {
        CHECK(!r.heads.padded && r.heads.S == 42, "the picture was padded");
        double sum = 0.0;
        for (ptrdiff_t j = 0; j < r.heads.S; j++)
            sum += r.weights[j]; /* head 0 attends up and left, row 0 is the corner */
        CHECK(sum == 0.0, "the corner sees %g", sum);
    }
    run_free(&r);
    case_free(&c);
}

/* Position channels that W_Q and W_K read give the same weights as a bias. */
static void places_are_as_good_as_a_bias(void)
{
    test_random random = {test_seed(6)};
    static const double alphas[] = {0.5, 1.0, 4.0};
    for (int n = 0; n < 3; n++) {
        conv_case c = plain_case(&random, CONV_QUADRATIC, MHA_F64, alphas[n]);
        run_result bias, places;
        const bool fine = run_heads(&c, &bias, NULL);
        c.spec.code = CONV_ABSOLUTE;
        if (run_heads(&c, &places, NULL) && fine)
            CHECK(difference(bias.weights, places.weights, 9 * 42 * 42) < 1e-12, "alpha %g",
                  alphas[n]);
        run_free(&bias);
        run_free(&places);
        case_free(&c);
    }
}

static void the_leak_is_bounded(void)
{
    test_random random = {test_seed(7)};
    conv_case c = plain_case(&random, CONV_QUADRATIC, MHA_F64, 4.0);
    run_result r;
    if (run_heads(&c, &r, NULL)) {
        const double leak = conv_leak(&r.heads), q = exp(-4.0);
        const double wanted = 4 * q + 4 * q * q + 4 * pow(q, 4) + 8 * pow(q, 5) + 4 * pow(q, 8);
        CHECK(fabs(leak - wanted) < 1e-14, "%g, not %g", leak, wanted);
    }
    run_free(&r);
    case_free(&c);
}

static void a_margin_gives_no_output(void)
{
    test_random random = {test_seed(8)};
    conv_case c = plain_case(&random, CONV_HARD, MHA_F32, 0.0);
    c.spec.padding = CONV_VALID;
    run_result all, inner;
    const bool fine = run_heads(&c, &all, NULL); /* 4 x 5 */
    c.spec.margin = 1;                           /* 2 x 3 */
    if (run_heads(&c, &inner, NULL) && fine) {
        double direct[2 * 3 * 3];
        CHECK(inner.heads.L == 6, "%td outputs", inner.heads.L);
        for (int row = 0; row < 2; row++)
            CHECK(difference(inner.y + row * 9, all.y + ((row + 1) * 5 + 1) * 3, 9) == 0.0,
                  "row %d", row);
        conv_direct(&c.spec, conv_arithmetic_of(MHA_F32), c.picture, direct);
        CHECK(difference(inner.y, direct, 18) == 0.0, "the loop has other margins");
    }
    run_free(&all);
    run_free(&inner);
    case_free(&c);
}

/* The bits do not depend on the batch or on the number of threads. */
static void batches_and_threads_change_nothing(void)
{
    enum { BATCH = 5, S = 42, E = 6, OUT = 42 * 3 };
    test_random random = {test_seed(9)};
    conv_case c = plain_case(&random, CONV_ABSOLUTE, MHA_F32, 2.0);
    conv_heads heads;
    static double keys[BATCH * S * E], alone[BATCH * OUT], together[BATCH * OUT];
    if (!CHECK(conv_heads_create(&heads, &c.spec) == MHA_OK, "create"))
        return;
    for (int b = 0; b < BATCH; b++) {
        double queries[S * E];
        c.picture[b] += 0.25;
        conv_tokens(&heads, c.picture, keys + b * S * E, queries);
        CHECK(conv_run(&heads, 1, keys + b * S * E, queries, alone + b * OUT, NULL, NULL) == MHA_OK,
              "alone");
    }
    for (int threads = 1; threads <= 3; threads++) {
        mha_pool *pool;
        if (!CHECK(mha_pool_create(&pool, threads) == MHA_OK, "pool"))
            continue;
        CHECK(conv_run(&heads, BATCH, keys, keys, together, NULL, pool) == MHA_OK, "together");
        CHECK(difference(alone, together, BATCH * OUT) == 0.0, "%d threads", threads);
        mha_pool_free(pool);
    }
    conv_heads_free(&heads);
    case_free(&c);
}

/* A layer with a weight that is 1e-6 off, or with one wrong position, exceeds the bound. */
static void a_wrong_layer_is_seen(void)
{
    test_random random = {test_seed(10)};
    conv_case c = plain_case(&random, CONV_QUADRATIC, MHA_F64, 64.0);
    double truth[42 * 3];
    run_result r;
    conv_direct(&c.spec, CONV_F64, c.picture, truth);
    if (run_heads(&c, &r, NULL)) {
        const double bound = conv_bound(&r.heads, r.keys);
        CHECK(difference(r.y, truth, 126) <= bound, "right: too far");
        const double kept = r.heads.v[0];
        r.heads.v[0] += 1e-6;
        CHECK(conv_run(&r.heads, 1, r.keys, r.queries, r.y, NULL, NULL) == MHA_OK, "run");
        CHECK(difference(r.y, truth, 126) > bound, "a weight that is 1e-6 off");
        r.heads.v[0] = kept;
        r.heads.bias[1] += 1000.0; /* one query of one head attends to another pixel */
        CHECK(conv_run(&r.heads, 1, r.keys, r.queries, r.y, NULL, NULL) == MHA_OK, "run");
        CHECK(difference(r.y, truth, 126) > bound, "a head that attends elsewhere");
    }
    run_free(&r);
    case_free(&c);
}

/* ------------------------------------------------------------- mixtures ---- */

/* Random extents, which may be smaller than the kernel, so that taps share a pixel. */
static conv_case mixed_case(test_random *random, ptrdiff_t side_max, ptrdiff_t channels_max)
{
    conv_case c = {0};
    conv_spec *const s = &c.spec;
    s->picture = (conv_point){1 + test_random_below(random, 7), 1 + test_random_below(random, 7)};
    s->kernel = (conv_point){1 + test_random_below(random, side_max),
                             1 + test_random_below(random, side_max)};
    s->inputs = 1 + test_random_below(random, channels_max);
    s->outputs = 1 + test_random_below(random, channels_max);
    s->stride = 1;
    s->dilation = 1 + test_random_below(random, 2);
    s->padding = test_random_below(random, 2) == 0 ? CONV_REPLICATE : CONV_CIRCULAR;
    s->type = test_random_below(random, 2) == 0 ? MHA_F32 : MHA_F64;
    c.picture = numbers(random, s->picture.row * s->picture.column * s->inputs);
    c.weights = numbers(random, s->kernel.row * s->kernel.column * s->inputs * s->outputs);
    s->weights = c.weights;
    return c;
}

/* The largest error of a mixture's heads on the picture, and its bound. */
static double mixture_error(const conv_case *c, const conv_mixture *m, double *bound)
{
    conv_heads heads;
    *bound = -1.0;
    if (!CHECK(conv_mixed_heads(&heads, &c->spec, m) == MHA_OK, "create"))
        return NAN;
    const ptrdiff_t count = heads.L * c->spec.outputs;
    double *const y = calloc((size_t)(2 * count), sizeof *y), *const z = y + count;
    CHECK(heads.H == m->heads, "%td heads, not %td", heads.H, m->heads);
    CHECK(conv_run(&heads, 1, c->picture, c->picture, y, NULL, NULL) == MHA_OK, "run");
    scatter(&c->spec, c->picture, z);
    const double error = difference(y, z, count);
    *bound = conv_mixed_bound(&heads, m, c->picture);
    free(y);
    conv_heads_free(&heads);
    return error;
}

/* Makes the taps random, not negative, not positive or zero, and counts the signs they have. */
static int choose_signs(conv_case *c, int kind)
{
    bool positive = false, negative = false;
    for (ptrdiff_t t = 0; t < c->spec.kernel.row * c->spec.kernel.column; t++) {
        double *const tap = &c->weights[t];
        *tap = kind == 1 ? fabs(*tap) : kind == 2 ? -fabs(*tap) : kind == 3 ? 0.0 : *tap;
        *tap = t % 5 == 4 ? 0.0 : *tap;
        positive = positive || *tap > 0.0;
        negative = negative || *tap < 0.0;
    }
    return positive + negative;
}

static void two_heads_are_any_kernel_of_one_channel(void)
{
    test_random random = {test_seed(11)};
    for (int64_t n = 0; n < test_effort(300); n++) {
        conv_case c = mixed_case(&random, 7, 1);
        const int signs = choose_signs(&c, (int)(n % 4));
        const conv_mixture m = conv_mix_by_sign(&c.spec);
        double bound;
        const double error = mixture_error(&c, &m, &bound);
        CHECK(m.heads == (signs == 2 ? 2 : 1), "case %d: %td heads for %d signs", (int)n, m.heads,
              signs);
        CHECK(error <= bound && error <= 1e-5 * magnitude(&c), "case %d: %g of %g allowed", (int)n,
              error, bound);
        case_free(&c);
    }
}

/* sum over heads of share[h][t] M_h, minus the taps: the sum of squares. Also checks the weights.
 */
static double mixture_distance(const conv_spec *spec, const conv_mixture *m)
{
    double sum = 0.0;
    for (ptrdiff_t h = 0; h < m->heads; h++) {
        double total = 0.0;
        for (ptrdiff_t t = 0; t < m->taps; t++) {
            CHECK(m->share[h * m->taps + t] >= 0.0, "a negative weight");
            total += m->share[h * m->taps + t];
        }
        CHECK(fabs(total - 1.0) < 1e-14, "head %td: weights sum to %g", h, total);
    }
    for (ptrdiff_t n = 0; n < m->taps * m->paths; n++) {
        double tap = 0.0;
        for (ptrdiff_t h = 0; h < m->heads; h++)
            tap += m->share[h * m->taps + n / m->paths] * m->matrix[h * m->paths + n % m->paths];
        sum += (tap - spec->weights[n]) * (tap - spec->weights[n]);
    }
    return sum;
}

/* Of every rank the nearest kernel, by the singular values; of the full rank the kernel itself, by
 * one head more than the rank. */
static void mixtures_by_rank(void)
{
    test_random random = {test_seed(12)};
    for (int64_t n = 0; n < test_effort(100); n++) {
        conv_case c = mixed_case(&random, 5, 3);
        const ptrdiff_t paths = c.spec.inputs * c.spec.outputs;
        double values[MIXED_PATHS_MAX], bound;
        conv_singular_values(&c.spec, values);
        for (ptrdiff_t rank = 0; rank <= paths; rank++) {
            const conv_mixture m = conv_mix_by_rank(&c.spec, rank);
            double rest = 0.0;
            for (ptrdiff_t k = rank; k < paths; k++)
                rest += values[k] * values[k];
            const double distance = mixture_distance(&c.spec, &m);
            CHECK(m.heads == rank + 1, "%td heads of rank %td", m.heads, rank);
            CHECK(fabs(distance - rest) < 1e-12 * (1.0 + rest), "case %d, rank %td: %g, not %g",
                  (int)n, rank, distance, rest);
            const double error = mixture_error(&c, &m, &bound);
            CHECK(rank < paths || (error <= bound && error <= 1e-4 * magnitude(&c)),
                  "case %d: %g of %g allowed", (int)n, error, bound);
        }
        case_free(&c);
    }
}

/* A mixture with one matrix or one weight that is slightly wrong is further away than its bound. */
static void a_wrong_mixture_is_seen(void)
{
    test_random random = {test_seed(13)};
    conv_case c = plain_case(&random, CONV_HARD, MHA_F64, 0.0);
    conv_mixture m = conv_mix_by_rank(&c.spec, 6);
    double bound;
    CHECK(mixture_error(&c, &m, &bound) <= bound, "right: too far");
    m.matrix[0] *= 1.0 + 1e-8;
    CHECK(mixture_error(&c, &m, &bound) > bound, "a matrix that is 1e-8 off");
    m = conv_mix_by_rank(&c.spec, 6);
    m.share[9] += 1e-8;
    CHECK(mixture_error(&c, &m, &bound) > bound, "a weight that is 1e-8 off");
    case_free(&c);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(sources_beyond_the_border);
    RUN(taps_of_kernels);
    RUN(extents_of_outputs);
    RUN(the_loop_is_the_definition);
    RUN(heads_are_the_convolution);
    RUN(long_sums_are_bit_equal_too);
    RUN(sharp_heads_choose);
    RUN(hard_heads_read_zero_outside);
    RUN(places_are_as_good_as_a_bias);
    RUN(the_leak_is_bounded);
    RUN(a_margin_gives_no_output);
    RUN(batches_and_threads_change_nothing);
    RUN(a_wrong_layer_is_seen);
    RUN(two_heads_are_any_kernel_of_one_channel);
    RUN(mixtures_by_rank);
    RUN(a_wrong_mixture_is_seen);
    return test_end();
}
