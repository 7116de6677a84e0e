/* SPDX-License-Identifier: MIT */
/* The judge is judged first: the comparator accepts what the oracle says and nothing else. */
#include "support/problems.h"

#include <math.h>
#include <stdlib.h>

/* Write into the outputs of the case what the oracle says. */
static void answer(problem *c)
{
    const attention_call *const p = &c->call;
    oracle_row row;
    oracle_row_init(&row, p);
    problem_reset(c);
    for (ptrdiff_t b = 0; b < p->shape.B; b++) {
        for (ptrdiff_t n = 0; n < p->shape.H * p->shape.L; n++) {
            const ptrdiff_t h = n / p->shape.L, i = n % p->shape.L;
            oracle_row_compute(&row, p, b, h, i);
            for (ptrdiff_t j = 0; j < call_value_width(p); j++)
                problem_set(c, TENSOR_O, b, h, i, j, row.o[j]);
            for (ptrdiff_t j = 0; j < p->shape.S; j++)
                problem_set(c, TENSOR_WEIGHTS, b, h, i, j, row.weights[j]);
            problem_set(c, TENSOR_LSE, b, h, i, 0, row.lse);
        }
    }
    oracle_row_free(&row);
}

/* Row 0 of every head attends to nothing; some weights of every other row are masked. */
static problem *small_case(mha_dtype type)
{
    const problem_spec spec = {
        .shape = {2, 2, 1, 5, 5, 8, 0, type, type, type, type},
        .features = FEATURE_CAUSAL | FEATURE_LSE | FEATURE_PLAIN_WEIGHTS,
        .seed = 7,
    };
    problem *const c = problem_new(&spec);
    c->call.options.position = MHA_POSITION_OFFSET;
    c->call.options.offset = -1;
    answer(c);
    return c;
}

static ptrdiff_t failures(const problem *c)
{
    comparison result = {.limit = 8};
    compare_call(&c->call, &result);
    return result.failures;
}

static void accepts_the_oracle(void)
{
    const mha_dtype types[] = {MHA_F32, MHA_F16, MHA_BF16, MHA_F64};
    for (int n = 0; n < 4; n++) {
        problem *const c = small_case(types[n]);
        comparison result = {.limit = 8};
        compare_call(&c->call, &result);
        CHECK(result.failures == 0, "type %d: %s", n, result.first);
        CHECK(result.worst < 1, "type %d: rounding alone is E %g", n, result.worst);
        problem_delete(c);
    }
}

/* Put `wrong` in the place of one element, and expect exactly one failure. */
static void expect_failure(tensor_id id, ptrdiff_t i, ptrdiff_t j, double wrong, const char *what)
{
    const mha_dtype types[] = {MHA_F32, MHA_F16, MHA_BF16, MHA_F64};
    for (int n = 0; n < 4; n++) {
        problem *const c = small_case(types[n]);
        problem_set(c, id, 1, 1, i, j, wrong);
        CHECK(failures(c) == 1, "type %d: %s: %td failures", n, what, failures(c));
        problem_delete(c);
    }
}

static void rejects_nan_and_infinity(void)
{
    expect_failure(TENSOR_O, 3, 2, NAN, "NaN for a number");
    expect_failure(TENSOR_O, 3, 2, INFINITY, "inf for a number");
    expect_failure(TENSOR_O, 0, 2, NAN, "NaN for an empty row");
    expect_failure(TENSOR_LSE, 3, 0, NAN, "NaN for a log-sum-exp");
    expect_failure(TENSOR_LSE, 3, 0, -INFINITY, "-inf for a log-sum-exp");
    expect_failure(TENSOR_WEIGHTS, 3, 0, NAN, "NaN for a weight");
    expect_failure(TENSOR_WEIGHTS, 3, 4, NAN, "NaN for a masked weight");
}

static void rejects_zero_for_minus_infinity(void)
{
    expect_failure(TENSOR_LSE, 0, 0, 0, "0 for -inf");
    expect_failure(TENSOR_LSE, 0, 0, INFINITY, "inf for -inf");
    expect_failure(TENSOR_LSE, 0, 0, -3.4e38, "a very negative number for -inf");
}

static void rejects_anything_but_zero(void)
{
    expect_failure(TENSOR_O, 0, 0, 1e-6, "almost 0 for an empty row");
    expect_failure(TENSOR_WEIGHTS, 0, 1, 1e-6, "a weight in an empty row");
    expect_failure(TENSOR_WEIGHTS, 2, 3, 1e-6, "a weight for a masked key");
}

/* One result is moved by half of what the comparator allows, and by half more than that. */
static void expect_limit(problem *c, tensor_id id, const ptrdiff_t at[4], double size)
{
    const bool wide = c->call.shape.q_type == MHA_F64;
    const double allowed = wide ? 64 * 0x1p-53 * size : 8 * 0x1p-24 * size;
    const ptrdiff_t b = at[0], h = at[1], i = at[2], j = at[3];
    const double right = problem_get(c, id, b, h, i, j);
    problem_set(c, id, b, h, i, j, right + 0.5 * allowed);
    CHECK(failures(c) == 0, "%s: output %d of row %td at %td: half the limit is refused",
          wide ? "f64" : "f32", id - TENSOR_O, i, j);
    problem_set(c, id, b, h, i, j, right + 1.5 * allowed);
    CHECK(failures(c) == 1, "%s: output %d of row %td at %td: 1.5 times the limit is accepted",
          wide ? "f64" : "f32", id - TENSOR_O, i, j);
    problem_set(c, id, b, h, i, j, right);
}

/* A sign flip, and an error slightly above the limit, must be seen in every element. Row i attends
 * to i keys. */
static void expect_limits_everywhere(mha_dtype type)
{
    problem *const c = small_case(type);
    oracle_row row;
    oracle_row_init(&row, &c->call);
    for (ptrdiff_t n = 0; n < 2 * 2 * 4; n++) {
        const ptrdiff_t b = n / 8, h = n / 4 % 2, i = 1 + n % 4;
        oracle_row_compute(&row, &c->call, b, h, i);
        for (ptrdiff_t j = 0; j < 8; j++) {
            const double right = problem_get(c, TENSOR_O, b, h, i, j);
            problem_set(c, TENSOR_O, b, h, i, j, -right);
            CHECK(failures(c) == 1, "sign flip of row %td at %td", i, j);
            problem_set(c, TENSOR_O, b, h, i, j, right);
            expect_limit(c, TENSOR_O, (const ptrdiff_t[4]){b, h, i, j}, row.o_size[j]);
        }
        for (ptrdiff_t j = 0; j < i; j++)
            expect_limit(c, TENSOR_WEIGHTS, (const ptrdiff_t[4]){b, h, i, j}, row.weights_size[j]);
        expect_limit(c, TENSOR_LSE, (const ptrdiff_t[4]){b, h, i, 0}, row.lse_size);
    }
    oracle_row_free(&row);
    problem_delete(c);
}

static void rejects_small_errors_anywhere(void)
{
    expect_limits_everywhere(MHA_F32);
    expect_limits_everywhere(MHA_F64);
}

/* Copy row `from` of the output over row `to`. */
static void copy_row(problem *c, ptrdiff_t from, ptrdiff_t to)
{
    for (ptrdiff_t j = 0; j < 8; j++)
        problem_set(c, TENSOR_O, 0, 1, to, j, problem_get(c, TENSOR_O, 0, 1, from, j));
}

static void rejects_a_wrong_row(void)
{
    problem *const c = small_case(MHA_F32);
    copy_row(c, 2, 3);
    CHECK(failures(c) >= 7, "only %td elements of a wrong row seen", failures(c));
    answer(c);
    copy_row(c, 0, 3);
    CHECK(failures(c) == 8, "only %td elements of a row of zeros seen", failures(c));
    problem_delete(c);
}

static void rejects_unwritten_output(void)
{
    problem *const c = small_case(MHA_F32);
    problem_reset(c);
    CHECK(failures(c) == 2 * 2 * 5 * (8 + 1 + 5), "%td failures", failures(c));
    problem_delete(c);
}

static void stores_are_rounded_freely(void)
{
    CHECK(compare_error(MHA_F16, MHA_F32, 1.0, 1.0 + 0x1p-11, 1e-9) == 0, "f16: half a spacing");
    CHECK(compare_error(MHA_F16, MHA_F32, 1.0, 1.0 + 0x1p-10, 1e-9) > 1000, "f16: a whole spacing");
    CHECK(compare_error(MHA_F16, MHA_F32, 1.0, 1.0 - 0x1p-11, 1e-9) > 1000,
          "f16: below a power of two");
    CHECK(compare_error(MHA_BF16, MHA_F32, 1.0, 1.0 + 0x1p-8, 1e-9) == 0, "bf16: half a spacing");
    CHECK(compare_error(MHA_F16, MHA_F32, INFINITY, 65519.99, 1e-3) < 11, "f16: overflow within E");
    CHECK(compare_error(MHA_F16, MHA_F32, INFINITY, 70000.0, 1e-3) == 0, "f16: overflow");
    CHECK(compare_error(MHA_F16, MHA_F32, INFINITY, 65500.0, 1e-3) > 1000, "f16: no overflow");
    CHECK(compare_error(MHA_F16, MHA_F32, 65504.0, 70000.0, 1e-3) > 1000, "f16: missed overflow");
    CHECK(compare_error(MHA_F16, MHA_F32, -INFINITY, 70000.0, 1e-3) == INFINITY,
          "f16: wrong infinity");
    CHECK(compare_error(MHA_F32, MHA_F32, INFINITY, 3e38, 1e30) == INFINITY, "f32: infinity");
    CHECK(compare_error(MHA_F32, MHA_F32, 1.0, INFINITY, 1e30) == INFINITY, "f32: missed infinity");
}

static void errors_are_measured(void)
{
    const double inf = (double)INFINITY, nan = (double)NAN;
    static const struct {
        double got, want, unit, error;
        const char *what;
    } cases[] = {
        {1.0, 1.0, 0.0, 0.0, "equal"},
        {1.5, 1.0, 0.25, 2.0, "twice the unit"},
        {1.0, 0.0, 0.0, (double)INFINITY, "no unit"},
        {0.0, -(double)INFINITY, 1.0, (double)INFINITY, "0 for -inf"},
        {-3e38, -(double)INFINITY, 1.0, (double)INFINITY, "very negative for -inf"},
        {(double)INFINITY, -(double)INFINITY, 1.0, (double)INFINITY, "inf for -inf"},
        {-(double)INFINITY, -(double)INFINITY, 0.0, 0.0, "-inf for -inf"},
        {-(double)INFINITY, 0.0, 1.0, (double)INFINITY, "-inf for 0"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        const double error =
            compare_error(MHA_F32, MHA_F32, cases[n].got, cases[n].want, cases[n].unit);
        CHECK(error == cases[n].error, "%s: E is %g", cases[n].what, error);
    }
    CHECK(compare_error(MHA_F32, MHA_F32, nan, 1.0, 1.0) == inf, "NaN for a number");
    CHECK(compare_error(MHA_F32, MHA_F32, 1.0, nan, 1.0) == inf, "a number for NaN");
    CHECK(compare_error(MHA_F32, MHA_F32, nan, nan, 1.0) == 0.0, "NaN for NaN");
}

static void spacings(void)
{
    CHECK(number_spacing(MHA_F32, 1.0) == 0x1p-23, "f32 at 1");
    CHECK(number_spacing(MHA_F16, 1.0) == 0x1p-10, "f16 at 1");
    CHECK(number_spacing(MHA_F16, -1.99) == 0x1p-10, "f16 at -1.99");
    CHECK(number_spacing(MHA_F16, 0.0) == 0x1p-24, "f16 at 0");
    CHECK(number_spacing(MHA_F16, 1e-6) == 0x1p-24, "f16 subnormal");
    CHECK(number_spacing(MHA_BF16, 4.0) == 0x1p-5, "bf16 at 4");
}

/* Every f16 and bf16 number survives decoding and encoding, and halves go to even. */
static void numbers_round_to_even(void)
{
    const mha_dtype types[] = {MHA_F16, MHA_BF16};
    for (int n = 0; n < 2; n++) {
        for (uint32_t bits = 0; bits < 65536; bits++) {
            const uint16_t in = (uint16_t)bits;
            uint16_t out;
            const double value = number_get(types[n], &in, 0);
            number_set(types[n], &out, 0, value);
            CHECK(in == out || isnan(value), "type %d: %#x becomes %#x", n, in, out);
        }
    }
    CHECK(number_round(MHA_F16, 1 + 0x1p-11) == 1, "f16 tie down");
    CHECK(number_round(MHA_F16, 1 + 0x1.8p-10) == 1 + 0x1p-9, "f16 tie up");
    CHECK(number_round(MHA_F16, 0x1p-25) == 0, "f16 smallest tie");
    CHECK(number_round(MHA_F16, 0x1.1p-25) == 0x1p-24, "f16 above the smallest tie");
    CHECK(number_round(MHA_F16, 65520) == INFINITY, "f16 overflow");
    CHECK(number_round(MHA_F16, 65519.9) == 65504, "f16 largest");
    CHECK(number_round(MHA_BF16, 1 + 0x1p-8) == 1, "bf16 tie down");
    CHECK(number_round(MHA_BF16, -1 - 0x1.8p-7) == -1 - 0x1p-6, "bf16 tie up");
}

/* One row by hand: scores 0 and ln 3, so weights 1/4 and 3/4. */
static void oracle_by_hand(void)
{
    const double q[1] = {1}, k[2] = {0, 1.0986122886681098}, v[2] = {8, 16};
    double o[1];
    const attention_call p = {
        .shape = {1, 1, 1, 1, 2, 1, 1, MHA_F64, MHA_F64, MHA_F64, MHA_F64},
        .q = {q, 1, 1, 1},
        .k = {k, 2, 2, 1},
        .v = {v, 2, 2, 1},
        .o = {o, 1, 1, 1},
        .options = {.size = sizeof(mha_options)},
    };
    oracle_row row;
    oracle_row_init(&row, &p);
    oracle_row_compute(&row, &p, 0, 0, 0);
    CHECK(fabs(row.o[0] - 14) < 1e-14, "o is %.17g", row.o[0]);
    CHECK(fabs(row.lse - log(4)) < 1e-15, "lse is %.17g", row.lse);
    CHECK(fabs(row.weights[0] - 0.25) < 1e-15, "weight is %.17g", row.weights[0]);
    oracle_row_free(&row);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(numbers_round_to_even);
    RUN(errors_are_measured);
    RUN(spacings);
    RUN(oracle_by_hand);
    RUN(stores_are_rounded_freely);
    RUN(accepts_the_oracle);
    RUN(rejects_nan_and_infinity);
    RUN(rejects_zero_for_minus_infinity);
    RUN(rejects_anything_but_zero);
    RUN(rejects_small_errors_anywhere);
    RUN(rejects_a_wrong_row);
    RUN(rejects_unwritten_output);
    return test_end();
}
