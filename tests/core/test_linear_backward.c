/* SPDX-License-Identifier: MIT */
/*
 * Gradients of linears against double precision at every edge of tiles and blocks, in memory whose
 * guard pages beside them; what their bits do not depend on; and new weights in place of old
 * ones. All of it in native arithmetic too, whose error is compared with that of a naive
 * computation in bf16.
 */
#include "support/guard.h"
#include "support/layer_oracle.h"
#include "support/test.h"
#include "support/tracked.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 0xa5 };

static const mha_dtype float_types[] = {MHA_F32, MHA_F16, MHA_BF16};
static const mha_dtype stored_types[] = {MHA_F32, MHA_F16, MHA_BF16, MHA_I8};

/* Standard deviations, see tracked.h. */
static const double limit = 3;

/* ---------------------------------------------------------------------- cases ---- */

enum { WANT_X = 1, WANT_WEIGHT = 2, WANT_BIAS = 4, WANT_ALL = 7 };

typedef struct spec {
    ptrdiff_t rows, inputs, outputs;
    mha_dtype stored, x_type, d_y_type;
    bool native;     /* MHA_NATIVE, of bf16 */
    bool transposed; /* d_weight is [inputs][outputs] */
    ptrdiff_t gap;   /* elements between rows of everything */
    unsigned wanted;
    guard_side side;
    uint64_t seed;
} spec;

typedef struct linear_case {
    spec s;
    mha_linear_config config;
    guard_buffer weight, x, d_y, d_x, d_weight, d_bias;
    mha_linear *linear;
    mha_linear_gradients g;
} linear_case;

static const char *name_of(const spec *s)
{
    static char text[160];
    snprintf(text, sizeof text,
             "%td x %td -> %td, stored %d%s, x %d, d_y %d%s, gap %td, wanted %u, seed %llu",
             s->rows, s->inputs, s->outputs, (int)s->stored, s->native ? " native" : "",
             (int)s->x_type, (int)s->d_y_type, s->transposed ? ", transposed" : "", s->gap,
             s->wanted, (unsigned long long)s->seed);
    return text;
}

/* Elements of `lines` lines, with a gap between them. */
static ptrdiff_t span(const spec *s, ptrdiff_t lines, ptrdiff_t width)
{
    return lines > 0 ? (lines - 1) * (width + s->gap) + width : 0;
}

/* Rows of normal numbers, NaN between them. */
static guard_buffer random_rows(const spec *s, test_random *random, mha_dtype type, ptrdiff_t width)
{
    const guard_buffer buffer =
        guard_new((size_t)span(s, s->rows, width) * mha_dtype_size(type), s->side);
    memset(buffer.data, 0xff, buffer.size);
    for (ptrdiff_t i = 0; i < s->rows; i++)
        for (ptrdiff_t c = 0; c < width; c++)
            number_set(type, buffer.data, i * (width + s->gap) + c,
                       (double)test_random_normal(random));
    guard_seal(&buffer);
    return buffer;
}

/* Whole steps of what i8 can hold, so that every stored type knows the weights exactly. */
static void fill_weight(linear_case *l, test_random *random)
{
    float *const w = l->weight.data;
    for (ptrdiff_t n = 0; n < l->s.inputs * l->s.outputs; n++)
        w[n] = (float)(n % l->s.inputs == 0 ? 127 : test_random_below(random, 255) - 127) * 0x1p-7f;
}

static guard_buffer output_of(const spec *s, ptrdiff_t count)
{
    return guard_new((size_t)count * sizeof(float), s->side);
}

static void ask(linear_case *l)
{
    const spec *const s = &l->s;
    const ptrdiff_t line = (s->transposed ? s->outputs : s->inputs) + s->gap;
    l->g = (mha_linear_gradients){
        .size = sizeof l->g,
        .d_y = l->d_y.data,
        .d_y_stride = s->outputs + s->gap,
        .d_y_type = s->d_y_type,
        .d_x = s->wanted & WANT_X ? l->d_x.data : NULL,
        .d_x_stride = s->inputs + s->gap,
        .d_weight = {s->wanted & WANT_WEIGHT ? l->d_weight.data : NULL, s->transposed ? 1 : line,
                     s->transposed ? line : 1},
        .d_bias = s->wanted & WANT_BIAS ? l->d_bias.data : NULL,
    };
}

static linear_case case_of(const spec *s)
{
    linear_case l = {.s = *s};
    test_random random = {s->seed};
    l.weight = output_of(s, s->inputs * s->outputs);
    l.x = random_rows(s, &random, s->x_type, s->inputs);
    l.d_y = random_rows(s, &random, s->d_y_type, s->outputs);
    l.d_x = output_of(s, span(s, s->rows, s->inputs));
    l.d_weight = output_of(s, s->transposed ? span(s, s->inputs, s->outputs)
                                            : span(s, s->outputs, s->inputs));
    l.d_bias = output_of(s, s->outputs);
    fill_weight(&l, &random);
    l.config = (mha_linear_config){.size = sizeof l.config,
                                   .inputs = s->inputs,
                                   .outputs = s->outputs,
                                   .weight = mha_matrix_out_in(l.weight.data, MHA_F32, s->inputs),
                                   .stored = s->stored,
                                   .arithmetic = s->native ? MHA_NATIVE : MHA_EXACT};
    const mha_status status = mha_linear_create(&l.linear, &l.config);
    CHECK(status == MHA_OK, "%s: create: %s", name_of(s), mha_status_string(status));
    ask(&l);
    return l;
}

static void case_done(linear_case *l)
{
    mha_linear_free(l->linear);
    guard_buffer *const all[] = {&l->weight, &l->x, &l->d_y, &l->d_x, &l->d_weight, &l->d_bias};
    for (int n = 0; n < 6; n++)
        guard_free(all[n]);
}

static guard_buffer *output(linear_case *l, int n)
{
    guard_buffer *const all[] = {&l->d_x, &l->d_weight, &l->d_bias};
    return all[n];
}

/* With a workspace of exactly the required size, at its own guard page; or with none. */
static void run_case(linear_case *l, mha_pool *pool, bool workspace)
{
    const spec *const s = &l->s;
    const size_t size = mha_linear_backward_work_size(l->linear, s->rows, mha_pool_threads(pool));
    guard_buffer work = guard_new(size, s->side);
    for (int n = 0; n < 3; n++)
        memset(output(l, n)->data, GAP, output(l, n)->size);
    const mha_status status =
        mha_linear_backward(l->linear, s->rows, l->x.data, s->x_type, s->inputs + s->gap, &l->g,
                            workspace ? work.data : NULL, workspace ? size : 0, pool);
    CHECK(status == MHA_OK, "%s: %s", name_of(s), mha_status_string(status));
    CHECK(guard_intact(&work), "%s: written outside the workspace", name_of(s));
    for (int n = 0; n < 3; n++)
        CHECK(guard_intact(output(l, n)), "%s: written outside output %d", name_of(s), n);
    guard_free(&work);
}

/* ----------------------------------------------------------------- comparison ---- */

static num x_at(const linear_case *l, ptrdiff_t i, ptrdiff_t c)
{
    return num_exact(number_get(l->s.x_type, l->x.data, i * (l->s.inputs + l->s.gap) + c));
}

static num d_y_at(const linear_case *l, ptrdiff_t i, ptrdiff_t n)
{
    return num_exact(number_get(l->s.d_y_type, l->d_y.data, i * (l->s.outputs + l->s.gap) + n));
}

/* `size` is the sum of magnitudes of native products, and 0 for others: both factors are rounded to
 * bf16, by up to 2^-8 of them each. */
static void judge(const linear_case *l, const char *what, const float *got, num want, double size,
                  ptrdiff_t a, ptrdiff_t b)
{
    const double native =
        size > 0
            ? (0x1p-7 + 0x1p-16 + (double)l->s.rows * 0x1p-24 + (double)l->s.outputs * 0x1p-24) *
                  size
            : 0;
    const double bound = limit * 0x1p-24 * sqrt(want.v) + (double)FLT_MIN + native;
    CHECK(fabs((double)*got - want.x) <= (want.v == 0 ? 0 : bound),
          "%s: %s(%td,%td) is %.9g, must be %.9g", name_of(&l->s), what, a, b, (double)*got,
          want.x);
}

static void check_d_x(const linear_case *l, ptrdiff_t i, ptrdiff_t c)
{
    const float *const w = l->weight.data, *const d_x = l->d_x.data;
    num sum = {0};
    double size = 0;
    for (ptrdiff_t n = 0; n < l->s.outputs; n++) {
        const double weight = (double)w[n * l->s.inputs + c];
        sum = num_fma(sum, d_y_at(l, i, n), num_exact(weight));
        size += l->s.native ? fabs(d_y_at(l, i, n).x * weight) : 0;
    }
    judge(l, "d_x", &d_x[i * l->g.d_x_stride + c], sum, size, i, c);
}

static void check_d_weight(const linear_case *l, ptrdiff_t n, ptrdiff_t c)
{
    const float *const d_weight = l->d_weight.data;
    const mha_matrix_out *const m = &l->g.d_weight;
    num sum = {0};
    double size = 0;
    for (ptrdiff_t i = 0; i < l->s.rows; i++) {
        sum = num_fma(sum, d_y_at(l, i, n), x_at(l, i, c));
        size += l->s.native ? fabs(d_y_at(l, i, n).x * x_at(l, i, c).x) : 0;
    }
    judge(l, "d_weight", &d_weight[n * m->out_stride + c * m->in_stride], sum, size, n, c);
}

static void check_d_bias(const linear_case *l, ptrdiff_t n)
{
    const float *const d_bias = l->d_bias.data;
    num sum = {0};
    for (ptrdiff_t i = 0; i < l->s.rows; i++)
        sum = num_add(sum, d_y_at(l, i, n));
    judge(l, "d_bias", &d_bias[n], sum, 0, n, 0);
}

/* Every gap, and all of an output that was not requested, still holds the pattern. */
static void check_gaps(linear_case *l)
{
    const spec *const s = &l->s;
    const ptrdiff_t widths[] = {s->inputs, s->transposed ? s->outputs : s->inputs, s->outputs};
    for (int k = 0; k < 3; k++) {
        const unsigned char *const bytes = output(l, k)->data;
        const ptrdiff_t line = widths[k] + (k < 2 ? s->gap : 0);
        size_t touched = 0;
        for (size_t at = 0; at < output(l, k)->size; at++) {
            const bool gap = (ptrdiff_t)(at / sizeof(float)) % line >= widths[k];
            touched += (gap || !(s->wanted >> k & 1)) && bytes[at] != GAP;
        }
        CHECK(touched == 0, "%s: %zu bytes of output %d written", name_of(s), touched, k);
    }
}

/* All elements, or `most` of each output at random. */
static void check_case(linear_case *l, int64_t most)
{
    test_random random = {l->s.seed ^ 77};
    const spec *const s = &l->s;
    const int64_t counts[] = {s->rows * s->inputs, s->outputs * s->inputs, s->outputs};
    for (int k = 0; k < 3; k++)
        for (int64_t n = 0; s->wanted >> k & 1 && n < counts[k] && n < most; n++) {
            const ptrdiff_t at =
                (ptrdiff_t)(counts[k] <= most ? n : test_random_below(&random, counts[k]));
            if (k == 0)
                check_d_x(l, at / s->inputs, at % s->inputs);
            else if (k == 1)
                check_d_weight(l, at / s->inputs, at % s->inputs);
            else
                check_d_bias(l, at);
        }
    check_gaps(l);
}

static void try_case(const spec *s, int64_t most)
{
    linear_case l = case_of(s);
    run_case(&l, NULL, s->seed % 4 != 0);
    check_case(&l, most);
    case_done(&l);
}

/* ---------------------------------------------------------------------- sizes ---- */

static spec plain_spec(ptrdiff_t rows, ptrdiff_t inputs, ptrdiff_t outputs)
{
    return (spec){.rows = rows,
                  .inputs = inputs,
                  .outputs = outputs,
                  .transposed = (rows + inputs + outputs) % 2,
                  .gap = (rows + outputs) % 3,
                  .wanted = WANT_ALL,
                  .side = (rows + inputs) % 2 ? GUARD_AFTER : GUARD_BEFORE,
                  .seed = (uint64_t)(rows * 1000003 + inputs * 1009 + outputs)};
}

/* A few, many, or around the edge of a block. */
static ptrdiff_t random_extent(test_random *random)
{
    static const ptrdiff_t edges[] = {1, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384};
    const ptrdiff_t edge = edges[test_random_below(random, 12)];
    if (test_random_below(random, 2))
        return 1 + (ptrdiff_t)test_random_below(random, 40);
    return edge + (ptrdiff_t)test_random_below(random, 3) - 1;
}

/* One of the stored types, or bf16 in native arithmetic. */
enum { STORED = 5 };
static void set_stored(spec *s, int number)
{
    s->native = number == STORED - 1;
    s->stored = s->native ? MHA_BF16 : stored_types[number];
}

static spec random_spec(test_random *random)
{
    spec s = plain_spec(random_extent(random), random_extent(random), random_extent(random));
    s.seed = test_random_u64(random);
    s.transposed = s.seed >> 8 & 1;
    s.gap = (ptrdiff_t)(s.seed >> 9 & 3);
    set_stored(&s, (int)test_random_below(random, STORED));
    s.x_type = float_types[test_random_below(random, 3)];
    s.d_y_type = float_types[test_random_below(random, 3)];
    s.wanted = (unsigned)(s.seed >> 16 & 1 ? WANT_ALL : 1 + test_random_below(random, 7));
    return s;
}

static void random_sizes_and_types(void)
{
    test_random random = {test_seed(51000)};
    for (int64_t n = 0; n < test_effort(800); n++) {
        const spec s = random_spec(&random);
        try_case(&s, 60);
    }
}

/* Every element of small ones. */
static void every_small_size(void)
{
    static const ptrdiff_t sizes[] = {1, 2, 3, 7, 16, 17, 33};
    for (int n = 0; n < 343; n++) {
        const spec s = plain_spec(sizes[n % 7], sizes[n / 7 % 7], sizes[n / 49]);
        try_case(&s, 600);
    }
}

static void every_type(void)
{
    for (int n = 0; n < 18 * STORED; n++) {
        spec s = plain_spec(13 + n % 5, 70, 35);
        s.transposed = n % 2;
        set_stored(&s, n / 2 % STORED);
        s.x_type = float_types[n / 2 / STORED % 3];
        s.d_y_type = float_types[n / 6 / STORED];
        s.seed = (uint64_t)n;
        try_case(&s, 300);
    }
}

/* So large that the weights are transposed in several parts. */
static void large_weights(void)
{
    spec s = plain_spec(5, 40, 300000);
    s.gap = 0;
    for (int n = 0; n < STORED; n += 2) {
        set_stored(&s, n);
        try_case(&s, 20);
    }
}

/* Without rows gradients of weights are 0, without outputs those of inputs. */
static void nothing_is_legal(void)
{
    static const ptrdiff_t sizes[] = {0, 1, 17};
    for (int n = 0; n < 54; n++) {
        spec s = plain_spec(sizes[n % 3], sizes[n / 3 % 3], sizes[n / 9 % 3]);
        s.transposed = n / 27;
        for (int t = 0; t < STORED; t++) {
            set_stored(&s, t);
            try_case(&s, 400);
        }
    }
}

/* ----------------------------------------------------------------------- bits ---- */

/* The bytes of all outputs; to be freed. */
static unsigned char *bytes_of(linear_case *l, size_t *size)
{
    *size = l->d_x.size + l->d_weight.size + l->d_bias.size;
    unsigned char *const bytes = malloc(*size + 1), *at = bytes;
    for (int n = 0; n < 3; n++) {
        memcpy(at, output(l, n)->data, output(l, n)->size);
        at += output(l, n)->size;
    }
    return bytes;
}

static void threads_do_not_matter(void)
{
    mha_pool *pools[3] = {NULL};
    test_random random = {test_seed(52000)};
    for (int n = 0; n < 3; n++)
        CHECK(mha_pool_create(&pools[n], n + 1) == MHA_OK, "pool");
    for (int64_t n = 0; n < test_effort(60); n++) {
        spec s = random_spec(&random);
        s.rows += n % 4 == 0 ? 300 : 0;
        linear_case l = case_of(&s);
        size_t size;
        run_case(&l, NULL, true);
        unsigned char *const alone = bytes_of(&l, &size);
        for (int k = 0; k < 6; k++) {
            run_case(&l, pools[k % 3], k < 3);
            unsigned char *const now = bytes_of(&l, &size);
            CHECK(memcmp(alone, now, size) == 0, "%s: other bits with %d threads", name_of(&s),
                  k % 3 + 1);
            free(now);
        }
        free(alone);
        case_done(&l);
    }
    for (int n = 0; n < 3; n++)
        mha_pool_free(pools[n]);
}

/* Each output by itself has the bits it has among the others. */
static void requests_do_not_matter(void)
{
    test_random random = {test_seed(53000)};
    for (int64_t n = 0; n < test_effort(60); n++) {
        spec s = random_spec(&random);
        s.wanted = WANT_ALL;
        linear_case all = case_of(&s);
        run_case(&all, NULL, true);
        for (int k = 0; k < 3; k++) {
            s.wanted = 1u << k;
            linear_case one = case_of(&s);
            run_case(&one, NULL, true);
            CHECK(memcmp(output(&all, k)->data, output(&one, k)->data, output(&all, k)->size) == 0,
                  "%s: other bits alone", name_of(&s));
            case_done(&one);
        }
        case_done(&all);
    }
}

/* A row of d_x is the same in any company. */
static void rows_do_not_know_each_other(void)
{
    test_random random = {test_seed(54000)};
    for (int64_t n = 0; n < test_effort(40); n++) {
        spec s = random_spec(&random);
        s.rows = 60;
        s.wanted = WANT_X;
        linear_case l = case_of(&s);
        run_case(&l, NULL, true);
        for (ptrdiff_t first = 0; first < 60; first += 7) {
            const ptrdiff_t count = 1 + (ptrdiff_t)test_random_below(&random, 60 - first);
            float *const some = malloc((size_t)(count * s.inputs) * sizeof *some);
            mha_linear_gradients g = l.g;
            g.d_y =
                (const char *)g.d_y + first * g.d_y_stride * (ptrdiff_t)mha_dtype_size(s.d_y_type);
            g.d_x = some;
            g.d_x_stride = s.inputs;
            CHECK(mha_linear_backward(l.linear, count, l.x.data, s.x_type, 0, &g, NULL, 0, NULL) ==
                      MHA_OK,
                  "some rows");
            for (ptrdiff_t i = 0; i < count; i++)
                CHECK(memcmp(some + i * s.inputs,
                             (float *)l.d_x.data + (first + i) * l.g.d_x_stride,
                             (size_t)s.inputs * sizeof(float)) == 0,
                      "%s: row %td differs among %td", name_of(&s), first + i, count);
            free(some);
        }
        case_done(&l);
    }
}

/* Adds up gradients of rows [0, cut) and [cut, rows), beginning with what `g` holds. */
static void run_two_pieces(const linear_case *l, mha_linear_gradients g, ptrdiff_t cut)
{
    const spec *const s = &l->s;
    const ptrdiff_t firsts[] = {0, cut}, counts[] = {cut, s->rows - cut};
    const ptrdiff_t x_stride = s->inputs + s->gap;
    g.accumulate = 1;
    g.d_x = NULL;
    for (int n = 0; n < 2; n++) {
        const char *const x =
            (const char *)l->x.data + firsts[n] * x_stride * (ptrdiff_t)mha_dtype_size(s->x_type);
        g.d_y = (const char *)l->g.d_y +
                firsts[n] * g.d_y_stride * (ptrdiff_t)mha_dtype_size(s->d_y_type);
        CHECK(mha_linear_backward(l->linear, counts[n], x, s->x_type, x_stride, &g, NULL, 0,
                                  NULL) == MHA_OK,
              "%s: piece %d", name_of(s), n);
    }
}

/* A batch in pieces gives the gradients of the whole: the bits of d_weight, and d_bias but for the
 * rounding between the pieces. */
static void pieces_add_up(void)
{
    test_random random = {test_seed(56000)};
    for (int64_t n = 0; n < test_effort(30); n++) {
        spec s = random_spec(&random);
        s.rows = 257 + (ptrdiff_t)test_random_below(&random, 200);
        s.wanted = WANT_ALL;
        s.transposed = false;
        linear_case l = case_of(&s);
        run_case(&l, NULL, true);
        float *const d_weight = calloc((size_t)(s.inputs * s.outputs), sizeof *d_weight);
        float *const d_bias = calloc((size_t)s.outputs, sizeof *d_bias);
        mha_linear_gradients g = l.g;
        g.d_weight = (mha_matrix_out){d_weight, s.inputs, 1};
        g.d_bias = d_bias;
        run_two_pieces(&l, g, 128 * (1 + (ptrdiff_t)test_random_below(&random, 2)));
        for (ptrdiff_t at = 0; at < s.outputs; at++) {
            const float whole = ((const float *)l.d_bias.data)[at];
            CHECK(memcmp(d_weight + at * s.inputs,
                         (const float *)l.d_weight.data + at * l.g.d_weight.out_stride,
                         (size_t)s.inputs * sizeof(float)) == 0,
                  "%s: other bits of output %td in pieces", name_of(&s), at);
            CHECK(fabsf(d_bias[at] - whole) <= 1e-5f * (1.0f + fabsf(whole)),
                  "%s: bias %td is %g in pieces and %g as a whole", name_of(&s), at,
                  (double)d_bias[at], (double)whole);
        }
        free(d_weight);
        free(d_bias);
        case_done(&l);
    }
}

/* ------------------------------------------------------------------- new weights ---- */

/* The same weights in another type, orientation or place; to be freed. */
static void *convert(const linear_case *l, const float *from, mha_dtype type, bool in_out,
                     mha_matrix *matrix)
{
    const ptrdiff_t inputs = l->s.inputs, outputs = l->s.outputs;
    void *const data = malloc((size_t)(inputs * outputs) * mha_dtype_size(type) + 1);
    *matrix =
        in_out ? mha_matrix_in_out(data, type, outputs) : mha_matrix_out_in(data, type, inputs);
    for (ptrdiff_t n = 0; n < outputs; n++)
        for (ptrdiff_t c = 0; c < inputs; c++)
            number_set(type, data, n * matrix->out_stride + c * matrix->in_stride,
                       (double)from[n * inputs + c]);
    return data;
}

static void run_forward(const linear_case *l, const mha_linear *linear, float *y)
{
    CHECK(mha_linear_run(linear, l->s.rows, l->x.data, l->s.x_type, l->s.inputs + l->s.gap, y,
                         MHA_F32, l->s.outputs, NULL, 0, NULL) == MHA_OK,
          "run");
}

/* Forward and backward passes of both are the same to the bit. */
static void check_twins(linear_case *l, mha_linear *fresh)
{
    const size_t bytes = (size_t)(l->s.rows * l->s.outputs) * sizeof(float);
    float *const a = malloc(bytes), *const b = malloc(bytes);
    mha_linear *const updated = l->linear;
    size_t size;
    run_forward(l, updated, a);
    run_forward(l, fresh, b);
    CHECK(memcmp(a, b, bytes) == 0, "%s: other bits after an update", name_of(&l->s));
    run_case(l, NULL, true);
    unsigned char *const now = bytes_of(l, &size);
    l->linear = fresh;
    run_case(l, NULL, true);
    l->linear = updated;
    unsigned char *const wanted = bytes_of(l, &size);
    CHECK(memcmp(now, wanted, size) == 0, "%s: other gradients after an update", name_of(&l->s));
    free(now);
    free(wanted);
    free(a);
    free(b);
}

/* An updated linear is one that was made again, with a bias, without one, and with one again. */
static void updates_are_new_linears(void)
{
    test_random random = {test_seed(55000)};
    for (int64_t n = 0; n < test_effort(80); n++) {
        const spec s = random_spec(&random);
        linear_case l = case_of(&s);
        float *const numbers = calloc((size_t)((s.inputs + 1) * s.outputs), sizeof *numbers);
        for (int k = 0; k < 3; k++) {
            for (ptrdiff_t at = 0; at < (s.inputs + 1) * s.outputs; at++)
                numbers[at] = test_random_normal(&random);
            mha_linear_config config = l.config;
            config.bias = (mha_vector){k == 1 ? NULL : numbers + s.inputs * s.outputs, MHA_F32};
            void *const data =
                convert(&l, numbers, float_types[k], test_random_below(&random, 2), &config.weight);
            mha_linear *fresh = NULL;
            const size_t bytes = mha_linear_bytes(l.linear);
            CHECK(mha_linear_create(&fresh, &config) == MHA_OK, "create");
            CHECK(mha_linear_update(l.linear, config.weight, config.bias) == MHA_OK, "update");
            CHECK(mha_linear_bytes(l.linear) == bytes, "%s: grown", name_of(&s));
            free(data);
            check_twins(&l, fresh);
            mha_linear_free(fresh);
        }
        free(numbers);
        case_done(&l);
    }
}

/* -------------------------------------------------------------------------- NaN ---- */

/* A row of d_y that is not finite shows in its row of d_x and in sums over rows, an element of x in
 * its column of d_weight, and nowhere else. */
static void damage_stays(bool native)
{
    spec s = plain_spec(9, 20, 21);
    set_stored(&s, native ? STORED - 1 : 0);
    s.transposed = false;
    s.gap = 0;
    linear_case l = case_of(&s);
    float x[9 * 20], d_y[9 * 21];
    memcpy(x, l.x.data, sizeof x);
    memcpy(d_y, l.d_y.data, sizeof d_y);
    d_y[4 * 21 + 7] = NAN;
    x[2 * 20 + 3] = INFINITY;
    l.g.d_y = d_y;
    CHECK(mha_linear_backward(l.linear, 9, x, MHA_F32, 20, &l.g, NULL, 0, NULL) == MHA_OK, "run");
    for (int at = 0; at < 9 * 20; at++)
        CHECK(!isfinite(((float *)l.d_x.data)[at]) == (at / 20 == 4), "d_x[%d]", at);
    for (int at = 0; at < 21 * 20; at++)
        CHECK(!isfinite(((float *)l.d_weight.data)[at]) == (at / 20 == 7 || at % 20 == 3),
              "d_weight[%d]", at);
    for (int at = 0; at < 21; at++)
        CHECK(!isfinite(((float *)l.d_bias.data)[at]) == (at == 7), "d_bias[%d]", at);
    case_done(&l);
}

static void damage_stays_where_it_is(void)
{
    damage_stays(false);
    damage_stays(true);
}

/* Numbers that products of bf16 take as 0, or not: their products are too small to show. */
static void subnormal_numbers_are_nothing(void)
{
    spec s = plain_spec(6, 40, 33);
    set_stored(&s, STORED - 1);
    s.gap = 0;
    linear_case l = case_of(&s);
    float x[6 * 40], d_y[6 * 33];
    for (int at = 0; at < 6 * 40; at++)
        x[at] = at % 40 == 0 ? 1.0f : 0x1p-130f;
    for (int at = 0; at < 6 * 33; at++)
        d_y[at] = at / 33 == 2 ? 0x1p-130f : 1.0f;
    l.g.d_y = d_y;
    CHECK(mha_linear_backward(l.linear, 6, x, MHA_F32, 40, &l.g, NULL, 0, NULL) == MHA_OK, "run");
    for (int at = 0; at < 33 * 40; at++) {
        const float got =
            ((float *)l.d_weight
                 .data)[at / 40 * l.g.d_weight.out_stride + at % 40 * l.g.d_weight.in_stride];
        CHECK(at % 40 == 0 ? got == 5.0f : got >= 0 && got <= 5 * 0x1p-130f, "d_weight[%d]: %a", at,
              (double)got);
    }
    for (int at = 0; at < 40; at++)
        CHECK(fabsf(((float *)l.d_x.data)[2 * l.g.d_x_stride + at]) <= 33 * 0x1p-130f, "d_x");
    case_done(&l);
}

/* ----------------------------------------------------------------- naive bf16 ---- */

static float rounded(double x)
{
    uint16_t bits;
    number_set(MHA_BF16, &bits, 0, x);
    return (float)number_get(MHA_BF16, &bits, 0);
}

/* Sums of squares of errors: of ours, and of factors and result stored as bf16. */
typedef struct rivals {
    double ours, naive;
} rivals;

static void compare_sum(rivals *all, float got, const float *a, ptrdiff_t a_step, const float *b,
                        ptrdiff_t b_step, ptrdiff_t count)
{
    double exact = 0, naive = 0;
    for (ptrdiff_t n = 0; n < count; n++) {
        exact += (double)a[n * a_step] * (double)b[n * b_step];
        naive += (double)rounded((double)a[n * a_step]) * (double)rounded((double)b[n * b_step]);
    }
    all->ours += pow((double)got - exact, 2);
    all->naive += pow((double)rounded(naive) - exact, 2);
}

/* Weights, too, are any f32 numbers here. The promise is 3 times the error of a naive computation
 * (docs/numerics.md); without roundings of results it is in fact smaller. */
static void errors_are_those_of_bf16(void)
{
    enum { ROWS = 150, INPUTS = 61, OUTPUTS = 90 };
    static float w[OUTPUTS * INPUTS], x[ROWS * INPUTS], d_y[ROWS * OUTPUTS], d_x[ROWS * INPUTS],
        d_w[OUTPUTS * INPUTS];
    test_random random = {test_seed(57000)};
    for (int n = 0; n < OUTPUTS * INPUTS; n++)
        w[n] = test_random_normal(&random);
    for (int n = 0; n < ROWS * INPUTS; n++)
        x[n] = test_random_normal(&random);
    for (int n = 0; n < ROWS * OUTPUTS; n++)
        d_y[n] = test_random_normal(&random) * (n % OUTPUTS % 7 == 0 ? 20.0f : 1.0f);
    const mha_linear_config config = {.size = sizeof config,
                                      .inputs = INPUTS,
                                      .outputs = OUTPUTS,
                                      .weight = mha_matrix_out_in(w, MHA_F32, INPUTS),
                                      .stored = MHA_BF16,
                                      .arithmetic = MHA_NATIVE};
    const mha_linear_gradients g = {.size = sizeof g,
                                    .d_y = d_y,
                                    .d_y_stride = OUTPUTS,
                                    .d_x = d_x,
                                    .d_x_stride = INPUTS,
                                    .d_weight = {d_w, INPUTS, 1}};
    mha_linear *linear = NULL;
    CHECK(mha_linear_create(&linear, &config) == MHA_OK &&
              mha_linear_backward(linear, ROWS, x, MHA_F32, INPUTS, &g, NULL, 0, NULL) == MHA_OK,
          "run");
    rivals inputs = {0, 0}, weights = {0, 0};
    for (int at = 0; at < ROWS * INPUTS; at++)
        compare_sum(&inputs, d_x[at], d_y + at / INPUTS * OUTPUTS, 1, w + at % INPUTS, INPUTS,
                    OUTPUTS);
    for (int at = 0; at < OUTPUTS * INPUTS; at++)
        compare_sum(&weights, d_w[at], d_y + at / INPUTS, OUTPUTS, x + at % INPUTS, INPUTS, ROWS);
    CHECK(sqrt(inputs.ours / inputs.naive) < 1.1 && inputs.ours > 0, "d_x: %g of the naive error",
          sqrt(inputs.ours / inputs.naive));
    CHECK(sqrt(weights.ours / weights.naive) < 1.1 && weights.ours > 0,
          "d_weight: %g of the naive error", sqrt(weights.ours / weights.naive));
    mha_linear_free(linear);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(random_sizes_and_types);
    RUN(every_small_size);
    RUN(every_type);
    RUN(large_weights);
    RUN(nothing_is_legal);
    RUN(threads_do_not_matter);
    RUN(requests_do_not_matter);
    RUN(rows_do_not_know_each_other);
    RUN(pieces_add_up);
    RUN(updates_are_new_linears);
    RUN(damage_stays_where_it_is);
    RUN(subnormal_numbers_are_nothing);
    RUN(errors_are_those_of_bf16);
    return test_end();
}
