/* SPDX-License-Identifier: MIT */
/*
 * What is sent, counted between libmha_mpi and MPI, in runs, backward passes, steps of a spread
 * cache and sums: the bytes that plans say, the formulas of docs/mpi.md for even layouts, no
 * message above the limit, and nothing at all on one rank.
 */
#include "mpi/mpi_hooks.h"
#include "mpi/mpi_test.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t all_ranks(uint64_t x)
{
    uint64_t sum;
    MPI_Allreduce(&x, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

/* What the last calls have sent, and no call of MPI at all on one rank. */
static void check_sent(const mha_mpi_group *group, const char *what, uint64_t want)
{
    CHECK(hook.sent == want, "%s: %llu bytes instead of %llu", what, (unsigned long long)hook.sent,
          (unsigned long long)want);
    CHECK(mha_mpi_group_ranks(group) > 1 || (hook.calls == 0 && hook.tests == 0),
          "%s: one rank has called MPI", what);
}

/* A problem of which a plan knows what a backward pass sends: that of all three gradients. */
static spread *draw_problem(rng *r, unsigned has, const mha_mpi_group *group)
{
    for (;;) {
        spread *const s = spread_new(rng_next(r), has, 80, group);
        if (s->wants_q && s->wants_keys && s->gradients.d_o_type == MHA_F32)
            return s;
        spread_free(s);
    }
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
    spread *const s = draw_problem(&r, SPREAD_TYPES | SPREAD_LENGTHS | statistics, group);
    mha_mpi_plan *plan = NULL;
    CHECK(spread_run_alone(s, true) == MHA_OK, "alone");
    CHECK(mha_mpi_plan_create(&plan, group, &config, &s->shape, &s->queries, &s->keys) == MHA_OK,
          "plan");
    const mha_options o = spread_options(s, &s->local);
    for (int backward = 0; backward < 2; backward++) {
        char what[100];
        snprintf(what, sizeof what, "seed %llu, scheme %d, %s", (unsigned long long)seed,
                 (int)config.scheme, backward ? "backward" : "forward");
        hooks_reset();
        CHECK(spread_run(s, plan, backward, NULL) == MHA_OK, "%s: %s", what, s->message);
        check_sent(group, what, mha_mpi_plan_sent(plan, &o, backward));
        CHECK((size_t)hook.largest <= message_bytes, "a message of %d bytes", hook.largest);
        CHECK(all_ranks(hook.sent) == all_ranks(hook.received), "%s: bytes got lost", what);
    }
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

/* A call of the shape whose formulas are known: tokens that the ranks share evenly, of numbers that
 * do not matter. `more`: with the log-sum-exp, or its gradient. */
enum { B = 2, H = 24, G = 12, D = 8, Dv = 4, ROWS = 20 };

static void run_plan(const mha_mpi_plan *plan, bool backward, bool more)
{
    static float q[B * H * ROWS * D], k[B * G * ROWS * D], v[B * G * ROWS * Dv];
    static float o[B * H * ROWS * Dv], lse[B * H * ROWS], d_q[B * H * ROWS * D];
    static float d_k[B * G * ROWS * D], d_v[B * G * ROWS * Dv];
    mha_options options = {.size = sizeof options};
    if (backward || more)
        options.lse = mha_out_bhld(lse, H, ROWS, 1);
    const mha_view out = mha_view_bhld(o, H, ROWS, Dv), none = {0};
    const mha_gradients gradients = {.size = sizeof gradients,
                                     .d_o = out,
                                     .d_lse = more ? mha_view_bhld(lse, H, ROWS, 1) : none,
                                     .d_q = mha_out_bhld(d_q, H, ROWS, D),
                                     .d_k = mha_out_bhld(d_k, G, ROWS, D),
                                     .d_v = mha_out_bhld(d_v, G, ROWS, Dv)};
    const mha_view queries = mha_view_bhld(q, H, ROWS, D), keys = mha_view_bhld(k, G, ROWS, D);
    const mha_view values = mha_view_bhld(v, G, ROWS, Dv);
    const size_t size = mha_mpi_plan_work_size(plan, &options, 1, backward);
    void *const work = malloc(size);
    hooks_reset();
    const mha_status status =
        backward ? mha_mpi_plan_backward(plan, queries, keys, values, out, &options, &gradients,
                                         work, size, NULL)
                 : mha_mpi_plan_run(plan, queries, keys, values, mha_out_bhld(o, H, ROWS, Dv),
                                    &options, work, size, NULL);
    CHECK(status == MHA_OK, "%s", mha_status_string(status));
    free(work);
}

/* The table of docs/mpi.md in elements, times P. */
static uint64_t formula(mha_mpi_scheme scheme, uint64_t P, uint64_t Ph, bool backward)
{
    const uint64_t S = ROWS * P, keys = G * (D + Dv), rows = H * (D + 2 * Dv + 1);
    switch (scheme) {
    case MHA_MPI_GATHER:
    case MHA_MPI_RING:
        return (P - 1) * B * S * (backward ? keys + rows : keys);
    case MHA_MPI_ALL_TO_ALL:
        return (P - 1) * B * S * (backward ? 2 * keys + rows + H * D : keys + H * (D + Dv)) / P;
    default:
        return backward ? ((P - 1) * B * S * (keys + rows) + (Ph - 1) * B * S * (keys + H * D)) / Ph
                        : ((P - 1) * B * S * keys + (Ph - 1) * B * S * H * (D + Dv)) / Ph;
    }
}

static void check_formula(mha_mpi_group *group, mha_mpi_scheme scheme, int head_ranks)
{
    const int ranks = mha_mpi_group_ranks(group);
    const uint64_t P = (uint64_t)ranks, Ph = (uint64_t)head_ranks;
    const ptrdiff_t tokens = ROWS * (ptrdiff_t)ranks;
    const mha_shape shape = {.B = B, .H = H, .G = G, .L = tokens, .S = tokens, .D = D, .Dv = Dv};
    const mha_mpi_layout layout = {
        .size = sizeof layout, .split = MHA_MPI_ZIGZAG, .tokens = tokens};
    const mha_mpi_plan_config config = {
        .size = sizeof config, .scheme = scheme, .head_ranks = head_ranks, .chunk = 16};
    const mha_options plain = {.size = sizeof plain};
    mha_mpi_plan *plan = NULL;
    CHECK(mha_mpi_plan_create(&plan, group, &config, &shape, &layout, &layout) == MHA_OK, "plan");
    for (int backward = 0; backward < 2; backward++) {
        /* Each rank sends a P-th of what all send. */
        const uint64_t bytes = sizeof(float) * formula(scheme, P, Ph, backward) / P;
        /* The log-sum-exp comes back with the outputs; its gradient travels as the rows do. */
        const uint64_t others = backward ? P - 1 : Ph - 1;
        const uint64_t more = sizeof(float) * B * H * ROWS * others / Ph;
        char what[100];
        snprintf(what, sizeof what, "scheme %d, %d head ranks, %s", (int)scheme, head_ranks,
                 backward ? "backward" : "forward");
        run_plan(plan, backward, false);
        check_sent(group, what, bytes);
        CHECK(mha_mpi_plan_sent(plan, &plain, backward) == bytes + (backward ? more : 0),
              "%s: the plan says %llu", what,
              (unsigned long long)mha_mpi_plan_sent(plan, &plain, backward));
        run_plan(plan, backward, true);
        check_sent(group, what, bytes + more);
    }
    mha_mpi_plan_free(plan);
}

/* A step of a spread cache: H(Dv + 1) numbers for each query and each node that a rank holds alone,
 * to every other rank. Blocks of a power of two are one node each; the last may be incomplete. */
static void check_cache(mha_mpi_group *group)
{
    enum { CHUNK = 4, BLOCK = 2, ROUNDS = 3, QUERIES = 3 };
    const int ranks = mha_mpi_group_ranks(group), rank = mha_mpi_group_rank(group);
    const ptrdiff_t all = (ptrdiff_t)CHUNK * BLOCK * ROUNDS * ranks;
    static float numbers[B * H * QUERIES * D], o[B * H * QUERIES * Dv];
    float *const tokens = calloc((size_t)(all * G * D), sizeof *tokens);
    const mha_mpi_cache_config config = {.size = sizeof config,
                                         .sequences = B,
                                         .capacity = all,
                                         .chunk = CHUNK,
                                         .block = BLOCK,
                                         .G = G,
                                         .D = D,
                                         .Dv = Dv};
    const mha_shape shape = {.B = B, .H = H, .L = QUERIES};
    const mha_view k = mha_view_bhld(tokens, G, all, D), v = mha_view_bhld(tokens, G, all, Dv);
    mha_mpi_cache *cache = NULL;
    hooks_reset();
    CHECK(mha_mpi_cache_create(&cache, group, &config) == MHA_OK, "cache");
    /* The first sequence is full, the second lacks its last block and one token more. */
    const ptrdiff_t lengths[B] = {all, all - CHUNK * BLOCK - 1};
    for (ptrdiff_t b = 0; b < B; b++)
        CHECK(mha_mpi_cache_append(cache, b, lengths[b], k, MHA_F32, v, MHA_F32) == MHA_OK,
              "append");
    check_sent(group, "appending", 0);
    CHECK(mha_mpi_cache_attention(cache, NULL, &shape, mha_view_bhld(numbers, H, QUERIES, D),
                                  mha_out_bhld(o, H, QUERIES, Dv), NULL, NULL) == MHA_OK,
          "a step");
    const uint64_t nodes = 2 * ROUNDS - (rank == ranks - 1);
    check_sent(group, "a step of a cache",
               sizeof(float) * (uint64_t)(ranks - 1) * nodes * QUERIES * H * (Dv + 1));
    CHECK(all_ranks(hook.sent) == all_ranks(hook.received), "a cache: bytes got lost");
    mha_mpi_cache_free(cache);
    free(tokens);
}

/* A sum to which every rank adds a run of four leaves: 2(P-1)/P of the array. */
static void check_sum(mha_mpi_group *group)
{
    enum { EACH = 50, RUN = 4 };
    const int ranks = mha_mpi_group_ranks(group), rank = mha_mpi_group_rank(group);
    const ptrdiff_t count = EACH * (ptrdiff_t)ranks;
    float *const data = calloc((size_t)count, sizeof *data);
    mha_mpi_sum *sum = NULL;
    hooks_reset();
    CHECK(mha_mpi_sum_create(&sum, group, count, RUN * (ptrdiff_t)ranks) == MHA_OK, "sum");
    for (int n = 0; n < RUN; n++)
        CHECK(mha_mpi_sum_add(sum, RUN * rank + n, data) == MHA_OK, "add");
    CHECK(mha_mpi_sum_finish(sum, data) == MHA_OK, "finish");
    check_sent(group, "a sum",
               sizeof(float) * 2 * (uint64_t)(ranks - 1) * (uint64_t)count / (uint64_t)ranks);
    CHECK(all_ranks(hook.sent) == all_ranks(hook.received), "a sum: bytes got lost");
    mha_mpi_sum_free(sum);
    free(data);
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
    check_formula(group, MHA_MPI_GATHER, 1);
    check_formula(group, MHA_MPI_RING, 1);
    if (G % ranks == 0)
        check_formula(group, MHA_MPI_ALL_TO_ALL, ranks);
    for (int n = 1; n <= ranks; n++)
        if (ranks % n == 0 && G % n == 0)
            check_formula(group, MHA_MPI_GRID, n);
    mpi_test("a_step_of_a_cache_sends_its_nodes");
    check_cache(group);
    check_cache(brief);
    mpi_test("a_sum_sends_twice_the_array");
    check_sum(group);
    check_sum(brief);
    mha_mpi_group_free(brief);
    return mpi_test_end(group);
}
