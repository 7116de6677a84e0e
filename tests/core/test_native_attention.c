/* SPDX-License-Identifier: MIT */
/*
 * Attention in native arithmetic (MHA_NATIVE): compared with the oracle and with a naive
 * computation that rounds what is stored to bf16, over random problems with all options; what it
 * does with NaN, infinity and subnormal numbers; what it says about itself. test_bits has its
 * bitwise promise.
 */
#include "support/problems.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT = 8 };

static bool computes_native(void)
{
    const char *const isa = mha_isa_name();
    return strcmp(isa, "avx512bf16") == 0 || strcmp(isa, "neonbf16") == 0;
}

static problem_spec native_spec(uint64_t seed, double cost)
{
    problem_spec spec = problem_spec_random(seed, cost);
    mha_shape *const s = &spec.shape;
    s->q_type = s->k_type = s->v_type = MHA_BF16;
    s->o_type = seed % 3 == 0 ? MHA_F32 : MHA_BF16;
    spec.features |= FEATURE_NATIVE;
    return spec;
}

/* Every option: masks, biases, lengths, documents, sinks, weights, strides, NaN in masked keys. */
static void agrees_with_the_oracle(void)
{
    const uint64_t base = test_seed(910000);
    for (int64_t n = 0; n < test_effort(400); n++) {
        problem_spec spec = native_spec(base + (uint64_t)n, 4e5);
        spec.features |= n % 4 == 0 ? FEATURE_POISON | FEATURE_ATTEND : 0;
        spec.features |= n % 5 == 0 ? FEATURE_STATISTICS : 0;
        problem *const p = problem_new(&spec);
        problem_run(p, NULL);
        problem_expect(p, LIMIT);
        problem_delete(p);
    }
}

/* Tiles of every height and width, and rows of one key more or less than vectors, panels and
 * blocks. */
static void agrees_at_the_edges(void)
{
    static const ptrdiff_t edges[] = {1, 2, 3, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 300};
    enum { EDGES = sizeof edges / sizeof *edges };
    for (int n = 0; n < 3 * EDGES; n++) {
        problem_spec spec = {.seed = 920000 + (uint64_t)n,
                             .features = FEATURE_NATIVE | FEATURE_LSE};
        spec.shape = (mha_shape){.B = 1,
                                 .H = 2,
                                 .G = 1 + n % 2,
                                 .L = edges[(n * 7 + 3) % EDGES],
                                 .S = edges[n % EDGES],
                                 .D = edges[n * 4 % EDGES],
                                 .Dv = edges[(n * 11 + 5) % EDGES],
                                 .q_type = MHA_BF16,
                                 .k_type = MHA_BF16,
                                 .v_type = MHA_BF16,
                                 .o_type = MHA_BF16};
        problem *const p = problem_new(&spec);
        problem_run(p, NULL);
        problem_expect(p, LIMIT);
        problem_delete(p);
    }
}

/* ------------------------------------------------------ compared with naive ----- */

static double bf16(double x)
{
    return number_round(MHA_BF16, x);
}

/* Sums of squares of errors. */
typedef struct errors {
    double native, naive;
} errors;

/* One row: scores, weights and output are each rounded to bf16, as they would be stored. */
static void naive_row(const problem *p, const oracle_row *exact, ptrdiff_t b, ptrdiff_t h,
                      ptrdiff_t i, errors *sum)
{
    const attention_call *const c = &p->call;
    const ptrdiff_t S = c->shape.S, D = c->shape.D, Dv = call_value_width(c);
    const ptrdiff_t g = call_group_of(c, h), q = call_row_index(&c->q, NULL, b, h, i);
    double *const w = calloc((size_t)S + 1, sizeof *w), top = -(double)INFINITY, l = 0;
    for (ptrdiff_t j = 0; j < S; j++) {
        const ptrdiff_t k = call_row_index(&c->k, NULL, b, g, j);
        for (ptrdiff_t e = 0; e < D; e++)
            w[j] += number_get(MHA_BF16, c->q.data, q + e) * number_get(MHA_BF16, c->k.data, k + e);
        w[j] = call_attends(c, b, h, i, j) ? bf16(w[j] / sqrt((double)D)) : -(double)INFINITY;
        top = fmax(top, w[j]);
    }
    for (ptrdiff_t j = 0; j < S; j++)
        l += exp(w[j] - top);
    const mha_view o = call_view_of(&c->o);
    const ptrdiff_t at = call_row_index(&o, NULL, b, h, i);
    for (ptrdiff_t e = 0; e < Dv; e++) {
        double x = 0;
        for (ptrdiff_t j = 0; j < S; j++)
            x += bf16(exp(w[j] - top) / l) *
                 number_get(MHA_BF16, c->v.data, call_row_index(&c->v, NULL, b, g, j) + e);
        sum->naive += pow(bf16(x) - exact->o[e], 2);
        sum->native += pow(number_get(MHA_BF16, o.data, at + e) - exact->o[e], 2);
    }
    free(w);
}

/* The error of the whole output is at most twice that of the naive computation; it is usually
 * smaller. */
static void is_as_accurate_as_naive(void)
{
    const uint64_t base = test_seed(930000);
    double ratios = 0;
    int64_t count = 0;
    for (int64_t n = 0; n < test_effort(120); n++) {
        problem_spec spec = native_spec(base + (uint64_t)n, 2e5);
        spec.features = FEATURE_NATIVE | (n % 2 ? FEATURE_CAUSAL : 0);
        spec.shape.o_type = MHA_BF16;
        spec.logits = n % 3 == 0 ? 0.3 : n % 3 == 1 ? 1 : 4;
        if (n % 2)
            spec.shape.L = spec.shape.S;
        problem *const p = problem_new(&spec);
        errors sum = {0, 0};
        oracle_row row;
        problem_run(p, NULL);
        if (!oracle_row_init(&row, &p->call))
            abort();
        for (ptrdiff_t r = 0; r < spec.shape.B * spec.shape.H * spec.shape.L; r += 3) {
            const ptrdiff_t L = spec.shape.L, H = spec.shape.H, b = r / L / H, h = r / L % H;
            oracle_row_compute(&row, &p->call, b, h, r % L);
            naive_row(p, &row, b, h, r % L, &sum);
        }
        CHECK(sqrt(sum.native) <= 2 * sqrt(sum.naive) + 1e-12, "%s: %g, naive %g", p->name,
              sqrt(sum.native), sqrt(sum.naive));
        ratios += sum.naive > 0 ? sqrt(sum.native / sum.naive) : 1;
        count++;
        oracle_row_free(&row);
        problem_delete(p);
    }
    CHECK(ratios <= 1.1 * (double)count, "errors are %g of naive ones on average",
          ratios / (double)count);
}

/* ------------------------------------------------------------- numbers ----- */

static problem *word_problem(const char *word)
{
    problem *const p = problem_new_word(word, 7);
    problem_run(p, NULL);
    return p;
}

static void put(problem *p, tensor_id id, ptrdiff_t i, ptrdiff_t c, double x)
{
    problem_set(p, id, 0, 0, i, c, x);
}

static double output(const problem *p, ptrdiff_t i, ptrdiff_t c)
{
    return number_get(MHA_BF16, p->call.o.data, i * p->call.o.sl + c);
}

/* NaN that a row attends to is in its result, NaN that it does not attend to is not; and likewise
 * in the tile that follows. */
static void nan_reaches_only_who_attends(void)
{
    static const char *const words[] = {"b1h1l100d64:bf16:native:causal",
                                        "b1h1l3d64:bf16:native:causal",
                                        "b1h1l70d33:bf16:native:causal"};
    for (int n = 0; n < 3; n++) {
        problem *const p = word_problem(words[n]), *const plain = word_problem(words[n]);
        const ptrdiff_t L = p->call.shape.L, key = L / 2;
        put(p, n % 2 ? TENSOR_K : TENSOR_V, key, 1, (double)NAN);
        problem_run(p, NULL);
        for (ptrdiff_t i = 0; i < L; i++) {
            const double got = output(p, i, 1);
            CHECK(i < key ? got == output(plain, i, 1) : isnan(got), "%s: row %td is %g", words[n],
                  i, got);
        }
        problem_delete(p);
        problem_delete(plain);
    }
}

/* A score of +inf makes its row NaN, an infinite value its column, as in exact arithmetic. */
static void infinity_is_that_of_exact_arithmetic(void)
{
    problem *const p = word_problem("b1h1l20d16:bf16:native");
    put(p, TENSOR_V, 3, 5, (double)INFINITY);
    problem_run(p, NULL);
    CHECK(output(p, 0, 5) == (double)INFINITY && isfinite(output(p, 0, 4)), "%g", output(p, 0, 5));
    put(p, TENSOR_K, 3, 0, (double)INFINITY);
    problem_run(p, NULL);
    bool all = true;
    for (ptrdiff_t i = 0; i < 20; i++)
        all &= isnan(output(p, i, 0)) || isfinite(output(p, i, 0));
    CHECK(all, "a row is infinite");
    problem_delete(p);
}

/* Subnormal values count as 0, so nothing but 0 and normal numbers comes out of them. */
static void subnormal_values_count_as_zero(void)
{
    problem *const p = word_problem("b1h1l40d16:bf16:native");
    for (ptrdiff_t j = 0; j < 40; j++)
        put(p, TENSOR_V, j, 2, 0x1p-130);
    problem_run(p, NULL);
    for (ptrdiff_t i = 0; i < 40 && computes_native(); i++)
        CHECK(output(p, i, 2) == 0, "row %td is %g", i, output(p, i, 2));
    problem_delete(p);
}

/* ------------------------------------------------------------- words ----- */

static void expect_words(const char *word, const char *words)
{
    char message[200], text[2000];
    problem_word w;
    mha_plan *plan;
    CHECK(word_parse(&w, word, message, sizeof message), "%s", message);
    const mha_shape shape = word_shape(&w);
    const mha_options options = word_options(&w);
    CHECK(mha_plan_create(&plan, &shape, &options) == MHA_OK, "%s", word);
    mha_plan_explain(plan, text, sizeof text);
    CHECK((strstr(text, "arithmetic ") != NULL) == (words != NULL) &&
              (!words || strstr(text, words)),
          "%s:\n%s", word, text);
    mha_plan_free(plan);
}

static void says_what_it_computes(void)
{
    expect_words("l50d64:bf16", NULL);
    expect_words("l50d64:bf16:native",
                 computes_native() ? "native: products of bf16" : "has no products of bf16");
    expect_words("l50d64:f16:native", "exact, in f32: attention is native where");
    expect_words("l50d64:native", "exact, in f32: attention is native where");
    expect_words("l50d64:bf16:v=f32:native", "exact, in f32: attention is native where");
    expect_words("l50d64:f64:native", "exact, in f64");
}

/* Where nothing is native, the bits are those of exact arithmetic; elsewhere they are not. */
static void other_types_are_exact(void)
{
    static const char *const words[] = {"b1h2l60d64", "b1h2l60d64:f16", "b1h2l60d64:bf16:k=f32",
                                        "b1h2l60d64:bf16"};
    for (int n = 0; n < 4; n++) {
        problem *const p = problem_new_word(words[n], 3);
        problem_run(p, NULL);
        snapshot before = snapshot_of(p);
        p->call.options.arithmetic = MHA_NATIVE;
        problem_run(p, NULL);
        const bool native = n == 3 && computes_native();
        CHECK(snapshot_same(&before, p) == !native, "%s", words[n]);
        snapshot_free(&before);
        problem_delete(p);
    }
}

static void a_plan_has_one_arithmetic(void)
{
    problem *const p = problem_new_word("b1h2l9d16:bf16:native", 5);
    char message[200] = "";
    mha_plan *plan;
    mha_options other = p->call.options;
    other.arithmetic = MHA_EXACT;
    other.message = message;
    other.message_size = sizeof message;
    CHECK(mha_plan_create(&plan, &p->call.shape, &p->call.options) == MHA_OK, "plan");
    const size_t size = mha_plan_work_size(plan, 1);
    void *const work = malloc(size);
    const mha_status status =
        mha_plan_run(plan, p->call.q, p->call.k, p->call.v, p->call.o, &other, work, size, NULL);
    CHECK(status == MHA_ERR_PLAN && strstr(message, "arithmetic"), "%d: %s", status, message);
    free(work);
    mha_plan_free(plan);
    problem_delete(p);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(agrees_with_the_oracle);
    RUN(agrees_at_the_edges);
    RUN(is_as_accurate_as_naive);
    RUN(nan_reaches_only_who_attends);
    RUN(infinity_is_that_of_exact_arithmetic);
    RUN(subnormal_values_count_as_zero);
    RUN(says_what_it_computes);
    RUN(other_types_are_exact);
    RUN(a_plan_has_one_arithmetic);
    return test_end();
}
