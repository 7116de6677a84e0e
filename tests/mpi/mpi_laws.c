/* SPDX-License-Identifier: MIT */
/*
 * mpi_laws COUNT [SEED]: random problems, layouts and schemes. GATHER, ALL_TO_ALL and GRID have the
 * bits of one call, forward and backward; RING has the same bits on any number of ranks. Some
 * messages are very short. (What is sent is counted by mpi_counts.)
 */
#include "mpi/mpi_test.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_TOKENS = 200 };

/* A divisor of the number of ranks. */
static int draw_head_ranks(rng *r, int ranks)
{
    int n = (int)rng_between(r, 1, ranks);
    while (ranks % n != 0)
        n--;
    return n;
}

static mha_mpi_plan_config draw_config(rng *r, int ranks)
{
    const mha_mpi_plan_config config = {.size = sizeof config,
                                        .scheme = (mha_mpi_scheme)rng_below(r, 4),
                                        .head_ranks = draw_head_ranks(r, ranks),
                                        .heads = rng_chance(r, 50) ? rng_between(r, 1, 3) : 0};
    return config;
}

static const char *name_of(mha_mpi_scheme scheme)
{
    static const char *const names[] = {"AUTO", "GATHER", "ALL_TO_ALL", "GRID", "RING"};
    return names[scheme];
}

static void check_problem(uint64_t seed, mha_mpi_group *group, mha_pool *pool)
{
    rng r = {seed};
    const int ranks = mha_mpi_group_ranks(group);
    const mha_mpi_plan_config config = draw_config(&r, ranks);
    spread *const s = spread_new(rng_next(&r), SPREAD_EVERYTHING, MOST_TOKENS, group);
    mha_mpi_plan *plan = NULL;
    CHECK(spread_run_alone(s, true) == MHA_OK, "seed %llu: alone", (unsigned long long)seed);
    mha_status status =
        mha_mpi_plan_create(&plan, group, &config, &s->shape, &s->queries, &s->keys);
    CHECK(status == MHA_OK, "seed %llu: plan: %s", (unsigned long long)seed,
          mha_status_string(status));
    for (int backward = 0; backward <= spread_goes_back(s) && !status; backward++) {
        spread_clear(s);
        /* The backward pass reads what the run wrote, which is that of the whole. */
        if (backward)
            spread_run(s, plan, false, pool);
        status = spread_run(s, plan, backward, rng_chance(&r, 50) ? pool : NULL);
        const char *const differs = status ? NULL : spread_differs(s, backward);
        CHECK(status == MHA_OK && !differs, "seed %llu: %s, %s: %s %s", (unsigned long long)seed,
              name_of(config.scheme), backward ? "backward" : "forward",
              status ? s->message : "other bits in", differs ? differs : "");
    }
    mha_mpi_plan_free(plan);
    spread_free(s);
}

/* RING on all ranks has the bits of RING on one, and is close to one call. */
static void check_ring(uint64_t seed, mha_mpi_group *group, mha_mpi_group *self, mha_pool *pool)
{
    rng r = {seed};
    const mha_mpi_plan_config config = {
        .size = sizeof config, .scheme = MHA_MPI_RING, .chunk = rng_between(&r, 1, 70)};
    spread *const s =
        spread_new(rng_next(&r), SPREAD_EVERYTHING & ~(unsigned)(SPREAD_STATISTICS | SPREAD_F64),
                   MOST_TOKENS, group);
    mha_mpi_layout q = {.size = sizeof q, .tokens = s->q_tokens};
    mha_mpi_layout k = {.size = sizeof k, .tokens = s->k_tokens};
    mha_mpi_plan *plan = NULL, *alone = NULL;
    /* A gradient depends on the rounded output, and native weights are rounded. */
    const bool exact = s->shape.o_type == MHA_F32 && s->options.arithmetic == MHA_EXACT;
    const double limit = exact ? 1e-4 : 3e-2;
    s->only_sinks = true;
    CHECK(spread_run_alone(s, true) == MHA_OK, "seed %llu: alone", (unsigned long long)seed);
    CHECK(mha_mpi_plan_create(&plan, group, &config, &s->shape, &s->queries, &s->keys) == MHA_OK &&
              mha_mpi_plan_create(&alone, self, &config, &s->shape, &q, &k) == MHA_OK,
          "seed %llu: plan", (unsigned long long)seed);
    for (int backward = 0; backward <= spread_goes_back(s); backward++) {
        if (!backward)
            spread_clear(s);
        const mha_status status = spread_run(s, plan, backward, rng_chance(&r, 50) ? pool : NULL);
        const double apart = status ? 0.0 : spread_distance(s, backward);
        CHECK(status == MHA_OK, "seed %llu: %s", (unsigned long long)seed, s->message);
        CHECK(apart < limit, "seed %llu: %s is %g from one call", (unsigned long long)seed,
              backward ? "backward" : "forward", apart);
        CHECK(spread_run_on(s, &s->whole, alone, backward, NULL) == MHA_OK, "seed %llu: one rank",
              (unsigned long long)seed);
        const char *const differs = spread_differs(s, backward);
        CHECK(!differs, "seed %llu: RING %s: other bits in %s", (unsigned long long)seed,
              backward ? "backward" : "forward", differs ? differs : "");
    }
    mha_mpi_plan_free(plan);
    mha_mpi_plan_free(alone);
    spread_free(s);
}

int main(int argc, char **argv)
{
    const int count = argc > 1 ? atoi(argv[1]) : 100;
    const uint64_t base = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    mha_mpi_group *const group = mpi_test_begin(&argc, &argv, NULL);
    const mha_mpi_group_config short_config = {.size = sizeof short_config, .message_bytes = 1024};
    mha_mpi_group *brief = NULL, *self = NULL;
    mha_pool *pool = NULL;
    mpi_test("groups");
    CHECK(mha_mpi_group_create(&brief, MPI_COMM_WORLD, &short_config) == MHA_OK, "short messages");
    CHECK(mha_mpi_group_create(&self, MPI_COMM_SELF, NULL) == MHA_OK, "alone");
    CHECK(mha_pool_create(&pool, 2) == MHA_OK, "pool");
    mpi_test("random_problems_have_the_bits_of_one_call");
    for (int n = 0; n < count; n++)
        check_problem(base * 100000 + (uint64_t)n, n % 4 == 3 ? brief : group, pool);
    mpi_test("problems_that_once_failed");
    check_problem(2700322, group, pool); /* the gradient of a bias without elements, packed */
    mpi_test("ring_has_the_same_bits_on_any_number_of_ranks");
    for (int n = 0; n < count / 2; n++)
        check_ring(base * 100000 + 50000 + (uint64_t)n, n % 4 == 3 ? brief : group, self, pool);
    mha_pool_free(pool);
    mha_mpi_group_free(self);
    mha_mpi_group_free(brief);
    return mpi_test_end(group);
}
