/* SPDX-License-Identifier: MIT */
/*
 * What is sent, counted between libmha_mpi and MPI: the bytes that plans say, the formulas of
 * docs/mpi.md for even layouts, no message above the limit, and nothing at all on one rank.
 */
#include "mpi/mpi_hooks.h"
#include "mpi/mpi_test.h"

#include <stdlib.h>

static uint64_t all_ranks(uint64_t x)
{
    uint64_t sum;
    MPI_Allreduce(&x, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static void check_plan(uint64_t seed, mha_mpi_group *group, size_t message_bytes)
{
    rng r = {seed};
    const int ranks = mha_mpi_group_ranks(group);
    const mha_mpi_plan_config config = {.size = sizeof config,
                                        .scheme = (mha_mpi_scheme)rng_between(&r, 1, 4),
                                        .head_ranks = rng_chance(&r, 50) ? 1 : ranks,
                                        .chunk = rng_between(&r, 1, 60)};
    const unsigned statistics = config.scheme == MHA_MPI_RING ? 0 : SPREAD_STATISTICS;
    spread *const s =
        spread_new(rng_next(&r), SPREAD_TYPES | SPREAD_LENGTHS | statistics, 80, group);
    mha_mpi_plan *plan = NULL;
    CHECK(spread_run_alone(s, true) == MHA_OK, "alone");
    CHECK(mha_mpi_plan_create(&plan, group, &config, &s->shape, &s->queries, &s->keys) == MHA_OK,
          "plan");
    const mha_options o = spread_options(s, &s->local);
    hooks_reset();
    CHECK(spread_run(s, plan, false, NULL) == MHA_OK, "run: %s", s->message);
    const uint64_t said = mha_mpi_plan_sent(plan, &o, 0), sent = hook.sent;
    CHECK(sent == said, "seed %llu, scheme %d: %llu bytes, the plan says %llu",
          (unsigned long long)seed, (int)config.scheme, (unsigned long long)sent,
          (unsigned long long)said);
    CHECK((size_t)hook.largest <= message_bytes, "a message of %d bytes", hook.largest);
    CHECK(all_ranks(hook.sent) == all_ranks(hook.received), "bytes got lost");
    CHECK(ranks > 1 || (hook.calls == 0 && hook.tests == 0), "one rank has called MPI");
    mha_mpi_plan_free(plan);
    spread_free(s);
}

/* Weights of one head of some rows: its keys come to all ranks, besides what a run sends. */
static void check_weights(mha_mpi_group *group, mha_mpi_scheme scheme)
{
    static const int64_t head = 3, rows[] = {2, 0};
    const ptrdiff_t P = mha_mpi_group_ranks(group), tokens = 5 * P;
    const mha_shape shape = {.B = 2, .H = 4, .G = 2, .L = tokens, .S = tokens, .D = 8};
    const mha_mpi_layout layout = {.size = sizeof layout, .tokens = tokens};
    const mha_mpi_plan_config config = {
        .size = sizeof config, .scheme = scheme, .heads = 1, .chunk = 4};
    const mha_options plain = {.size = sizeof plain};
    mha_options o = plain;
    mha_mpi_plan *plan = NULL;
    float *const q = calloc((size_t)(3 * 2 * 4 * 5 * 8), sizeof *q), *const k = q + 2 * 4 * 5 * 8;
    float *const to = calloc((size_t)(2 * 2 * tokens + 2 * 4 * 5 * 8), sizeof *to);
    float *const out = to + 2 * 2 * tokens;
    CHECK(mha_mpi_plan_create(&plan, group, &config, &shape, &layout, &layout) == MHA_OK, "plan");
    const uint64_t without = mha_mpi_plan_sent(plan, &plain, 0);
    o.weights = mha_out_bhld(to, 1, 2, tokens);
    o.weights_heads = &head;
    o.weights_head_count = 1;
    o.weights_rows = rows;
    o.weights_row_count = 2;
    const size_t size = mha_mpi_plan_work_size(plan, &o, 1, 0);
    void *const work = malloc(size);
    hooks_reset();
    CHECK(mha_mpi_plan_run(plan, mha_view_bhld(q, 4, 5, 8), mha_view_bhld(k, 2, 5, 8),
                           mha_view_bhld(k, 2, 5, 8), mha_out_bhld(out, 4, 5, 8), &o, work, size,
                           NULL) == MHA_OK,
          "weights");
    const uint64_t keys = (uint64_t)(P - 1) * 2 * 5 * 8 * sizeof(float);
    CHECK(hook.sent == without + keys && mha_mpi_plan_sent(plan, &o, 0) == hook.sent,
          "scheme %d: %llu bytes instead of %llu", (int)scheme, (unsigned long long)hook.sent,
          (unsigned long long)(without + keys));
    mha_mpi_plan_free(plan);
    free(work);
    free(to);
    free(q);
}

/* Elements of f32 that all ranks send together, for tokens that the ranks share evenly. */
static void check_formula(mha_mpi_group *group, mha_mpi_scheme scheme, int head_ranks,
                          bool backward)
{
    const uint64_t P = (uint64_t)mha_mpi_group_ranks(group), Ph = (uint64_t)head_ranks;
    const uint64_t B = 2, H = 24, G = 12, D = 8, Dv = 4, S = 20 * P;
    const mha_shape shape = {
        .B = 2, .H = 24, .G = 12, .L = (ptrdiff_t)S, .S = (ptrdiff_t)S, .D = 8, .Dv = 4};
    const mha_mpi_layout layout = {
        .size = sizeof layout, .split = MHA_MPI_ZIGZAG, .tokens = (ptrdiff_t)S};
    const mha_mpi_plan_config config = {
        .size = sizeof config, .scheme = scheme, .head_ranks = head_ranks, .chunk = 16};
    const mha_options o = {.size = sizeof o};
    mha_mpi_plan *plan = NULL;
    CHECK(mha_mpi_plan_create(&plan, group, &config, &shape, &layout, &layout) == MHA_OK, "plan");
    const uint64_t got = all_ranks(mha_mpi_plan_sent(plan, &o, backward));
    /* A rank has S/P rows; every key reaches the P/Ph ranks that share its head, and the rows of a
     * team their Ph head ranks. A pretended backward pass has a gradient of the log-sum-exp. */
    const uint64_t keys = B * S * G * (D + Dv), rows = B * S * H;
    uint64_t want;
    if (scheme == MHA_MPI_RING)
        want = (P - 1) * (backward ? keys + rows * (D + 2 * Dv + 2) : keys);
    else if (backward)
        want = (keys + rows * (D + 2 * Dv + 2)) * (P - 1) / Ph + (rows * D + keys) * (Ph - 1) / Ph;
    else
        want = keys * (P - 1) / Ph + rows * (D + Dv) * (Ph - 1) / Ph;
    CHECK(12 % head_ranks != 0 || got == 4 * want,
          "scheme %d, %d head ranks, backward %d: %llu, not %llu", (int)scheme, head_ranks,
          backward, (unsigned long long)got, (unsigned long long)(4 * want));
    mha_mpi_plan_free(plan);
}

int main(int argc, char **argv)
{
    enum { BRIEF = 1024 };
    const int count = argc > 1 ? atoi(argv[1]) : 40;
    mha_mpi_group *const group = mpi_test_begin(&argc, &argv, NULL);
    const mha_mpi_group_config brief_config = {.size = sizeof brief_config, .message_bytes = BRIEF};
    mha_mpi_group *brief = NULL;
    const int ranks = mha_mpi_group_ranks(group);
    CHECK(mha_mpi_group_create(&brief, MPI_COMM_WORLD, &brief_config) == MHA_OK, "group");
    mpi_test("plans_say_what_is_sent");
    for (int n = 0; n < count; n++)
        check_plan((uint64_t)n, n % 2 ? brief : group, n % 2 ? BRIEF : (size_t)1 << 28);
    mpi_test("weights_send_keys");
    for (mha_mpi_scheme scheme = MHA_MPI_GATHER; scheme <= MHA_MPI_RING; scheme++)
        check_weights(group, scheme);
    mpi_test("volumes_are_the_formulas");
    for (int backward = 0; backward < 2; backward++) {
        check_formula(group, MHA_MPI_GATHER, 1, backward);
        check_formula(group, MHA_MPI_RING, 1, backward);
        if (12 % ranks == 0)
            check_formula(group, MHA_MPI_ALL_TO_ALL, ranks, backward);
        for (int n = 1; n <= ranks; n++)
            if (ranks % n == 0 && 12 % n == 0)
                check_formula(group, MHA_MPI_GRID, n, backward);
    }
    mha_mpi_group_free(brief);
    return mpi_test_end(group);
}
