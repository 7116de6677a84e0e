/* SPDX-License-Identifier: MIT */
/*
 * Laws of attention: two ways to say the same thing give the same result, to the bit where both
 * ways are promised to do the same arithmetic, else within the error bound. Those of masks and
 * batches are in test_mask_laws.c.
 */
#include "support/problems.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* A case with f32 output, so that only the error bound separates two results. */
static problem_spec f32_spec_with(uint64_t seed, unsigned features)
{
    problem_spec spec = problem_spec_with(seed, features);
    spec.shape.o_type = MHA_F32;
    return spec;
}

static int64_t rounds(void)
{
    return test_effort(40);
}

/* Outputs of b, f32, must be those of a within `limit` units. */
static void expect_close(const problem *a, const problem *b, double limit, const char *law)
{
    const attention_call *const p = &a->call;
    oracle_row row;
    double worst = 0;
    oracle_row_init(&row, p);
    for (ptrdiff_t n = 0; n < p->shape.B * p->shape.H * p->shape.L; n++) {
        const ptrdiff_t i = n % p->shape.L, h = n / p->shape.L % p->shape.H;
        const ptrdiff_t x = n / p->shape.L / p->shape.H;
        oracle_row_compute(&row, p, x, h, i);
        for (ptrdiff_t c = 0; c < call_value_width(p); c++) {
            const double one = problem_get(a, TENSOR_O, x, h, i, c);
            const double other = problem_get(b, TENSOR_O, x, h, i, c);
            const double unit = 0x1p-24 * row.o_size[c] + (double)FLT_MIN * row.o_tiny[c];
            worst = fmax(worst, compare_error(MHA_F32, MHA_F32, other, one, unit));
        }
    }
    oracle_row_free(&row);
    CHECK(worst <= limit, "%s: %g units apart, %s", law, worst, a->name);
}

static void compare_and_free(problem *a, problem *b, double limit, const char *law)
{
    expect_close(a, b, limit, law);
    problem_delete(a);
    problem_delete(b);
}

static void run_and_compare(problem *a, problem *b, const char *law)
{
    problem_run(a, NULL);
    problem_run(b, NULL);
    compare_and_free(a, b, 16, law);
}

/* --------------------------------------------------------------- softmax */

static void rows_sum_to_one(void)
{
    for (int64_t n = 0; n < rounds(); n++) {
        const unsigned sinks = n % 2 ? FEATURE_SINKS : 0;
        const problem_spec spec =
            problem_spec_with(40000 + (uint64_t)n, FEATURE_OUTPUTS | FEATURE_CAUSAL |
                                                       FEATURE_OFFSET | FEATURE_ATTEND | sinks);
        problem *const c = problem_new(&spec);
        const mha_shape *const s = &spec.shape;
        problem_run(c, NULL);
        for (ptrdiff_t r = 0; r < s->B * s->H * s->L; r++) {
            const ptrdiff_t i = r % s->L, h = r / s->L % s->H, b = r / s->L / s->H;
            const double lse = problem_get(c, TENSOR_LSE, b, h, i, 0);
            const double sink = sinks ? exp((double)c->call.options.sinks[h] - lse) : 0;
            double sum = 0;
            for (ptrdiff_t j = 0; j < s->S; j++)
                sum += problem_get(c, TENSOR_WEIGHTS, b, h, i, j);
            const double want = lse == -INFINITY ? 0 : 1 - sink;
            CHECK(fabs(sum - want) <= 1e-5, "%s: row sums to %.9g, not %.9g", c->name, sum, want);
        }
        problem_delete(c);
    }
}

static void weights_times_values_are_the_output(void)
{
    for (int64_t n = 0; n < rounds(); n++) {
        const problem_spec spec =
            f32_spec_with(41000 + (uint64_t)n, FEATURE_OUTPUTS | FEATURE_ATTEND | FEATURE_SINKS);
        problem *const c = problem_new(&spec), *const by_hand = problem_new(&spec);
        const mha_shape *const s = &spec.shape;
        const ptrdiff_t Dv = call_value_width(&c->call);
        problem_run(c, NULL);
        for (ptrdiff_t r = 0; r < s->B * s->H * s->L * Dv; r++) {
            const ptrdiff_t x = r % Dv, i = r / Dv % s->L, h = r / Dv / s->L % s->H;
            const ptrdiff_t b = r / Dv / s->L / s->H, g = h / (s->H / s->G);
            double sum = 0;
            for (ptrdiff_t j = 0; j < s->S; j++)
                sum += problem_get(c, TENSOR_WEIGHTS, b, h, i, j) *
                       problem_get(c, TENSOR_V, b, g, j, x);
            problem_set(by_hand, TENSOR_O, b, h, i, x, sum);
        }
        compare_and_free(c, by_hand, 16, "weights . v");
    }
}

static void constant_values_give_the_constant(void)
{
    for (int64_t n = 0; n < rounds(); n++) {
        problem_spec spec =
            problem_spec_with(42000 + (uint64_t)n, n % 2 ? FEATURE_BIAS : FEATURE_SOFTCAP);
        problem *const c = problem_new(&spec);
        const mha_shape *const s = &spec.shape;
        const double constant = -1.75;
        problem_set_all(c, TENSOR_V, constant);
        problem_run(c, NULL);
        for (ptrdiff_t r = 0; r < s->B * s->H * s->L; r++) {
            const ptrdiff_t i = r % s->L, h = r / s->L % s->H, b = r / s->L / s->H;
            const double got = problem_get(c, TENSOR_O, b, h, i, 0);
            const bool empty = got == 0 && n % 2;
            CHECK(empty || fabs(got - constant) <= 32 * 0x1p-24 * 1.75 || got == constant,
                  "%s: %.9g for %g", c->name, got, constant);
        }
        problem_delete(c);
    }
}

/* ------------------------------------------------------------------ keys */

/* Swap rows a and b of every batch and head. */
static void swap_rows(problem *c, tensor_id id, ptrdiff_t a, ptrdiff_t b)
{
    const ptrdiff_t *const n = c->tensors[id].n;
    for (ptrdiff_t r = 0; r < n[0] * n[1]; r++) {
        for (ptrdiff_t j = 0; j < n[3]; j++) {
            const double kept = problem_get(c, id, r / n[1], r % n[1], a, j);
            problem_set(c, id, r / n[1], r % n[1], a, j,
                        problem_get(c, id, r / n[1], r % n[1], b, j));
            problem_set(c, id, r / n[1], r % n[1], b, j, kept);
        }
    }
}

static void order_of_keys_does_not_matter(void)
{
    for (int64_t n = 0; n < rounds(); n++) {
        const problem_spec spec =
            f32_spec_with(43000 + (uint64_t)n, FEATURE_SINKS | FEATURE_SOFTCAP);
        problem *const a = problem_new(&spec), *const b = problem_new(&spec);
        test_random random = {(uint64_t)n};
        for (ptrdiff_t j = spec.shape.S - 1; j > 0; j--) {
            const ptrdiff_t other = (ptrdiff_t)test_random_below(&random, j + 1);
            swap_rows(b, TENSOR_K, j, other);
            swap_rows(b, TENSOR_V, j, other);
        }
        run_and_compare(a, b, "permuted keys");
    }
}

/* Outputs of the two halves, weighed by their log-sum-exp, written over those of `first`. */
static void merge(problem *first, const problem *second)
{
    const mha_shape *const s = &first->call.shape;
    for (ptrdiff_t r = 0; r < s->B * s->H * s->L; r++) {
        const ptrdiff_t i = r % s->L, h = r / s->L % s->H, b = r / s->L / s->H;
        const double lse[2] = {problem_get(first, TENSOR_LSE, b, h, i, 0),
                               problem_get(second, TENSOR_LSE, b, h, i, 0)};
        const double top = fmax(lse[0], lse[1]);
        const double weight[2] = {exp(lse[0] - top), exp(lse[1] - top)};
        for (ptrdiff_t c = 0; c < call_value_width(&first->call); c++) {
            const double sum = weight[0] * problem_get(first, TENSOR_O, b, h, i, c) +
                               weight[1] * problem_get(second, TENSOR_O, b, h, i, c);
            problem_set(first, TENSOR_O, b, h, i, c, sum / (weight[0] + weight[1]));
        }
    }
}

static void split_keys_merge_to_the_whole(void)
{
    for (int64_t n = 0; n < rounds(); n++) {
        problem_spec spec = f32_spec_with(44000 + (uint64_t)n, FEATURE_LSE);
        spec.logits = spec.logits > 4 ? 4 : spec.logits;
        const ptrdiff_t cut = 1 + (ptrdiff_t)(n * 7919) % spec.shape.S;
        if (cut == spec.shape.S)
            continue;
        problem *const whole = problem_new(&spec), *const left = problem_new(&spec);
        problem *const right = problem_new(&spec);
        left->call.shape.S = cut;
        right->call.shape.S -= cut;
        right->call.k.data = tensor_at(&right->tensors[TENSOR_K], 0, 0, cut, 0);
        right->call.v.data = tensor_at(&right->tensors[TENSOR_V], 0, 0, cut, 0);
        problem_run(whole, NULL);
        problem_run(left, NULL);
        problem_run(right, NULL);
        merge(left, right);
        compare_and_free(whole, left, 24, "two halves merged");
        problem_delete(right);
    }
}

/* A sink is a key with score `sink` and value 0. */
static void sink_is_a_key_of_value_zero(void)
{
    for (int64_t n = 0; n < rounds(); n++) {
        problem_spec spec = f32_spec_with(45000 + (uint64_t)n, FEATURE_SINKS);
        spec.features &= ~(unsigned)FEATURE_STRIDES;
        problem *const a = problem_new(&spec);
        const mha_shape *const s = &a->call.shape;
        spec.shape.S++;
        spec.features |= FEATURE_BIAS;
        problem *const b = problem_new(&spec);
        problem_set_all(b, TENSOR_K, 0);
        problem_set_all(b, TENSOR_V, 0);
        problem_set_all(b, TENSOR_BIAS, 0);
        const ptrdiff_t rows = s->B * s->G * s->S;
        for (ptrdiff_t r = 0; r < rows; r++) {
            const ptrdiff_t j = r % s->S, g = r / s->S % s->G, x = r / s->S / s->G;
            memcpy(tensor_at(&b->tensors[TENSOR_K], x, g, j, 0),
                   tensor_at(&a->tensors[TENSOR_K], x, g, j, 0),
                   (size_t)s->D * a->tensors[TENSOR_K].element);
            memcpy(tensor_at(&b->tensors[TENSOR_V], x, g, j, 0),
                   tensor_at(&a->tensors[TENSOR_V], x, g, j, 0),
                   (size_t)a->tensors[TENSOR_V].n[3] * a->tensors[TENSOR_V].element);
        }
        for (ptrdiff_t r = 0; r < s->B * s->H * s->L; r++) {
            const ptrdiff_t h = r / s->L % s->H;
            problem_set(b, TENSOR_BIAS, r / s->L / s->H, h, r % s->L, s->S,
                        (double)a->call.options.sinks[h]);
        }
        b->call.q = a->call.q;
        b->call.options.sinks = NULL;
        run_and_compare(a, b, "sink");
    }
}

static void grouped_heads_are_repeated_heads(void)
{
    for (int64_t n = 0; n < rounds(); n++) {
        const unsigned masks =
            FEATURE_CAUSAL | FEATURE_OFFSET | FEATURE_ATTEND | FEATURE_ALIBI | FEATURE_SINKS;
        problem_spec spec =
            problem_spec_with(46000 + (uint64_t)n, FEATURE_OUTPUTS | (n % 2 ? masks : 0));
        problem *const grouped = problem_new(&spec);
        const mha_shape *const s = &grouped->call.shape;
        spec.shape.G = s->H;
        problem *const apart = problem_new(&spec);
        for (ptrdiff_t r = 0; r < s->B * s->H * s->S; r++) {
            const ptrdiff_t j = r % s->S, h = r / s->S % s->H, b = r / s->S / s->H;
            for (int id = TENSOR_K; id <= TENSOR_V; id++) {
                const tensor *const t = &grouped->tensors[id];
                memcpy(tensor_at(&apart->tensors[id], b, h, j, 0),
                       tensor_at(t, b, h / (s->H / s->G), j, 0), (size_t)t->n[3] * t->element);
            }
        }
        apart->call.q = grouped->call.q;
        apart->call.options = grouped->call.options;
        apart->call.options.lse = (mha_out){0};
        apart->call.options.weights = (mha_out){0};
        problem_run(grouped, NULL);
        problem_run(apart, NULL);
        CHECK(tensors_same(&grouped->tensors[TENSOR_O], &apart->tensors[TENSOR_O]),
              "other bits: %s", grouped->name);
        problem_delete(grouped);
        problem_delete(apart);
    }
}

/* ---------------------------------------------------------------- scores */

static void constant_bias_changes_nothing(void)
{
    for (int64_t n = 0; n < rounds(); n++) {
        const problem_spec spec = f32_spec_with(47000 + (uint64_t)n, FEATURE_BIAS);
        problem *const a = problem_new(&spec), *const b = problem_new(&spec);
        const ptrdiff_t *const e = b->tensors[TENSOR_BIAS].n;
        for (ptrdiff_t r = 0; r < e[0] * e[1] * e[2]; r++) {
            const ptrdiff_t i = r % e[2], h = r / e[2] % e[1], x = r / e[2] / e[1];
            for (ptrdiff_t j = 0; j < e[3]; j++)
                problem_set(b, TENSOR_BIAS, x, h, i, j,
                            3.5 + problem_get(b, TENSOR_BIAS, x, h, i, j));
        }
        run_and_compare(b, a, "constant added to the scores");
    }
}

static void alibi_is_a_bias(void)
{
    for (int64_t n = 0; n < rounds(); n++) {
        const problem_spec spec =
            f32_spec_with(48000 + (uint64_t)n, FEATURE_ALIBI | FEATURE_BIAS | FEATURE_OFFSET);
        problem *const a = problem_new(&spec), *const b = problem_new(&spec);
        const mha_shape *const s = &spec.shape;
        for (ptrdiff_t r = 0; r < s->B * s->H * s->L * s->S; r++) {
            const ptrdiff_t j = r % s->S, i = r / s->S % s->L, h = r / s->S / s->L % s->H;
            const ptrdiff_t x = r / s->S / s->L / s->H;
            const ptrdiff_t distance = i + call_offset(&a->call, x) - j;
            const double slope = (double)a->call.options.alibi_slopes[h];
            problem_set(b, TENSOR_BIAS, x, h, i, j, -slope * fabs((double)distance));
        }
        a->call.options.bias = (mha_view){0};
        b->call.options.alibi_slopes = NULL;
        run_and_compare(a, b, "ALiBi");
    }
}

static void a_huge_softcap_is_none(void)
{
    for (int64_t n = 0; n < rounds(); n++) {
        const problem_spec spec = f32_spec_with(49000 + (uint64_t)n, 0);
        problem *const a = problem_new(&spec), *const b = problem_new(&spec);
        b->call.options.softcap = 1e6f;
        run_and_compare(a, b, "softcap 1e6");
    }
}

static void default_scale_can_be_said(void)
{
    for (int64_t n = 0; n < rounds(); n++) {
        problem_spec spec = f32_spec_with(50000 + (uint64_t)n, FEATURE_OUTPUTS);
        const bool exact = n % 2;
        spec.shape.D = exact ? 16 << (2 * (n / 2 % 3)) : spec.shape.D;
        problem *const a = problem_new(&spec), *const b = problem_new(&spec);
        b->call.options.scale = (float)(1 / sqrt((double)spec.shape.D));
        problem_run(a, NULL);
        problem_run(b, NULL);
        if (exact)
            CHECK(tensors_same(&a->tensors[TENSOR_O], &b->tensors[TENSOR_O]), "other bits: %s",
                  a->name);
        compare_and_free(a, b, 16, "explicit scale");
    }
}

/* Powers of two pass through exactly: twice the values, half the scale for twice the queries. */
static void powers_of_two_are_exact(void)
{
    for (int64_t n = 0; n < rounds(); n++) {
        problem_spec spec =
            problem_spec_with(51000 + (uint64_t)n, FEATURE_CAUSAL | FEATURE_OFFSET | FEATURE_SCALE);
        mha_shape *const s = &spec.shape;
        s->q_type = s->v_type = s->o_type = MHA_F32;
        problem *const a = problem_new(&spec), *const b = problem_new(&spec);
        const tensor_id doubled[] = {TENSOR_Q, TENSOR_V};
        for (int d = 0; d < 2; d++) {
            const ptrdiff_t *const e = b->tensors[doubled[d]].n;
            for (ptrdiff_t r = 0; r < e[0] * e[1] * e[2] * e[3]; r++) {
                float *const at = tensor_at(&b->tensors[doubled[d]], r / e[3] / e[2] / e[1],
                                            r / e[3] / e[2] % e[1], r / e[3] % e[2], r % e[3]);
                *at *= 2;
            }
        }
        b->call.options.scale /= 2;
        problem_run(a, NULL);
        problem_run(b, NULL);
        const ptrdiff_t *const e = a->tensors[TENSOR_O].n;
        bool same = true;
        for (ptrdiff_t r = 0; r < e[0] * e[1] * e[2] * e[3]; r++) {
            const ptrdiff_t c = r % e[3], i = r / e[3] % e[2], h = r / e[3] / e[2] % e[1];
            const ptrdiff_t x = r / e[3] / e[2] / e[1];
            same &=
                2 * problem_get(a, TENSOR_O, x, h, i, c) == problem_get(b, TENSOR_O, x, h, i, c);
        }
        CHECK(same, "not twice the output: %s", a->name);
        problem_delete(a);
        problem_delete(b);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(rows_sum_to_one);
    RUN(weights_times_values_are_the_output);
    RUN(constant_values_give_the_constant);
    RUN(order_of_keys_does_not_matter);
    RUN(split_keys_merge_to_the_whole);
    RUN(sink_is_a_key_of_value_zero);
    RUN(grouped_heads_are_repeated_heads);
    RUN(constant_bias_changes_nothing);
    RUN(alibi_is_a_bias);
    RUN(a_huge_softcap_is_none);
    RUN(default_scale_can_be_said);
    RUN(powers_of_two_are_exact);
    return test_end();
}
