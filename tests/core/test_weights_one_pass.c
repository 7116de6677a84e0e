/* SPDX-License-Identifier: MIT */
/*
 * Weights of all heads and rows, and their mean, are made in the pass that computes the output;
 * those of listed rows after it, from scores of their own. A list of all rows asks for the same
 * weights on the other way: every output has the same bits.
 */
#include "support/problems.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 400, MOST_HEADS = 8, WIDTH = 16 };

/* How a case is run. */
typedef struct manner {
    mha_dtype type; /* of the weights */
    bool mean, modes, statistics, odd;
    mha_pool *pool;
} manner;

static int64_t all_rows[MOST_ROWS];
static mha_head_statistics head_statistics[16 * MOST_HEADS];
static const mha_statistics statistics = {.size = sizeof statistics, .heads = head_statistics};
static const uint8_t modes[MOST_HEADS] = {1, 0, 2, 0, 0, 2, 1, 0};
static const float means[MOST_HEADS * WIDTH] = {0.5f, -1.0f};

/* Does the plan of the case hold scores? */
static bool holds(const problem *c)
{
    mha_plan *plan = NULL;
    char text[2000] = "";
    CHECK(mha_plan_create(&plan, &c->call.shape, &c->call.options) == MHA_OK, "%s", c->message);
    mha_plan_explain(plan, text, sizeof text);
    mha_plan_free(plan);
    return strstr(text, "held until") != NULL;
}

/* Scores that are not numbers, and a row whose scores are all -inf. */
static void make_odd(problem *c)
{
    const mha_shape *const s = &c->call.shape;
    const ptrdiff_t keys = c->tensors[TENSOR_K].n[2]; /* all of them, if they are packed */
    problem_set(c, TENSOR_Q, 0, 0, s->L / 2, 0, NAN);
    if (keys > 0)
        problem_set(c, TENSOR_K, 0, 0, keys / 2, 1, INFINITY);
    for (ptrdiff_t j = 0; c->tensors[TENSOR_BIAS].memory && j < s->S; j++)
        problem_set(c, TENSOR_BIAS, 0, 0, 0, j, -INFINITY);
}

static problem *case_in(const problem_spec *spec, const manner *how)
{
    problem *const c = problem_new(spec);
    mha_options *const o = &c->call.options;
    o->weights_type = how->type;
    if (how->mean)
        o->flags |= MHA_AVERAGE_WEIGHTS;
    if (how->modes) {
        o->head_modes = modes;
        o->head_means = means;
    }
    if (how->statistics)
        o->statistics = &statistics;
    if (how->odd)
        make_odd(c);
    return c;
}

static void list_all_rows(problem *c)
{
    for (int i = 0; i < MOST_ROWS; i++)
        all_rows[i] = i;
    c->call.options.weights_rows = all_rows;
    c->call.options.weights_row_count = c->call.shape.L;
}

/* NaN has many bits, and which come out of a sum of two is the compiler's choice. */
static bool same_weights(const snapshot *before, const problem *c)
{
    const mha_dtype type = c->call.options.weights_type;
    const tensor *const t = &c->tensors[TENSOR_WEIGHTS];
    const size_t size = mha_dtype_size(type);
    for (size_t at = 0; at < t->bytes; at += size)
        if (memcmp(before->bytes[TENSOR_WEIGHTS] + at, t->memory + at, size) != 0 &&
            !(isnan(number_get(type, before->bytes[TENSOR_WEIGHTS] + at, 0)) &&
              isnan(number_get(type, t->memory + at, 0))))
            return false;
    return true;
}

static bool same(const snapshot *before, const problem *c, tensor_id id)
{
    const tensor *const t = &c->tensors[id];
    return !t->memory || memcmp(before->bytes[id], t->memory, t->bytes) == 0;
}

static void check_same(const problem_spec *spec, const manner *how)
{
    problem *const c = case_in(spec, how);
    CHECK(holds(c), "%s: not held", c->name);
    problem_run_planned(c, how->pool);
    snapshot held = snapshot_of(c);
    list_all_rows(c);
    CHECK(!holds(c), "%s: held", c->name);
    problem_run(c, NULL);
    CHECK(same_weights(&held, c) && same(&held, c, TENSOR_O) && same(&held, c, TENSOR_LSE),
          "%s, type %d, mean %d, modes %d, statistics %d, odd %d: other", c->name, how->type,
          how->mean, how->modes, how->statistics, how->odd);
    snapshot_free(&held);
    problem_delete(c);
}

static problem_spec random_spec(test_random *random)
{
    static const ptrdiff_t extents[] = {1, 2, 13, 48, 64, 100, 128, 129, 250, 256, 300, MOST_ROWS};
    static const unsigned kinds[] = {
        FEATURE_CAUSAL, FEATURE_WINDOW,    FEATURE_ATTEND,    FEATURE_IGNORE,
        FEATURE_ADD,    FEATURE_BIAS,      FEATURE_ALIBI,     FEATURE_SINKS,
        FEATURE_LSE,    FEATURE_Q_LENGTHS, FEATURE_K_LENGTHS, FEATURE_SOFTCAP,
        FEATURE_PACKED, FEATURE_DOCUMENTS, FEATURE_STRIDES,   FEATURE_BROADCAST};
    const ptrdiff_t groups = 1 << test_random_below(random, 3);
    problem_spec spec = {.features = FEATURE_PLAIN_WEIGHTS, .seed = test_random_u64(random)};
    spec.shape = (mha_shape){.B = 1 + test_random_below(random, 3),
                             .H = groups * (1 + test_random_below(random, MOST_HEADS / groups)),
                             .G = groups,
                             .L = extents[test_random_below(random, 12)],
                             .S = extents[test_random_below(random, 12)],
                             .D = WIDTH,
                             .Dv = WIDTH};
    for (int n = 0; n < 3; n++)
        spec.features |= kinds[test_random_below(random, 16)];
    spec.memory = guard_memories[test_random_below(random, 3)];
    return spec;
}

static void bits_of_the_second_pass(void)
{
    test_random random = {test_seed(40)};
    mha_pool *pools[4] = {NULL};
    for (int n = 1; n < 4; n++)
        CHECK(mha_pool_create(&pools[n], n + 1) == MHA_OK, "pool");
    for (int64_t n = 0; n < test_effort(400); n++) {
        const problem_spec spec = random_spec(&random);
        const manner how = {.type = (mha_dtype)test_random_below(&random, 3),
                            .mean = n % 4 != 0,
                            .modes = test_random_below(&random, 4) == 0,
                            .statistics = test_random_below(&random, 4) == 0,
                            .odd = test_random_below(&random, 6) == 0,
                            .pool = pools[test_random_below(&random, 4)]};
        check_same(&spec, &how);
    }
    for (int n = 1; n < 4; n++)
        mha_pool_free(pools[n]);
}

/* What a row does not see has weight 0, even if all the others are NaN. */
static void rows_that_are_not_numbers(void)
{
    static const ptrdiff_t keys[] = {40, 128, 300};
    static const unsigned masks[] = {FEATURE_CAUSAL, FEATURE_ATTEND, FEATURE_CAUSAL | FEATURE_BIAS};
    for (int n = 0; n < 18; n++) {
        const ptrdiff_t L = keys[n % 3];
        const problem_spec spec = {
            .shape = {.B = 1, .H = 3, .L = L, .S = L, .D = WIDTH, .Dv = WIDTH},
            .features = FEATURE_PLAIN_WEIGHTS | masks[n / 3 % 3],
            .seed = (uint64_t)n};
        const manner how = {.mean = n >= 9, .odd = true};
        check_same(&spec, &how);
    }
}

/* Several splits of keys, and several tasks of rows for each thread. */
static void bits_of_many_keys(void)
{
    mha_pool *pool = NULL;
    CHECK(mha_pool_create(&pool, 2) == MHA_OK, "pool");
    for (int n = 0; n < 8; n++) {
        const problem_spec spec = {
            .shape = {.B = 1, .H = 4, .G = 2, .L = MOST_ROWS, .S = 2500, .D = WIDTH, .Dv = WIDTH},
            .features = FEATURE_PLAIN_WEIGHTS | (n & 2 ? FEATURE_CAUSAL : FEATURE_SINKS),
            .seed = (uint64_t)n};
        const manner how = {.mean = n % 4 != 0, .pool = n & 4 ? pool : NULL};
        check_same(&spec, &how);
    }
    mha_pool_free(pool);
}

/* A plan made for weights or for their mean serves both. */
static void plans_serve_either(void)
{
    for (int n = 0; n < 4; n++) {
        const problem_spec spec = {
            .shape = {.B = 2, .H = 3, .L = 60, .S = n < 2 ? 100 : 300, .D = WIDTH, .Dv = WIDTH},
            .features = FEATURE_PLAIN_WEIGHTS,
            .seed = 5};
        const manner how = {.mean = n % 2};
        problem *const c = case_in(&spec, &how);
        problem_run(c, NULL);
        snapshot want = snapshot_of(c);
        mha_plan *plan = NULL;
        mha_options other = c->call.options;
        other.flags ^= MHA_AVERAGE_WEIGHTS;
        CHECK(mha_plan_create(&plan, &c->call.shape, &other) == MHA_OK, "plan");
        const size_t size = mha_plan_work_size(plan, 1);
        problem_reset(c);
        CHECK(mha_plan_run(plan, c->call.q, c->call.k, c->call.v, c->call.o, &c->call.options,
                           problem_alloc(c, size), size, NULL) == MHA_OK,
              "%s", c->message);
        CHECK(snapshot_same(&want, c), "keys %td, mean %d: other bits", spec.shape.S, how.mean);
        snapshot_free(&want);
        mha_plan_free(plan);
        problem_delete(c);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(bits_of_the_second_pass);
    RUN(rows_that_are_not_numbers);
    RUN(bits_of_many_keys);
    RUN(plans_serve_either);
    return test_end();
}
