/* SPDX-License-Identifier: MIT */
/*
 * mpi_faults EVERY [KIND]: calls of MPI that fail, the n-th on one rank, every n and every rank in
 * turn, in plans of every scheme, in a spread cache and in a sum. No rank hangs, all return an
 * error within the time limit, the group stays broken, and a new group works. Then calls that are
 * late, which change nothing. KIND: only this one, as listed below.
 */
#include "mpi/mpi_hooks.h"
#include "mpi/mpi_test.h"

#include <stdlib.h>

enum { LIMIT_MS = 250 };

/* What is run: a plan of a scheme, or what follows the schemes. */
enum { CACHE = MHA_MPI_RING + 1, SUM, KINDS };

static double now(void)
{
    return MPI_Wtime();
}

/* One run and one backward pass; the first error. With two teams if the ranks can be halved. */
static mha_status run_plan(spread *s, mha_mpi_group *group, mha_mpi_scheme scheme)
{
    const int halves = mha_mpi_group_ranks(group) % 2 == 0 ? 2 : 0;
    const mha_mpi_plan_config config = {.size = sizeof config,
                                        .scheme = scheme,
                                        .head_ranks = scheme == MHA_MPI_GRID ? halves : 0,
                                        .chunk = 16};
    mha_mpi_plan *plan = NULL;
    mha_status status =
        mha_mpi_plan_create(&plan, group, &config, &s->shape, &s->queries, &s->keys);
    for (int backward = 0; backward < 2 && !status; backward++)
        status = spread_run(s, plan, backward, NULL);
    mha_mpi_plan_free(plan);
    return status;
}

/* Tokens, and two steps over them. After an error MPI may still write to the outputs. */
static mha_status run_cache(mha_mpi_group *group)
{
    enum { TOKENS = 24, H = 2, D = 4 };
    static float tokens[TOKENS * D], q[H * D], o[H * D];
    const mha_mpi_cache_config config = {
        .size = sizeof config, .sequences = 1, .capacity = TOKENS, .chunk = 2, .G = 1, .D = D};
    const mha_shape shape = {.B = 1, .H = H, .L = 1};
    const mha_view all = mha_view_bhld(tokens, 1, TOKENS, D);
    mha_mpi_cache *cache = NULL;
    mha_status status = mha_mpi_cache_create(&cache, group, &config);
    if (!status)
        status = mha_mpi_cache_append(cache, 0, TOKENS, all, MHA_F32, all, MHA_F32);
    for (int n = 0; n < 2 && !status; n++)
        status = mha_mpi_cache_attention(cache, NULL, &shape, mha_view_bhld(q, H, 1, D),
                                         mha_out_bhld(o, H, 1, D), NULL, NULL);
    mha_mpi_cache_free(cache);
    return status;
}

/* A sum to which every rank adds two leaves. */
static mha_status run_sum(mha_mpi_group *group)
{
    enum { COUNT = 30 };
    static float data[COUNT], total[COUNT];
    const ptrdiff_t rank = mha_mpi_group_rank(group), ranks = mha_mpi_group_ranks(group);
    mha_mpi_sum *sum = NULL;
    mha_status status = mha_mpi_sum_create(&sum, group, COUNT, 2 * ranks);
    for (ptrdiff_t n = 0; n < 2 && !status; n++)
        status = mha_mpi_sum_add(sum, rank + n * ranks, data);
    if (!status)
        status = mha_mpi_sum_finish(sum, total);
    mha_mpi_sum_free(sum);
    return status;
}

static mha_status run_all(spread *s, mha_mpi_group *group, int kind)
{
    const mha_status status = kind == CACHE ? run_cache(group)
                              : kind == SUM ? run_sum(group)
                                            : run_plan(s, group, (mha_mpi_scheme)kind);
    /* A broken group says so at once, whatever it is asked. */
    if (status) {
        const double start = now();
        mha_mpi_plan *other = NULL;
        CHECK(mha_mpi_plan_create(&other, group, NULL, &s->shape, &s->queries, &s->keys) == status,
              "a broken group says something else");
        CHECK(now() - start < 0.1, "a broken group takes its time");
    }
    return status;
}

/* The ranks meet again, whatever has happened to the group. */
static void meet(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static bool is_loss(mha_status status)
{
    return status == MHA_ERR_MPI || status == MHA_ERR_TIMEOUT;
}

/* Returns whether call n, or with HOOK_TEST look n, was reached. */
static int check_fault(spread *s, int kind, hook_fault fault, int n, int wrong)
{
    const mha_mpi_group_config config = {.size = sizeof config, .timeout = LIMIT_MS * 1e-3};
    mha_mpi_group *group = NULL;
    int rank, reached, anywhere;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    meet();
    hooks_reset();
    if (rank == wrong) {
        hook.fault = fault;
        hook.at = n;
    }
    const double start = now();
    mha_status status = mha_mpi_group_create(&group, MPI_COMM_WORLD, &config);
    if (!status)
        status = run_all(s, group, kind);
    const double took = now() - start;
    reached = rank == wrong && (fault == HOOK_TEST ? hook.tests : hook.calls) >= n;
    hook.at = 0;
    MPI_Allreduce(&reached, &anywhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(rank != wrong || !reached || status == MHA_ERR_MPI, "call %d failed: %s", n,
          mha_status_string(status));
    /* The last calls of a rank may fail when the others have what they need. */
    CHECK(status == MHA_OK || is_loss(status), "call %d failed on rank %d: %s", n, wrong,
          mha_status_string(status));
    CHECK(took < 4.0 + 20 * LIMIT_MS * 1e-3, "call %d failed on rank %d: %g seconds", n, wrong,
          took);
    mha_mpi_group_free(group);
    return anywhere;
}

static void check_late(spread *s, mha_mpi_group *group, int kind)
{
    const int rank = mha_mpi_group_rank(group);
    for (int n = 1; n < 40; n += 7) {
        hooks_reset();
        hook.fault = HOOK_LATE;
        hook.at = rank == n % mha_mpi_group_ranks(group) ? n : 0;
        spread_clear(s);
        CHECK(run_all(s, group, kind) == MHA_OK, "a late call: %s", s->message);
        CHECK(kind >= MHA_MPI_RING || !spread_differs(s, true), "other bits after a late call");
    }
}

static void check_kind(mha_mpi_group *group, int kind, int every)
{
    static const char *const names[KINDS] = {"",
                                             "gather_survives_faults",
                                             "all_to_all_survives_faults",
                                             "grid_survives_faults",
                                             "ring_survives_faults",
                                             "a_cache_survives_faults",
                                             "a_sum_survives_faults"};
    const int ranks = mha_mpi_group_ranks(group);
    spread *const s = spread_new(4, 0, 40, group);
    CHECK(spread_run_alone(s, true) == MHA_OK, "alone");
    mpi_test(names[kind]);
    for (int wrong = 0; ranks > 1 && wrong < ranks; wrong++)
        for (int n = 1 + kind % every; check_fault(s, kind, HOOK_FAIL, n, wrong); n += every)
            ;
    /* How often MPI is looked at depends on how long the others take. */
    for (int n = 1; ranks > 1 && n < 40; n *= 3)
        check_fault(s, kind, HOOK_TEST, n, n % ranks);
    meet();
    hooks_reset();
    mpi_test("late_calls_change_nothing");
    check_late(s, group, kind);
    spread_free(s);
}

int main(int argc, char **argv)
{
    const int every = argc > 1 ? atoi(argv[1]) : 1, only = argc > 2 ? atoi(argv[2]) : 0;
    mha_mpi_group *const group = mpi_test_begin(&argc, &argv, NULL);
    for (int kind = MHA_MPI_GATHER; kind < KINDS; kind++)
        if (only == 0 || only == kind)
            check_kind(group, kind, every);
    return mpi_test_end(group);
}
