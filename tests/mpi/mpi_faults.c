/* SPDX-License-Identifier: MIT */
/*
 * Calls of MPI that fail: the n-th on one rank, every n and every rank in turn. No rank hangs, all
 * return an error within the time limit, the group stays broken, and a new group works. Then calls
 * that are late, which change nothing.
 */
#include "mpi/mpi_hooks.h"
#include "mpi/mpi_test.h"

#include <stdlib.h>

enum { LIMIT_MS = 250 };

static double now(void)
{
    return MPI_Wtime();
}

/* One run and one backward pass; the first error. */
static mha_status run_all(spread *s, mha_mpi_group *group, mha_mpi_scheme scheme)
{
    const mha_mpi_plan_config config = {.size = sizeof config, .scheme = scheme, .chunk = 16};
    mha_mpi_plan *plan = NULL;
    mha_status status =
        mha_mpi_plan_create(&plan, group, &config, &s->shape, &s->queries, &s->keys);
    for (int backward = 0; backward < 2 && !status; backward++)
        status = spread_run(s, plan, backward, NULL);
    /* A broken group says so at once, whatever it is asked. */
    if (status) {
        const double start = now();
        mha_mpi_plan *other = NULL;
        CHECK(mha_mpi_plan_create(&other, group, &config, &s->shape, &s->queries, &s->keys) ==
                  status,
              "a broken group says something else");
        CHECK(now() - start < 0.1, "a broken group takes its time");
    }
    mha_mpi_plan_free(plan);
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

/* Returns whether call n was reached. */
static int check_fault(spread *s, mha_mpi_scheme scheme, int n, int wrong)
{
    const mha_mpi_group_config config = {.size = sizeof config, .timeout = LIMIT_MS * 1e-3};
    mha_mpi_group *group = NULL;
    int rank, reached, anywhere;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    meet();
    hooks_reset();
    if (rank == wrong) {
        hook.fault = HOOK_FAIL;
        hook.at = n;
    }
    const double start = now();
    mha_status status = mha_mpi_group_create(&group, MPI_COMM_WORLD, &config);
    if (!status)
        status = run_all(s, group, scheme);
    const double took = now() - start;
    reached = rank == wrong && hook.calls >= n;
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

static void check_late(spread *s, mha_mpi_group *group, mha_mpi_scheme scheme)
{
    const int rank = mha_mpi_group_rank(group);
    for (int n = 1; n < 40; n += 7) {
        hooks_reset();
        hook.fault = HOOK_LATE;
        hook.at = rank == n % mha_mpi_group_ranks(group) ? n : 0;
        spread_clear(s);
        CHECK(run_all(s, group, scheme) == MHA_OK, "a late call: %s", s->message);
        CHECK(scheme == MHA_MPI_RING || !spread_differs(s, true), "other bits after a late call");
    }
}

int main(int argc, char **argv)
{
    const int every = argc > 1 ? atoi(argv[1]) : 1;
    mha_mpi_group *const group = mpi_test_begin(&argc, &argv, NULL);
    const int ranks = mha_mpi_group_ranks(group);
    static const mha_mpi_scheme schemes[] = {MHA_MPI_GATHER, MHA_MPI_ALL_TO_ALL, MHA_MPI_RING};
    static const char *const names[] = {"gather_survives_faults", "all_to_all_survives_faults",
                                        "ring_survives_faults"};
    for (int k = 0; k < 3; k++) {
        spread *const s = spread_new(4, 0, 40, group);
        CHECK(spread_run_alone(s, true) == MHA_OK, "alone");
        mpi_test(names[k]);
        for (int wrong = 0; ranks > 1 && wrong < ranks; wrong++)
            for (int n = 1 + k % every; check_fault(s, schemes[k], n, wrong); n += every)
                ;
        meet();
        hooks_reset();
        mpi_test("late_calls_change_nothing");
        check_late(s, group, schemes[k]);
        spread_free(s);
    }
    return mpi_test_end(group);
}
