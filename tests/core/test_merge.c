/* SPDX-License-Identifier: MIT */
/*
 * Partial results joined. First as a law: the keys cut anywhere, attended to in parts and merged
 * are the keys attended to at once. Then mha_merge() alone, against the formula in double. Wrong
 * arguments are in test_merge_errors.c.
 */
#include "support/guard.h"
#include "support/problems.h"
#include "support/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------ split calls ---- */

enum { B = 2, H = 4, G = 2, MOST_PARTS = 3 };

/* A tensor with its type and the number of its elements, gaps included. */
typedef struct numbers {
    tensor t;
    mha_dtype type;
    ptrdiff_t count;
} numbers;

/* A call over all keys, and the parts of it. */
typedef struct split {
    attention_call whole;
    numbers q, k, v, o[MOST_PARTS], lse[MOST_PARTS];
    int64_t lengths[B];
    int parts;
    ptrdiff_t cuts[MOST_PARTS + 1]; /* part n has keys [cuts[n], cuts[n + 1]) */
} split;

static numbers new_numbers(mha_dtype type, ptrdiff_t heads, ptrdiff_t rows, ptrdiff_t width,
                           const tensor_layout *layout)
{
    numbers x = {.type = type};
    const ptrdiff_t n[4] = {B, heads, rows, width};
    if (!tensor_lay_out(&x.t, mha_dtype_size(type), n, layout))
        abort();
    x.count = (ptrdiff_t)(x.t.bytes / x.t.element);
    x.t.memory = malloc(x.t.bytes + 1);
    if (!x.t.memory)
        abort();
    memset(x.t.memory, 0xff, x.t.bytes);
    return x;
}

static void free_numbers(numbers *x)
{
    free(x->t.memory);
}

/* Sets every element, gaps too. */
static void set_all(const numbers *x, double value)
{
    for (ptrdiff_t n = 0; n < x->count; n++)
        number_set(x->type, x->t.memory, n, value);
}

static void fill(const numbers *x, test_random *random, double size)
{
    for (ptrdiff_t n = 0; n < x->count; n++)
        number_set(x->type, x->t.memory, n, size * (double)test_random_normal(random));
}

static double get(const numbers *x, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t c)
{
    return number_get(x->type, tensor_at(&x->t, b, h, i, c), 0);
}

static void set(const numbers *x, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t c, double value)
{
    number_set(x->type, tensor_at(&x->t, b, h, i, c), 0, value);
}

/* The layout of outputs changes with the seed; so do causal, ragged keys and the cuts. */
static split split_new(mha_dtype type, int parts, uint64_t seed)
{
    test_random random = {seed};
    const ptrdiff_t L = 1 + (ptrdiff_t)test_random_below(&random, 9);
    const ptrdiff_t S = (ptrdiff_t)test_random_below(&random, seed % 7 ? 60 : 2000);
    const ptrdiff_t D = 1 + (ptrdiff_t)test_random_below(&random, 40);
    const ptrdiff_t Dv = 1 + (ptrdiff_t)test_random_below(&random, 40);
    const mha_dtype lse_type = type == MHA_F64 ? MHA_F64 : MHA_F32;
    const tensor_layout layout = {.order = seed % 2,
                                  .lead = 3,
                                  .gap = {(ptrdiff_t)seed % 3, 1, 2},
                                  .flip = (seed % 4 == 1 ? 2u : 0u) | (seed % 8 == 2 ? 4u : 0u)};
    split s = {.parts = parts};
    s.whole.shape = (mha_shape){B, H, G, L, S, D, Dv, type, type, type, type};
    s.q = new_numbers(type, H, L, D, NULL);
    s.k = new_numbers(type, G, S + 1, D, NULL);
    s.v = new_numbers(type, G, S + 1, Dv, NULL);
    fill(&s.q, &random, seed % 5 ? 1 : 6);
    fill(&s.k, &random, 1);
    fill(&s.v, &random, 1);
    for (int n = 0; n < parts; n++) {
        s.o[n] = new_numbers(type, H, L, Dv, n % 2 ? NULL : &layout);
        s.lse[n] = new_numbers(lse_type, H, L, 1, n % 2 ? NULL : &layout);
        s.cuts[n] = n == 0 ? 0 : s.cuts[n - 1] + test_random_below(&random, S + 1 - s.cuts[n - 1]);
    }
    s.cuts[parts] = S;
    for (int b = 0; b < B; b++)
        s.lengths[b] = seed % 3 ? S : test_random_below(&random, S + 1);
    s.whole.options = (mha_options){.size = sizeof(mha_options),
                                    .flags = seed % 2 ? MHA_CAUSAL : 0,
                                    .position = MHA_POSITION_OFFSET,
                                    .offset = S / 2};
    s.whole.q = tensor_view(&s.q.t);
    s.whole.k = tensor_view(&s.k.t);
    s.whole.v = tensor_view(&s.v.t);
    s.whole.o = tensor_out(&s.o[0].t);
    return s;
}

static void split_free(split *s)
{
    free_numbers(&s->q);
    free_numbers(&s->k);
    free_numbers(&s->v);
    for (int n = 0; n < s->parts; n++) {
        free_numbers(&s->o[n]);
        free_numbers(&s->lse[n]);
    }
}

static mha_view rows_from(const numbers *x, ptrdiff_t row)
{
    mha_view view = tensor_view(&x->t);
    view.data = (const char *)view.data + row * view.sl * (ptrdiff_t)mha_dtype_size(x->type);
    return view;
}

/* Attention over the keys of one part only. */
static void run_part(const split *s, int n)
{
    const ptrdiff_t first = s->cuts[n], count = s->cuts[n + 1] - first;
    mha_shape shape = s->whole.shape;
    mha_options options = s->whole.options;
    int64_t lengths[B];
    for (int b = 0; b < B; b++) {
        const ptrdiff_t left = (ptrdiff_t)s->lengths[b] - first;
        lengths[b] = left < 0 ? 0 : left > count ? count : left;
    }
    shape.S = count;
    options.offset -= first;
    options.k_lengths = lengths;
    options.lse = tensor_out(&s->lse[n].t);
    const mha_status status =
        mha_attention(&shape, s->whole.q, rows_from(&s->k, first), rows_from(&s->v, first),
                      tensor_out(&s->o[n].t), &options, NULL);
    CHECK(status == MHA_OK, "part %d: %s", n, mha_status_string(status));
}

static void merge_into(const split *s, int to, int from)
{
    const mha_status status =
        mha_merge(&s->whole.shape, tensor_out(&s->o[to].t), tensor_out(&s->lse[to].t),
                  tensor_view(&s->o[from].t), tensor_view(&s->lse[from].t));
    CHECK(status == MHA_OK, "%s", mha_status_string(status));
}

/* What lies in part `n` must be what the oracle says of all the keys. */
static void expect_whole(const split *s, int n, double limit, const char *law)
{
    attention_call p = s->whole;
    comparison result = {.limit = limit};
    p.options.k_lengths = s->lengths;
    p.o = tensor_out(&s->o[n].t);
    p.options.lse = tensor_out(&s->lse[n].t);
    compare_call(&p, &result);
    CHECK(result.failures == 0, "%s: %s", law, result.first);
}

static void parts_make_the_whole(void)
{
    const uint64_t seed = test_seed(4000);
    for (uint64_t n = 0; n < (uint64_t)test_effort(400); n++) {
        split s = split_new(n % 4 == 3 ? MHA_F64 : MHA_F32, 2, seed + n);
        run_part(&s, 0);
        run_part(&s, 1);
        merge_into(&s, 0, 1);
        expect_whole(&s, 0, 16, "two parts");
        split_free(&s);
    }
}

/* In whichever order. */
static void three_parts_make_the_whole(void)
{
    const uint64_t seed = test_seed(5000);
    for (uint64_t n = 0; n < (uint64_t)test_effort(150); n++) {
        split s = split_new(n % 4 == 3 ? MHA_F64 : MHA_F32, 3, seed + n);
        const int order = (int)(n % 3);
        for (int part = 0; part < 3; part++)
            run_part(&s, part);
        merge_into(&s, order, (order + 1) % 3);
        merge_into(&s, order, (order + 2) % 3);
        expect_whole(&s, order, 24, "three parts");
        split_free(&s);
    }
}

/* ------------------------------------------------------------ the formula ---- */

/* Two parts of the same shape, filled with whatever a test likes. */
typedef struct two {
    mha_shape shape;
    numbers o[2], lse[2];
} two;

static two two_new(mha_dtype type, ptrdiff_t L, ptrdiff_t Dv, const tensor_layout *first,
                   const tensor_layout *second, uint64_t seed)
{
    test_random random = {seed};
    two t = {.shape = {.B = B, .H = H, .L = L, .Dv = Dv, .o_type = type}};
    for (int n = 0; n < 2; n++) {
        const tensor_layout *const layout = n ? second : first;
        t.o[n] = new_numbers(type, H, L, Dv, layout);
        t.lse[n] = new_numbers(type == MHA_F64 ? MHA_F64 : MHA_F32, H, L, 1, layout);
        fill(&t.o[n], &random, 2);
        fill(&t.lse[n], &random, 4);
    }
    return t;
}

static void two_free(two *t)
{
    for (int n = 0; n < 2; n++) {
        free_numbers(&t->o[n]);
        free_numbers(&t->lse[n]);
    }
}

static mha_status two_merge(const two *t)
{
    return mha_merge(&t->shape, tensor_out(&t->o[0].t), tensor_out(&t->lse[0].t),
                     tensor_view(&t->o[1].t), tensor_view(&t->lse[1].t));
}

/* Log-sum-exps of all rows of a part. */
static void set_lse(const two *t, int n, double value)
{
    set_all(&t->lse[n], value);
}

static void set_outputs(const two *t, int n, double value)
{
    set_all(&t->o[n], value);
}

static numbers copy_of(const numbers *x)
{
    numbers copy = *x;
    copy.t.memory = malloc(x->t.bytes + 1);
    if (!copy.t.memory)
        abort();
    memcpy(copy.t.memory, x->t.memory, x->t.bytes);
    return copy;
}

static void expect_row(const two *t, const numbers *o, const numbers *lse, ptrdiff_t b, ptrdiff_t h,
                       ptrdiff_t i)
{
    const mha_dtype type = t->shape.o_type, work = t->lse[0].type;
    const double u = work == MHA_F64 ? 0x1p-53 : 0x1p-24;
    const double first = get(lse, b, h, i, 0), second = get(&t->lse[1], b, h, i, 0);
    const double w = 1 / (1 + exp(second - first)), w2 = 1 / (1 + exp(first - second));
    const double m = fmax(first, second), sum = m + log1p(exp(fmin(first, second) - m));
    const double got = get(&t->lse[0], b, h, i, 0);
    CHECK(compare_error(work, work, got, sum, u * fabs(sum) + u) <= 4, "lse is %.17g, not %.17g",
          got, sum);
    for (ptrdiff_t c = 0; c < t->shape.Dv; c++) {
        const double x = w * get(o, b, h, i, c), y = w2 * get(&t->o[1], b, h, i, c);
        const double o_got = get(&t->o[0], b, h, i, c);
        const double error = compare_error(type, work, o_got, x + y, u * (fabs(x) + fabs(y)));
        CHECK(error <= 8, "type %d, (%td, %td, %td, %td) is %.17g, not %.17g: %g units", (int)type,
              b, h, i, c, o_got, x + y, error);
    }
}

static const tensor_layout layouts[] = {
    {0},
    {.order = 1},
    {.gap = {3, 5, 7}, .lead = 1},
    {.flip = 7, .order = 4},
    {.order = 1, .flip = 2, .gap = {1, 0, 0}},
};

enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

static void every_type_and_layout_follows_the_formula(void)
{
    static const mha_dtype types[] = {MHA_F32, MHA_F16, MHA_BF16, MHA_F64};
    for (int n = 0; n < 4 * LAYOUTS * LAYOUTS; n++) {
        const ptrdiff_t L = 1 + n % 5, Dv = n % 7 ? 1 + n % 37 : MHA_MAX_HEAD_WIDTH;
        two t = two_new(types[n % 4], L, Dv, &layouts[n / 4 % LAYOUTS], &layouts[n / 4 / LAYOUTS],
                        test_seed(6000) + (uint64_t)n);
        numbers o = copy_of(&t.o[0]), lse = copy_of(&t.lse[0]);
        const mha_status status = two_merge(&t);
        CHECK(status == MHA_OK, "%s", mha_status_string(status));
        for (ptrdiff_t r = 0; r < B * H * L; r++)
            expect_row(&t, &o, &lse, r / L / H, r / L % H, r % L);
        free_numbers(&o);
        free_numbers(&lse);
        two_free(&t);
    }
}

/* A row alone, in another layout, has the bits it has among others. */
static void bits_do_not_depend_on_the_layout(void)
{
    enum { L = 5, Dv = 19 };
    for (int n = 0; n < LAYOUTS; n++) {
        two plain = two_new(MHA_F32, L, Dv, NULL, NULL, 1);
        two other = two_new(MHA_F32, L, Dv, &layouts[n], &layouts[LAYOUTS - 1 - n], 1);
        for (ptrdiff_t r = 0; r < B * H * L; r++)
            for (int part = 0; part < 2; part++) {
                const ptrdiff_t b = r / L / H, h = r / L % H, i = r % L;
                set(&other.lse[part], b, h, i, 0, get(&plain.lse[part], b, h, i, 0));
                for (ptrdiff_t c = 0; c < Dv; c++)
                    set(&other.o[part], b, h, i, c, get(&plain.o[part], b, h, i, c));
            }
        CHECK(two_merge(&plain) == MHA_OK && two_merge(&other) == MHA_OK, "layout %d fails", n);
        for (ptrdiff_t e = 0; e < B * H * L * Dv; e++) {
            const ptrdiff_t r = e / Dv, b = r / L / H, h = r / L % H, i = r % L;
            CHECK(get(&plain.o[0], b, h, i, e % Dv) == get(&other.o[0], b, h, i, e % Dv) &&
                      get(&plain.lse[0], b, h, i, 0) == get(&other.lse[0], b, h, i, 0),
                  "layout %d: element %td differs", n, e);
        }
        two_free(&plain);
        two_free(&other);
    }
}

/* ------------------------------------------------------------ empty parts ---- */

/* Every output and log-sum-exp of part 0. */
static void expect_all(const two *t, double o, double lse, const char *what)
{
    const ptrdiff_t L = t->shape.L;
    for (ptrdiff_t r = 0; r < B * H * L; r++) {
        const double got = get(&t->lse[0], r / L / H, r / L % H, r % L, 0);
        CHECK(compare_error(t->lse[0].type, t->lse[0].type, got, lse, 0) == 0,
              "%s: lse is %g, not %g", what, got, lse);
        for (ptrdiff_t c = 0; c < t->shape.Dv; c++) {
            const double x = get(&t->o[0], r / L / H, r / L % H, r % L, c);
            CHECK(compare_error(t->shape.o_type, t->shape.o_type, x, o, 0) == 0,
                  "%s: output is %g, not %g", what, x, o);
        }
    }
}

/* Merge parts whose outputs and log-sum-exps are all the same. */
static void expect_of(mha_dtype type, const double o[2], const double lse[2], double want,
                      double want_lse, const char *what)
{
    two t = two_new(type, 3, 11, &layouts[2], NULL, 7);
    for (int n = 0; n < 2; n++) {
        set_outputs(&t, n, o[n]);
        set_lse(&t, n, lse[n]);
    }
    const mha_status status = two_merge(&t);
    CHECK(status == MHA_OK, "%s", mha_status_string(status));
    expect_all(&t, want, want_lse, what);
    two_free(&t);
}

static void unusual_parts(void)
{
    static const mha_dtype types[] = {MHA_F32, MHA_F16, MHA_BF16, MHA_F64};
    static const struct {
        const char *what;
        double o[2], lse[2], want, want_lse;
    } cases[] = {
        {"the second part is empty", {2, 0}, {0.5, -INFINITY}, 2, 0.5},
        {"the second part is empty and holds NaN", {2, NAN}, {0.5, -INFINITY}, 2, 0.5},
        {"the first part is empty and holds NaN", {NAN, 2}, {-INFINITY, 0.5}, 2, 0.5},
        {"the first part is empty and holds inf", {INFINITY, -2}, {-INFINITY, -8}, -2, -8},
        {"both are empty", {NAN, INFINITY}, {-INFINITY, -INFINITY}, 0, -INFINITY},
        {"far apart", {2, 5}, {-3e38, 3e38}, 5, 3e38},
        {"far apart, the other way", {2, 5}, {1e4, -1e4}, 2, 1e4},
        {"equal", {2, 5}, {0, 0}, 3.5, 0.6931471805599453},
        {"an attended NaN", {2, NAN}, {0, 0}, NAN, 0.6931471805599453},
        {"an attended NaN of no weight", {NAN, 2}, {-1e4, 0}, NAN, 0},
        {"an attended infinity", {-INFINITY, 2}, {0, 0}, -INFINITY, 0.6931471805599453},
        {"a NaN for a log-sum-exp", {2, 5}, {NAN, 1}, NAN, NAN},
        {"a NaN for the other log-sum-exp", {2, 5}, {1, NAN}, NAN, NAN},
        {"a NaN and infinity", {2, 5}, {INFINITY, NAN}, NAN, NAN},
        {"a NaN beside an empty part", {2, 5}, {NAN, -INFINITY}, 2, NAN},
        {"infinity outweighs", {2, 5}, {1, INFINITY}, 5, INFINITY},
        {"infinity outweighs, the other way", {2, 5}, {INFINITY, 3e38}, 2, INFINITY},
        {"infinity beside an empty part", {NAN, 5}, {-INFINITY, INFINITY}, 5, INFINITY},
        {"two infinities", {2, 2}, {INFINITY, INFINITY}, NAN, INFINITY},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++)
        for (int type = 0; type < 4; type++) {
            const mha_dtype lse_type = types[type] == MHA_F64 ? MHA_F64 : MHA_F32;
            expect_of(types[type], cases[n].o, cases[n].lse, cases[n].want,
                      number_round(lse_type, cases[n].want_lse), cases[n].what);
        }
}

/* What f32 cannot hold, f64 merges all the same. */
static void f64_has_its_own_range(void)
{
    expect_of(MHA_F64, (double[]){1e300, 3e300}, (double[]){1e308, 1e308}, 2e300, 1e308,
              "huge f64");
    expect_of(MHA_F64, (double[]){1, 3}, (double[]){-1.7e308, 1.7e308}, 3, 1.7e308,
              "f64 far apart");
}

/* ------------------------------------------------------------------ memory ---- */

/* Rows are read and written up to their last element and no further. */
static void memory_outside_the_rows_is_left_alone(void)
{
    enum { L = 3, ROWS = B * H * L };
    for (ptrdiff_t Dv = 1; Dv < 40; Dv++)
        for (int side = 0; side < 2; side++) {
            const size_t bytes = (size_t)(ROWS * Dv) * sizeof(float);
            guard_buffer o = guard_new(bytes, (guard_side)side);
            guard_buffer o2 = guard_new(bytes, (guard_side)side);
            guard_buffer lse = guard_new(ROWS * sizeof(float), (guard_side)side);
            guard_buffer lse2 = guard_new(ROWS * sizeof(float), (guard_side)side);
            const mha_shape shape = {.B = B, .H = H, .L = L, .Dv = Dv};
            guard_seal(&o2);
            guard_seal(&lse2);
            const mha_status status =
                mha_merge(&shape, mha_out_bhld(o.data, H, L, Dv), mha_out_bhld(lse.data, H, L, 1),
                          mha_view_bhld(o2.data, H, L, Dv), mha_view_bhld(lse2.data, H, L, 1));
            CHECK(status == MHA_OK && guard_intact(&o) && guard_intact(&lse), "Dv %td: %s", Dv,
                  mha_status_string(status));
            guard_free(&o);
            guard_free(&o2);
            guard_free(&lse);
            guard_free(&lse2);
        }
}

static void nothing_to_merge_touches_nothing(void)
{
    static const mha_shape shapes[] = {{.B = 0, .H = 2, .L = 3, .Dv = 4},
                                       {.B = 2, .H = 0, .L = 3, .Dv = 4},
                                       {.B = 2, .H = 2, .L = 0, .Dv = 4},
                                       {.B = 2, .H = 2, .L = 3}};
    for (int n = 0; n < 4; n++) {
        const mha_status status =
            mha_merge(&shapes[n], (mha_out){0}, (mha_out){0}, (mha_view){0}, (mha_view){0});
        CHECK(status == MHA_OK, "shape %d: %s", n, mha_status_string(status));
    }
}

/* The shape of the attention calls serves here too: Dv = 0 means D. */
static void value_width_has_its_default(void)
{
    float o[4] = {1, 1, 1, 1}, lse = 0;
    const float o2[4] = {3, 3, 3, 3}, lse2 = 0;
    const mha_shape shape = {.B = 1, .H = 1, .G = 1, .L = 1, .S = 9, .D = 3};
    const mha_status status =
        mha_merge(&shape, mha_out_bhld(o, 1, 1, 3), mha_out_bhld(&lse, 1, 1, 1),
                  mha_view_bhld(o2, 1, 1, 3), mha_view_bhld(&lse2, 1, 1, 1));
    CHECK(status == MHA_OK && o[0] == 2 && o[2] == 2 && o[3] == 1, "%s: %g %g %g %g",
          mha_status_string(status), (double)o[0], (double)o[1], (double)o[2], (double)o[3]);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(parts_make_the_whole);
    RUN(three_parts_make_the_whole);
    RUN(every_type_and_layout_follows_the_formula);
    RUN(bits_do_not_depend_on_the_layout);
    RUN(unusual_parts);
    RUN(f64_has_its_own_range);
    RUN(memory_outside_the_rows_is_left_alone);
    RUN(nothing_to_merge_touches_nothing);
    RUN(value_width_has_its_default);
    return test_end();
}
