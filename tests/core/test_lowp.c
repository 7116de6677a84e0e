/* SPDX-License-Identifier: MIT */
/*
 * f16 and bf16 as storage: all mixtures of types against the oracle, every one of the 65536 values
 * through each of q, k, v and o, and stores that round to nearest even.
 */
#include "support/problems.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { LIMIT = 8, VALUES = 65536 };

static void every_mixture_of_types(void)
{
    const uint64_t base = test_seed(30000);
    for (int64_t n = 0; n < test_effort(4) * 81; n++) {
        problem_spec spec = problem_spec_random(base + (uint64_t)n, 1e5);
        spec.shape.q_type = (mha_dtype)(n % 3);
        spec.shape.k_type = (mha_dtype)(n / 3 % 3);
        spec.shape.v_type = (mha_dtype)(n / 9 % 3);
        spec.shape.o_type = (mha_dtype)(n / 27 % 3);
        problem *const c = problem_new(&spec);
        problem_run(c, NULL);
        problem_expect(c, LIMIT);
        problem_delete(c);
    }
}

/* One key per batch, as many batches as `count` values need: every query gives back its value. */
static problem *one_key_case(mha_dtype v_type, mha_dtype o_type, ptrdiff_t L, ptrdiff_t count)
{
    const ptrdiff_t Dv = MHA_MAX_HEAD_WIDTH;
    const problem_spec spec = {
        .shape = {count / Dv, 1, 1, L, 1, 4, Dv, MHA_F32, MHA_F32, v_type, o_type}};
    return problem_new(&spec);
}

static double value_at(const problem *c, tensor_id id, ptrdiff_t i, ptrdiff_t n)
{
    return problem_get(c, id, n / MHA_MAX_HEAD_WIDTH, 0, i, n % MHA_MAX_HEAD_WIDTH);
}

/* Run, and check that every output is its value, rounded once. */
static void check_passes(problem *c, ptrdiff_t count)
{
    problem_run(c, NULL);
    for (ptrdiff_t n = 0; n < count * c->call.shape.L; n++) {
        const double in = value_at(c, TENSOR_V, 0, n % count);
        const double out = value_at(c, TENSOR_O, n / count, n % count);
        const double want = number_round(c->call.shape.o_type, in);
        CHECK(isnan(in) ? isnan(out) : out == want, "types %d to %d: %a becomes %a, not %a",
              (int)c->call.shape.v_type, (int)c->call.shape.o_type, in, out, want);
    }
}

static void values_pass_unchanged(void)
{
    static const ptrdiff_t L[] = {1, 3, 20};
    for (int n = 0; n < 2 * 3 * 3; n++) {
        const mha_dtype v_type = n % 2 ? MHA_F16 : MHA_BF16, o_type = (mha_dtype)(n / 2 % 3);
        problem *const c = one_key_case(v_type, o_type, L[n / 6], VALUES);
        for (ptrdiff_t x = 0; x < VALUES; x++)
            ((uint16_t *)(void *)c->tensors[TENSOR_V].memory)[x] = (uint16_t)x;
        check_passes(c, VALUES);
        problem_delete(c);
    }
}

/* f32 values on, just below and just above the middle between each number of the output type and
 * the next one. */
static void stores_round_to_nearest_even(void)
{
    for (int n = 0; n < 2 * 3; n++) {
        const mha_dtype o_type = n % 2 ? MHA_F16 : MHA_BF16;
        problem *const c = one_key_case(MHA_F32, o_type, n / 2 ? 17 : 1, VALUES);
        for (ptrdiff_t x = 0; x < VALUES; x++) {
            const uint16_t bits[2] = {(uint16_t)x, (uint16_t)(x + 1)};
            const double low = number_get(o_type, bits, 0), high = number_get(o_type, bits, 1);
            const float middle = (float)(low / 2 + high / 2);
            const float shifts[] = {middle, nextafterf(middle, 0), nextafterf(middle, 2 * middle)};
            problem_set(c, TENSOR_V, x / MHA_MAX_HEAD_WIDTH, 0, 0, x % MHA_MAX_HEAD_WIDTH,
                        (double)shifts[n / 2]);
        }
        check_passes(c, VALUES);
        problem_delete(c);
    }
}

static void large_values_overflow_to_infinity(void)
{
    problem *const c = one_key_case(MHA_F32, MHA_F16, 5, 2048);
    for (ptrdiff_t x = 0; x < 2048; x++) {
        const double value = 65000 + 0.5 * (double)x;
        problem_set(c, TENSOR_V, x / 1024, 0, 0, x % 1024, x % 2 ? -value : value);
    }
    problem_set(c, TENSOR_V, 0, 0, 0, 0, FLT_MAX);
    problem_set(c, TENSOR_V, 0, 0, 0, 1, -FLT_MAX);
    check_passes(c, 2048);
    CHECK(value_at(c, TENSOR_O, 4, 0) == INFINITY, "FLT_MAX is %g", value_at(c, TENSOR_O, 4, 0));
    problem_delete(c);
}

/* Scores show every value of q, or of k, times 1. */
static void check_scores(mha_dtype type, bool in_keys, ptrdiff_t other)
{
    const ptrdiff_t L = in_keys ? other : 1024, S = in_keys ? 1024 : other;
    problem_spec spec = {
        .shape = {.B = 1, .H = 64, .L = L, .S = S, .D = 1},
        .features = FEATURE_PLAIN_WEIGHTS,
    };
    *(in_keys ? &spec.shape.k_type : &spec.shape.q_type) = type;
    problem *const c = problem_new(&spec);
    c->call.options.scale = 1;
    c->call.options.weights_mode = MHA_WEIGHTS_RAW;
    const tensor_id varied = in_keys ? TENSOR_K : TENSOR_Q, fixed = in_keys ? TENSOR_Q : TENSOR_K;
    for (ptrdiff_t x = 0; x < VALUES; x++)
        ((uint16_t *)(void *)c->tensors[varied].memory)[x] = (uint16_t)x;
    for (ptrdiff_t x = 0; x < 64 * other; x++)
        ((float *)(void *)c->tensors[fixed].memory)[x] = 1;
    problem_run(c, NULL);
    for (ptrdiff_t n = 0; n < VALUES * other; n++) {
        const ptrdiff_t h = n / 1024 % 64, x = n % 1024, y = n / VALUES;
        const double in = problem_get(c, varied, 0, h, x, 0);
        const double out = problem_get(c, TENSOR_WEIGHTS, 0, h, in_keys ? y : x, in_keys ? x : y);
        CHECK(compare_error(MHA_F32, MHA_F32, out, in, 0x1p-24 * fabs(in)) <= 4,
              "type %d in %s: %a shows as %a", (int)type, in_keys ? "k" : "q", in, out);
    }
    problem_delete(c);
}

static void scores_see_every_value(void)
{
    for (int n = 0; n < 2 * 2 * 2; n++)
        check_scores(n % 2 ? MHA_F16 : MHA_BF16, n / 2 % 2, n / 4 ? 1 : 6);
}

/* Multiply a tensor, in steps that f16 holds without loss. */
static void shrink(problem *c, tensor_id id, double factor)
{
    const ptrdiff_t *const n = c->tensors[id].n;
    for (ptrdiff_t r = 0; r < n[0] * n[1] * n[2]; r++) {
        const ptrdiff_t i = r % n[2], h = r / n[2] % n[1], b = r / n[2] / n[1];
        for (ptrdiff_t j = 0; j < n[3]; j++)
            problem_set(c, id, b, h, i, j, factor * problem_get(c, id, b, h, i, j));
    }
}

/* Queries, keys and values that are subnormal in f16, with a scale that makes up for it. */
static void subnormal_inputs_count(void)
{
    for (uint64_t n = 0; n < (uint64_t)test_effort(40); n++) {
        problem_spec spec = problem_spec_random(n + 31000, 1e5);
        spec.shape.q_type = spec.shape.k_type = spec.shape.v_type = MHA_F16;
        spec.shape.o_type = n % 2 ? MHA_F16 : MHA_F32;
        spec.features = FEATURE_LSE | (spec.features & (FEATURE_STRIDES | FEATURE_CAUSAL));
        spec.logits = 1;
        problem *const c = problem_new(&spec);
        shrink(c, TENSOR_Q, 0x1p-18);
        shrink(c, TENSOR_K, 0x1p-18);
        shrink(c, TENSOR_V, 0x1p-19);
        c->call.options.scale = 0x1p36f / sqrtf((float)spec.shape.D);
        problem_run(c, NULL);
        problem_expect(c, LIMIT);
        problem_delete(c);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(every_mixture_of_types);
    RUN(values_pass_unchanged);
    RUN(stores_round_to_nearest_even);
    RUN(large_values_overflow_to_infinity);
    RUN(scores_see_every_value);
    RUN(subnormal_inputs_count);
    return test_end();
}
