/* SPDX-License-Identifier: MIT */
/*
 * Random configurations, with every feature and all of them together, against the oracle. A failing
 * case prints its seed; MHA_TEST_SEED=<seed> makes it the first case of the next run.
 */
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

/* Shapes of real models, plain and causal. */
static void model_shapes(void)
{
    static const mha_shape shapes[] = {
        {.B = 1, .H = 12, .L = 64, .S = 64, .D = 64},
        {.B = 2, .H = 8, .G = 2, .L = 33, .S = 200, .D = 128},
        {.B = 1, .H = 4, .G = 1, .L = 100, .S = 100, .D = 256},
        {.B = 1, .H = 32, .G = 8, .L = 1, .S = 700, .D = 128},
        {.B = 1, .H = 2, .L = 20, .S = 3000, .D = 80},
        {.B = 1, .H = 2, .L = 40, .S = 40, .D = 192, .Dv = 128},
    };
    for (size_t n = 0; n < 3 * sizeof shapes / sizeof *shapes; n++) {
        const mha_dtype type = (mha_dtype)(n % 3);
        problem_spec spec = {.shape = shapes[n / 3], .seed = n, .features = FEATURE_LSE};
        mha_shape *const s = &spec.shape;
        s->q_type = s->k_type = s->v_type = s->o_type = type;
        one_case(&spec, NULL);
        spec.features |= FEATURE_CAUSAL;
        one_case(&spec, NULL);
    }
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
    RUN(small_configurations);
    RUN(larger_configurations);
    RUN(double_precision);
    return test_end();
}
