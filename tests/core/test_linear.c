/* SPDX-License-Identifier: MIT */
/*
 * Linears: y = x W^T + bias against double precision at every edge of tiles, blocks and slices, in
 * memory between guard pages; and the promise that a row's bits depend on nothing
 * but the row.
 */
#include "support/guard.h"
#include "support/layer_oracle.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 0xa5 };

static const mha_dtype float_types[] = {MHA_F32, MHA_F16, MHA_BF16};
static const mha_dtype stored_types[] = {MHA_F32, MHA_F16, MHA_BF16, MHA_I8};

/* Units of u * size. Sums of f32 in chains stay far below; see docs/numerics.md. */
static const double limit = 8;

/* ---------------------------------------------------------------------- cases ---- */

typedef struct spec {
    ptrdiff_t rows, inputs, outputs;
    mha_dtype stored, weight_type, x_type, y_type;
    bool bias, in_out;
    ptrdiff_t x_gap, y_gap; /* elements between rows */
    bool whole;             /* weights that i8 holds exactly: k * 2^-10, |k| <= 127 */
    guard_side side;
    uint64_t seed;
} spec;

typedef struct linear_case {
    spec s;
    mha_linear_config config;
    guard_buffer weight, bias, x, y;
    ptrdiff_t x_stride, y_stride;
    mha_linear *linear;
} linear_case;

/* One weight of every output is 127 steps large: i8 then finds the same steps. */
static double random_weight(const spec *s, ptrdiff_t c, test_random *random)
{
    if (!s->whole)
        return (double)test_random_normal(random) / sqrt((double)s->inputs);
    return (double)(c == 0 ? 127 : test_random_below(random, 255) - 127) * 0x1p-10;
}

static void fill_weight(linear_case *l, test_random *random)
{
    for (ptrdiff_t n = 0; n < l->s.outputs; n++) {
        if (l->config.bias.data)
            number_set(l->s.weight_type, l->bias.data, n, (double)test_random_normal(random));
        for (ptrdiff_t c = 0; c < l->s.inputs; c++)
            number_set(l->s.weight_type, l->weight.data,
                       n * l->config.weight.out_stride + c * l->config.weight.in_stride,
                       random_weight(&l->s, c, random));
    }
}

/* Elements from the first of row 0 to the last of the last row. */
static ptrdiff_t span(ptrdiff_t rows, ptrdiff_t stride, ptrdiff_t width)
{
    return rows > 0 ? (rows - 1) * stride + width : 0;
}

static void make_rows(linear_case *l, test_random *random)
{
    const spec *const s = &l->s;
    l->x_stride = s->inputs + s->x_gap;
    l->y_stride = s->outputs + s->y_gap;
    l->x = guard_new((size_t)span(s->rows, l->x_stride, s->inputs) * mha_dtype_size(s->x_type),
                     s->side);
    l->y = guard_new((size_t)span(s->rows, l->y_stride, s->outputs) * mha_dtype_size(s->y_type),
                     s->side);
    for (ptrdiff_t i = 0; i < s->rows; i++)
        for (ptrdiff_t c = 0; c < s->inputs; c++)
            number_set(s->x_type, l->x.data, i * l->x_stride + c,
                       (double)test_random_normal(random));
    guard_seal(&l->x);
}

static linear_case case_of(const spec *s)
{
    linear_case l = {.s = *s};
    test_random random = {s->seed};
    const size_t size = mha_dtype_size(s->weight_type);
    l.weight = guard_new((size_t)(s->inputs * s->outputs) * size, s->side);
    l.bias = guard_new((size_t)s->outputs * size, s->side);
    l.config = (mha_linear_config){
        .size = sizeof l.config, .inputs = s->inputs, .outputs = s->outputs, .stored = s->stored};
    l.config.weight = s->in_out ? mha_matrix_in_out(l.weight.data, s->weight_type, s->outputs)
                                : mha_matrix_out_in(l.weight.data, s->weight_type, s->inputs);
    if (s->bias)
        l.config.bias = (mha_vector){l.bias.data, s->weight_type};
    fill_weight(&l, &random);
    make_rows(&l, &random);
    const mha_status status = mha_linear_create(&l.linear, &l.config);
    CHECK(status == MHA_OK && l.linear, "create: %s", mha_status_string(status));
    return l;
}

static void case_done(linear_case *l)
{
    mha_linear_free(l->linear);
    guard_free(&l->weight);
    guard_free(&l->bias);
    guard_free(&l->x);
    guard_free(&l->y);
}

static const char *name_of(const spec *s)
{
    static char text[160];
    snprintf(text, sizeof text, "%td x %td -> %td, stored %d from %d, x %d, y %d%s%s%s, seed %llu",
             s->rows, s->inputs, s->outputs, (int)s->stored, (int)s->weight_type, (int)s->x_type,
             (int)s->y_type, s->bias ? ", bias" : "", s->in_out ? ", [in,out]" : "",
             s->whole ? ", whole" : "", (unsigned long long)s->seed);
    return text;
}

/* Run with a workspace of exactly the required size, at its own guard page. */
static void run_case(linear_case *l, mha_pool *pool)
{
    const spec *const s = &l->s;
    const size_t size = mha_linear_work_size(l->linear, s->rows, mha_pool_threads(pool));
    guard_buffer work = guard_new(size, s->side);
    memset(l->y.data, GAP, l->y.size);
    const mha_status status =
        mha_linear_run(l->linear, s->rows, l->x.data, s->x_type, l->x_stride, l->y.data, s->y_type,
                       l->y_stride, work.data, size, pool);
    CHECK(status == MHA_OK, "%s: %s", name_of(s), mha_status_string(status));
    CHECK(guard_intact(&work) && guard_intact(&l->y), "%s: written outside", name_of(s));
    guard_free(&work);
}

/* ----------------------------------------------------------------- comparison ---- */

/* What i8 may be away from the weights as given: half a step each. */
static double i8_error(const linear_case *l, ptrdiff_t n, const sized *x)
{
    double largest = 0, sum = 0;
    for (ptrdiff_t c = 0; c < l->s.inputs; c++) {
        const mha_matrix *const w = &l->config.weight;
        const double size =
            fabs(number_get(w->type, w->data, n * w->out_stride + c * w->in_stride));
        largest = size > largest ? size : largest;
        sum += fabs(x[c].x);
    }
    return largest / 127 * 0.5001 * sum;
}

static void check_row(const linear_case *l, ptrdiff_t i, sized *x, sized *y)
{
    const spec *const s = &l->s;
    const bool loose = s->stored == MHA_I8 && !s->whole;
    mha_linear_config config = l->config;
    config.stored = loose ? MHA_F32 : s->stored;
    for (ptrdiff_t c = 0; c < s->inputs; c++)
        x[c].x = number_get(s->x_type, l->x.data, i * l->x_stride + c);
    linear_oracle(&config, x, y);
    for (ptrdiff_t n = 0; n < s->outputs; n++) {
        const double got = number_get(s->y_type, l->y.data, i * l->y_stride + n);
        const double room = loose ? i8_error(l, n, x) / limit : 0;
        const double error =
            compare_error(s->y_type, MHA_F32, got, y[n].x, 0x1p-24 * y[n].size + room);
        CHECK(error <= limit, "%s: y(%td,%td) is %.9g, must be %.9g (E %.3g)", name_of(s), i, n,
              got, y[n].x, error);
    }
}

static void check_gaps(const linear_case *l)
{
    const size_t element = mha_dtype_size(l->s.y_type);
    const unsigned char *const y = l->y.data;
    size_t touched = 0;
    for (ptrdiff_t i = 0; i + 1 < l->s.rows; i++)
        for (size_t at = (size_t)(i * l->y_stride + l->s.outputs) * element;
             at < (size_t)((i + 1) * l->y_stride) * element; at++)
            touched += y[at] != GAP;
    CHECK(touched == 0, "%s: %zu bytes written between rows", name_of(&l->s), touched);
}

/* First, last and some rows between against the oracle. */
static void check_case(const linear_case *l, ptrdiff_t most)
{
    test_random random = {l->s.seed ^ 77};
    sized *const x = calloc((size_t)l->s.inputs + 1, sizeof *x);
    sized *const y = calloc((size_t)l->s.outputs + 1, sizeof *y);
    const ptrdiff_t rows = l->s.rows;
    for (ptrdiff_t n = 0; n < most && n < rows; n++)
        check_row(l,
                  rows <= most ? n
                  : n == 0     ? rows - 1
                               : (ptrdiff_t)test_random_below(&random, rows),
                  x, y);
    check_gaps(l);
    free(x);
    free(y);
}

static void try_case(const spec *s, ptrdiff_t most)
{
    linear_case l = case_of(s);
    run_case(&l, NULL);
    check_case(&l, most);
    case_done(&l);
}

/* ---------------------------------------------------------------------- sizes ---- */

static spec plain_spec(ptrdiff_t rows, ptrdiff_t inputs, ptrdiff_t outputs)
{
    return (spec){.rows = rows,
                  .inputs = inputs,
                  .outputs = outputs,
                  .bias = (rows + inputs + outputs) % 2,
                  .in_out = (rows + inputs) % 3 == 0,
                  .x_gap = rows % 4 == 3 ? 5 : 0,
                  .y_gap = rows % 5 == 3 ? 3 : 0,
                  .side = outputs % 2 ? GUARD_AFTER : GUARD_BEFORE,
                  .seed = (uint64_t)(rows * 1000003 + inputs * 1009 + outputs)};
}

static void every_number_of_rows(void)
{
    static const ptrdiff_t more[] = {47,  48,  49,  95,  96,  97,  191, 192,
                                     193, 194, 199, 383, 384, 385, 400, 577};
    for (ptrdiff_t rows = 1; rows <= 40; rows++) {
        const spec a = plain_spec(rows, 37, 29), b = plain_spec(rows, 300, 70);
        try_case(&a, 40);
        try_case(&b, 40);
    }
    for (size_t n = 0; n < sizeof more / sizeof *more; n++) {
        const spec a = plain_spec(more[n], 41, 35);
        try_case(&a, 577);
    }
}

static const ptrdiff_t wide[] = {127, 128, 129, 130, 255, 256, 257, 258, 383, 384,
                                 385, 386, 511, 512, 513, 514, 767, 768, 769, 770};
enum { WIDE = sizeof wide / sizeof *wide };

static void every_number_of_inputs(void)
{
    for (ptrdiff_t inputs = 1; inputs <= 70; inputs++)
        for (ptrdiff_t rows = 1; rows <= 15; rows += 7) {
            const spec s = plain_spec(rows, inputs, 33);
            try_case(&s, 15);
        }
    for (int n = 0; n < WIDE; n++)
        for (ptrdiff_t rows = 1; rows <= 29; rows += 14) {
            const spec s = plain_spec(rows, wide[n], 19);
            try_case(&s, 29);
        }
}

static void every_number_of_outputs(void)
{
    for (ptrdiff_t outputs = 1; outputs <= 70; outputs++)
        for (ptrdiff_t rows = 1; rows <= 15; rows += 7) {
            const spec s = plain_spec(rows, 23, outputs);
            try_case(&s, 15);
        }
    for (int n = 0; n < WIDE; n++)
        for (ptrdiff_t rows = 2; rows <= 30; rows += 14) {
            const spec s = plain_spec(rows, 21, wide[n]);
            try_case(&s, 30);
        }
}

static void edges_together(void)
{
    static const ptrdiff_t sizes[] = {1, 15, 16, 17, 31, 33, 64, 130, 257, 385, 513, 769};
    test_random random = {test_seed(4711)};
    const int64_t cases = test_effort(150);
    for (int64_t n = 0; n < cases; n++) {
        const ptrdiff_t inputs = sizes[test_random_below(&random, 12)];
        const ptrdiff_t outputs = sizes[test_random_below(&random, 12)];
        spec s = plain_spec(1 + (ptrdiff_t)test_random_below(&random, 220), inputs, outputs);
        s.seed = test_random_u64(&random);
        try_case(&s, 3);
    }
}

/* Nothing to sum, nothing to write. */
static void nothing_is_legal(void)
{
    static const ptrdiff_t sizes[] = {0, 1, 17};
    for (int n = 0; n < 27; n++)
        for (int t = 0; t < 4; t++) {
            spec s = plain_spec(sizes[n % 3], sizes[n / 3 % 3], sizes[n / 9]);
            s.stored = stored_types[t];
            s.whole = true;
            try_case(&s, 17);
        }
}

static void no_inputs_give_the_bias(void)
{
    spec s = plain_spec(3, 0, 5);
    s.bias = true;
    linear_case l = case_of(&s);
    run_case(&l, NULL);
    for (ptrdiff_t i = 0; i < 3; i++)
        CHECK(memcmp((float *)l.y.data + i * l.y_stride, l.bias.data, 5 * sizeof(float)) == 0,
              "row %td is not the bias", i);
    case_done(&l);
}

/* ---------------------------------------------------------------------- types ---- */

static void every_type(void)
{
    static const ptrdiff_t rows[] = {1, 3, 12, 13, 40};
    for (int n = 0; n < 4 * 3 * 3 * 3 * 5; n++) {
        spec s = plain_spec(rows[n % 5], 70 + n % 9, 35);
        s.stored = stored_types[n / 5 % 4];
        s.weight_type = float_types[n / 20 % 3];
        s.x_type = float_types[n / 60 % 3];
        s.y_type = float_types[n / 180];
        try_case(&s, 5);
        s.inputs = 300;
        try_case(&s, 3);
    }
}

/* Whole numbers of steps lose nothing: i8 and f32 give the same. */
static void i8_is_exact_for_whole_steps(void)
{
    test_random random = {test_seed(4712)};
    for (int64_t n = 0; n < test_effort(60); n++) {
        spec s = plain_spec(1 + (ptrdiff_t)test_random_below(&random, 40),
                            1 + (ptrdiff_t)test_random_below(&random, 600),
                            1 + (ptrdiff_t)test_random_below(&random, 80));
        s.whole = true;
        s.stored = MHA_I8;
        s.seed = test_random_u64(&random);
        try_case(&s, 3);
    }
}

/* Rows with a single 1 show the stored weights: each is at most half a step away. */
static void i8_takes_the_nearest_step(void)
{
    spec s = plain_spec(37, 37, 21);
    s.stored = MHA_I8;
    s.bias = s.in_out = false;
    linear_case l = case_of(&s);
    float x[37 * 37] = {0}, y[37 * 21];
    for (ptrdiff_t c = 0; c < 37; c++)
        x[c * 37 + c] = 1;
    CHECK(mha_linear_run(l.linear, 37, x, MHA_F32, 37, y, MHA_F32, 21, NULL, 0, NULL) == MHA_OK,
          "run");
    const float *const w = l.weight.data;
    for (ptrdiff_t n = 0; n < 21; n++) {
        double largest = 0;
        for (ptrdiff_t c = 0; c < 37; c++)
            if (fabs((double)w[n * 37 + c]) > largest)
                largest = fabs((double)w[n * 37 + c]);
        for (ptrdiff_t c = 0; c < 37; c++)
            CHECK(fabs((double)y[c * 21 + n] - (double)w[n * 37 + c]) <= largest / 127 * 0.50001,
                  "weight (%td,%td) is %g, stored as %g", n, c, (double)w[n * 37 + c],
                  (double)y[c * 21 + n]);
    }
    case_done(&l);
}

static void bytes_follow_the_type(void)
{
    size_t bytes[4];
    for (int t = 0; t < 4; t++) {
        spec s = plain_spec(1, 512, 512);
        s.stored = stored_types[t];
        linear_case l = case_of(&s);
        bytes[t] = mha_linear_bytes(l.linear);
        case_done(&l);
    }
    CHECK(bytes[0] >= 512 * 512 * 4 && bytes[0] < 512 * 512 * 4 + 8192, "f32: %zu", bytes[0]);
    CHECK(bytes[1] == bytes[2] && bytes[1] < bytes[0] / 2 + 8192, "f16: %zu", bytes[1]);
    CHECK(bytes[3] < bytes[0] / 4 + 8192, "i8: %zu", bytes[3]);
    CHECK(mha_linear_bytes(NULL) == 0, "NULL");
}

/* The caller's weights may go once they are packed. */
static void weights_are_copied(void)
{
    for (int t = 0; t < 4; t++) {
        spec s = plain_spec(9, 65, 40);
        s.stored = stored_types[t];
        s.bias = true;
        linear_case l = case_of(&s);
        run_case(&l, NULL);
        unsigned char *const kept = malloc(l.y.size);
        memcpy(kept, l.y.data, l.y.size);
        guard_free(&l.weight);
        guard_free(&l.bias);
        run_case(&l, NULL);
        CHECK(memcmp(kept, l.y.data, l.y.size) == 0, "other bits without the caller's weights");
        free(kept);
        case_done(&l);
    }
}

/* A fused matrix, cut by mha_matrix_from(), gives what it gives as a whole. */
static void parts_of_a_fused_matrix(void)
{
    for (int layout = 0; layout < 2; layout++)
        for (int t = 0; t < 3; t++) {
            spec s = plain_spec(4, 33, 60);
            s.in_out = layout;
            s.weight_type = float_types[t];
            s.bias = false;
            linear_case l = case_of(&s);
            run_case(&l, NULL);
            mha_linear_config config = l.config;
            config.weight = mha_matrix_from(config.weight, 20);
            config.outputs = 23;
            mha_linear *part = NULL;
            float y[4 * 23];
            CHECK(mha_linear_create(&part, &config) == MHA_OK, "part");
            CHECK(mha_linear_run(part, 4, l.x.data, MHA_F32, l.x_stride, y, MHA_F32, 23, NULL, 0,
                                 NULL) == MHA_OK,
                  "run");
            for (ptrdiff_t i = 0; i < 4; i++)
                CHECK(memcmp(y + i * 23, (float *)l.y.data + i * l.y_stride + 20, 23 * 4) == 0,
                      "layout %d type %d row %td", layout, t, i);
            mha_linear_free(part);
            case_done(&l);
        }
}

/* ----------------------------------------------------------------------- bits ---- */

/* Row i of a case, alone and with other strides, must have the bits it has among the others. */
static void check_row_alone(const linear_case *l, ptrdiff_t i, ptrdiff_t count, mha_pool *pool)
{
    const spec *const s = &l->s;
    const size_t element = mha_dtype_size(s->y_type);
    const ptrdiff_t stride = s->outputs + 7;
    char *const y = malloc((size_t)(count * stride) * element);
    const char *const x =
        (const char *)l->x.data + i * l->x_stride * (ptrdiff_t)mha_dtype_size(s->x_type);
    const mha_status status = mha_linear_run(l->linear, count, x, s->x_type, l->x_stride, y,
                                             s->y_type, stride, NULL, 0, pool);
    CHECK(status == MHA_OK, "%s", mha_status_string(status));
    for (ptrdiff_t r = 0; r < count; r++)
        CHECK(memcmp(y + r * stride * (ptrdiff_t)element,
                     (char *)l->y.data + (i + r) * l->y_stride * (ptrdiff_t)element,
                     (size_t)s->outputs * element) == 0,
              "%s: row %td differs in a call of %td rows", name_of(s), i + r, count);
    free(y);
}

static void rows_do_not_know_each_other(void)
{
    static const ptrdiff_t counts[] = {1, 2, 3, 5, 6, 7, 11, 12, 13, 14, 24, 25, 100, 193};
    test_random random = {test_seed(4713)};
    for (int64_t n = 0; n < test_effort(40); n++) {
        spec s = plain_spec(200, 1 + (ptrdiff_t)test_random_below(&random, 600),
                            1 + (ptrdiff_t)test_random_below(&random, 100));
        s.stored = stored_types[n % 4];
        s.x_type = float_types[n / 4 % 3];
        s.y_type = float_types[n / 12 % 3];
        s.seed = test_random_u64(&random);
        linear_case l = case_of(&s);
        run_case(&l, NULL);
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            const ptrdiff_t first = (ptrdiff_t)test_random_below(&random, 200 - counts[k] + 1);
            check_row_alone(&l, first, counts[k], NULL);
        }
        case_done(&l);
    }
}

static void threads_do_not_matter(void)
{
    static const int threads[] = {1, 2, 3, 7};
    for (int t = 0; t < 4; t++) {
        mha_pool *pool = NULL;
        CHECK(mha_pool_create(&pool, threads[t]) == MHA_OK, "pool of %d", threads[t]);
        for (int n = 0; n < 24; n++) {
            static const ptrdiff_t rows[] = {1, 5, 12, 40, 193, 400};
            spec s = plain_spec(rows[n % 6], 260 + n, n % 5 == 4 ? 1030 : 90 + n);
            s.stored = stored_types[n / 6];
            linear_case l = case_of(&s);
            run_case(&l, pool);
            check_case(&l, 2);
            check_row_alone(&l, 0, s.rows, NULL);
            case_done(&l);
        }
        mha_pool_free(pool);
    }
}

/* --------------------------------------------------------------- NaN, infinity ---- */

static void damage_stays_where_it_is(void)
{
    for (int t = 0; t < 4; t++)
        for (ptrdiff_t rows = 3; rows <= 33; rows += 30) {
            spec s = plain_spec(rows, 67, 35);
            s.stored = stored_types[t];
            s.x_gap = s.y_gap = 0;
            linear_case l = case_of(&s);
            run_case(&l, NULL);
            float *const x = malloc(l.x.size), *const y = malloc(l.y.size);
            memcpy(x, l.x.data, l.x.size);
            x[1 * 67 + 66] = NAN;
            x[2 * 67 + 3] = INFINITY;
            CHECK(mha_linear_run(l.linear, rows, x, MHA_F32, 67, y, MHA_F32, 35, NULL, 0, NULL) ==
                      MHA_OK,
                  "run");
            for (ptrdiff_t i = 0; i < rows * 35; i++) {
                const ptrdiff_t row = i / 35;
                if (row == 1)
                    CHECK(isnan(y[i]), "stored %d: NaN became %g", t, (double)y[i]);
                else if (row == 2) /* i8 may have a weight of 0: infinity times that is NaN */
                    CHECK(!isfinite(y[i]), "stored %d: infinity became %g", t, (double)y[i]);
                else
                    CHECK(memcmp(&y[i], (float *)l.y.data + i, 4) == 0,
                          "stored %d: row %td changed", t, row);
            }
            free(x);
            free(y);
            case_done(&l);
        }
}

static void damaged_weights_show(void)
{
    for (int t = 0; t < 4; t++)
        for (int infinite = 0; infinite < 2; infinite++) {
            spec s = plain_spec(14, 20, 9);
            s.stored = stored_types[t];
            s.in_out = false;
            linear_case l = case_of(&s);
            run_case(&l, NULL);
            float *const before = malloc(l.y.size);
            memcpy(before, l.y.data, l.y.size);
            ((float *)l.weight.data)[4 * 20 + 7] = infinite ? INFINITY : NAN;
            mha_linear_free(l.linear);
            CHECK(mha_linear_create(&l.linear, &l.config) == MHA_OK, "create");
            run_case(&l, NULL);
            for (ptrdiff_t i = 0; i < 14; i++)
                for (ptrdiff_t n = 0; n < 9; n++) {
                    const float *const y = (float *)l.y.data + i * l.y_stride + n;
                    if (n == 4)
                        CHECK(!isfinite(*y), "stored %d: %g", t, (double)*y);
                    else
                        CHECK(memcmp(y, before + i * l.y_stride + n, 4) == 0, "stored %d", t);
                }
            free(before);
            case_done(&l);
        }
}

/* Numbers too large for the output become infinite, as conversion says. */
static void narrow_outputs_overflow(void)
{
    const float w[2] = {60000, -60000}, x[2] = {60000, 1};
    const mha_linear_config config = {.size = sizeof config,
                                      .inputs = 1,
                                      .outputs = 2,
                                      .weight = mha_matrix_out_in(w, MHA_F32, 1)};
    mha_linear *linear = NULL;
    uint16_t y[4];
    CHECK(mha_linear_create(&linear, &config) == MHA_OK, "create");
    CHECK(mha_linear_run(linear, 2, x, MHA_F32, 1, y, MHA_F16, 2, NULL, 0, NULL) == MHA_OK, "run");
    CHECK(number_get(MHA_F16, y, 0) == INFINITY && number_get(MHA_F16, y, 1) == -INFINITY,
          "60000 * 60000 is %g", number_get(MHA_F16, y, 0));
    CHECK(number_get(MHA_F16, y, 2) == 60000, "%g", number_get(MHA_F16, y, 2));
    mha_linear_free(linear);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(every_number_of_rows);
    RUN(every_number_of_inputs);
    RUN(every_number_of_outputs);
    RUN(edges_together);
    RUN(nothing_is_legal);
    RUN(no_inputs_give_the_bias);
    RUN(every_type);
    RUN(i8_is_exact_for_whole_steps);
    RUN(i8_takes_the_nearest_step);
    RUN(bytes_follow_the_type);
    RUN(weights_are_copied);
    RUN(parts_of_a_fused_matrix);
    RUN(rows_do_not_know_each_other);
    RUN(threads_do_not_matter);
    RUN(damage_stays_where_it_is);
    RUN(damaged_weights_show);
    RUN(narrow_outputs_overflow);
    return test_end();
}
