/* SPDX-License-Identifier: MIT */
/*
 * Problems named by words, and random ones with every feature and all of them together, compared
 * with the oracle. A failing word prints the command that repeats it; a failing random problem
 * prints its seed, and MHA_TEST_SEED=<seed> makes it the first of the next run.
 */
#include "problem/problem_check.h"
#include "support/problems.h"

#include <stdio.h>

enum { LIMIT = 8 };

static mha_pool *make_pool(int threads)
{
    mha_pool *pool = NULL;
    const mha_status status = mha_pool_create(&pool, threads);
    CHECK(status == MHA_OK, "pool of %d: %d", threads, (int)status);
    return pool;
}

/* Build, run (by one call or by plan, alone or with a pool) and check one case. Returns E. */
static double one_case(const problem_spec *spec, mha_pool *pool)
{
    problem *const c = problem_new(spec);
    if (spec->seed % 3 == 0)
        problem_run_planned(c, spec->seed % 2 ? pool : NULL);
    else
        problem_run(c, spec->seed % 2 ? pool : NULL);
    const double worst = problem_expect(c, LIMIT);
    problem_delete(c);
    return worst;
}

static void random_cases(uint64_t seed, int64_t count, double cost, bool wide)
{
    const uint64_t base = test_seed(seed);
    mha_pool *const pool = make_pool(3);
    double worst = 0;
    for (int64_t n = 0; n < count; n++) {
        problem_spec spec = problem_spec_random(base + (uint64_t)n, cost);
        mha_shape *const s = &spec.shape;
        if (wide)
            s->q_type = s->k_type = s->v_type = s->o_type = MHA_F64;
        const double error = one_case(&spec, pool);
        worst = error > worst ? error : worst;
    }
    mha_pool_free(pool);
    printf("     %lld cases, largest E %.2f\n", (long long)count, worst);
}

static void small_configurations(void)
{
    random_cases(1, test_effort(1000), 2e5, false);
}

static void larger_configurations(void)
{
    random_cases(100000, test_effort(150), 6e6, false);
}

static void double_precision(void)
{
    random_cases(200000, test_effort(150), 2e5, true);
}

/* Runs and checks what a word names, in every way there is. */
static void check_word(const char *word, uint64_t seed, mha_pool *pool)
{
    problem *const p = problem_new_word(word, seed);
    check_result result;
    check_problem(p, pool, &result);
    CHECK(!result.failed, "mha verify --seed %llu --case %s: %s", (unsigned long long)seed, word,
          result.what);
    problem_delete(p);
}

/* Shapes of real models, plain and causal. */
static void model_shapes(void)
{
    static const char *const shapes[] = {"h12l64d64",       "b2h8g2l33s200d128", "h4g1l100d256",
                                         "h32g8l1s700d128", "h2l20s3000d80",     "h2l40d192v128"};
    static const char *const suffixes[] = {
        "lse", "lse:f16", "lse:bf16", "lse:causal:br", "lse:causal:br:f16", "lse:causal:br:bf16"};
    for (size_t n = 0; n < 36; n++) {
        char word[WORD_TEXT_MAX];
        snprintf(word, sizeof word, "%s:%s", shapes[n / 6], suffixes[n % 6]);
        check_word(word, n, NULL);
    }
}

/* Everything a word can say, by itself and with others. */
static void every_suffix_of_a_word(void)
{
    static const char *const suffixes[] = {
        "f16",
        "f64",
        "q=f16:k=bf16:v=f16:o=f32",
        "causal:br",
        "causal:tl",
        "causal:offset=-3",
        "br:window=5,2",
        "offset=4:window=-1,3",
        "mask=bool30",
        "mask=add:bias",
        "br:alibi:sink",
        "softcap=2:scale=-0.3",
        "pad:causal:br",
        "padk3",
        "docs=3",
        "packed:causal:br",
        "packed:docs=2:lse",
        "weights",
        "weights=raw:softcap=3:mask=bool80",
        "weights=softcap:softcap=3",
        "weights=bias:bias:causal:br",
        "avg:sink:br:alibi",
        "weights=bias:avg",
        "stats=all:lse:weights",
        "layout=blhd:weights:lse",
        "causal:br:window=9,-1:mask=bool50:mask=add:bias:alibi:sink:softcap=5:docs=2:lse:weights",
    };
    static const char *const extents[] = {"b2h4g2l19s40d16", "b3h3l70s70d33v20", "h6g1l1s300d64"};
    mha_pool *const pool = make_pool(3);
    for (size_t n = 0; n < 3 * sizeof suffixes / sizeof *suffixes; n++) {
        char word[WORD_TEXT_MAX];
        snprintf(word, sizeof word, "%s:%s", extents[n % 3], suffixes[n / 3]);
        check_word(word, n, pool);
    }
    mha_pool_free(pool);
}

/* Without options at all. */
static void no_options(void)
{
    const problem_spec spec = {.shape = {.B = 2, .H = 3, .L = 21, .S = 34, .D = 40}, .seed = 5};
    problem *const c = problem_new(&spec);
    const attention_call *const p = &c->call;
    problem_reset(c);
    const mha_status status = mha_attention(&p->shape, p->q, p->k, p->v, p->o, NULL, NULL);
    CHECK(status == MHA_OK, "status %d", (int)status);
    problem_expect(c, LIMIT);
    problem_delete(c);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(no_options);
    RUN(model_shapes);
    RUN(every_suffix_of_a_word);
    RUN(small_configurations);
    RUN(larger_configurations);
    RUN(double_precision);
    return test_end();
}
