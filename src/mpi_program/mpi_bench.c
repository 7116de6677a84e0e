/* SPDX-License-Identifier: MIT */
/*
 * mha-mpi bench: what a call over all ranks costs. CPU time of a rank does not depend on what else
 * the machine does, so the sum over ranks is compared with that of one call alone: 1 means that
 * nothing is lost. With --link, the time in which the slowest rank had no CPU is printed beside
 * what a model of the transfer says; with fewer cores than ranks, or other load, it is not that of
 * the link.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "mpi_program/job.h"

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The best of some runs, of this rank: seconds of CPU, and seconds in which it had none. */
typedef struct cost {
    double cpu, waiting;
} cost;

static cost best_of(job *j, bool alone, bool backward, ptrdiff_t count, mha_status *status)
{
    cost best = {1e30, 1e30};
    for (ptrdiff_t n = 0; n < count && !*status; n++) {
        if (!alone)
            MPI_Barrier(MPI_COMM_WORLD);
        const double start = seconds(CLOCK_THREAD_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);
        *status = alone ? job_run_alone(j, backward) : job_run(j, backward);
        const double took = seconds(CLOCK_THREAD_CPUTIME_ID) - start;
        const double waited = seconds(CLOCK_MONOTONIC) - wall - took;
        best.cpu = took < best.cpu ? took : best.cpu;
        best.waiting = waited < best.waiting ? waited : best.waiting;
    }
    return best;
}

/*
 * The model of docs/mpi.md: the first heads must have arrived before anything is computed; then
 * each transfer goes on during the computation before it, and what takes longer is waited for. One
 * key/value head travels at a time, so a rank has as many steps as heads.
 */
static void print_waiting(const job_request *request, double sent, int ranks, double cpu,
                          double waiting)
{
    const double transfer = sent / ranks * 8e-9 / (double)request->link;
    const double steps =
        (double)request->groups / (request->scheme == MHA_MPI_ALL_TO_ALL ? (double)ranks : 1.0);
    const double n = steps < 1.0 ? 1.0 : steps, late = transfer > cpu ? transfer - cpu : 0.0;
    printf("waiting   measured %8.2f ms  model %8.2f ms  without overlap %8.2f ms  (%td Gb/s, "
           "computing %.2f ms)\n",
           1e3 * waiting, 1e3 * (transfer / n + late * (n - 1.0) / n), 1e3 * transfer,
           request->link, 1e3 * cpu);
}

static double reduce(double x, MPI_Op op)
{
    double all;
    MPI_Allreduce(&x, &all, 1, MPI_DOUBLE, op, MPI_COMM_WORLD);
    return all;
}

/* Pairs of queries and keys that this rank computes, if causal. */
static double work_of(const job *j, bool full)
{
    double pairs = 0.0;
    for (ptrdiff_t i = 0; i < j->own.rows; i++)
        pairs += full ? (double)j->shape.S : (double)j->tokens[i] + 1.0;
    return pairs;
}

static mha_status measure(job *j, const job_request *request, bool backward)
{
    const int ranks = mha_mpi_group_ranks(j->group);
    mha_status status = MHA_OK;
    /* One rank after another, so that they do not share caches with each other. */
    double alone = 0.0;
    for (int rank = 0; rank < ranks; rank++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == mha_mpi_group_rank(j->group) && rank == 0)
            alone = best_of(j, true, backward, request->count, &status).cpu;
    }
    const double one = reduce(alone, MPI_MAX);
    const cost best = best_of(j, false, backward, request->count, &status);
    const double mine = best.cpu;
    if (status)
        return status;
    const double sum = reduce(mine, MPI_SUM), most = reduce(mine, MPI_MAX);
    const double pairs = work_of(j, request->full), all_pairs = reduce(pairs, MPI_SUM);
    const double most_pairs = reduce(pairs, MPI_MAX);
    const double waiting = reduce(best.waiting, MPI_MAX);
    const double sent = reduce((double)mha_mpi_plan_sent(j->plan, &j->options, backward), MPI_SUM);
    if (mha_mpi_group_rank(j->group) == 0)
        printf("%-8s  alone %8.2f ms  all ranks %8.2f ms  ratio %.3f  busiest/mean %.3f (pairs "
               "%.3f)  sent %.3f MB\n",
               backward ? "backward" : "forward", 1e3 * one, 1e3 * sum, one / sum,
               most * ranks / sum, most_pairs * ranks / all_pairs, 1e-6 * sent);
    if (mha_mpi_group_rank(j->group) == 0 && request->link > 0 && !backward)
        print_waiting(request, sent, ranks, sum / ranks, waiting);
    return MHA_OK;
}

int mpi_bench(mha_mpi_group *group, const job_request *request)
{
    job j;
    char text[2000];
    mha_status status = job_create(&j, group, request, 1);
    if (!status && mha_mpi_group_rank(group) == 0 &&
        mha_mpi_plan_explain(j.plan, text, sizeof text) < sizeof text)
        printf("%s", text);
    if (!status)
        status = job_run(&j, false);
    if (!status)
        status = job_run_alone(&j, false);
    if (!status)
        status = measure(&j, request, false);
    if (!status && request->backward)
        status = measure(&j, request, true);
    if (status)
        fprintf(stderr, "mha-mpi: rank %d: %s\n", mha_mpi_group_rank(group),
                mha_status_string(status));
    job_free(&j);
    return status != MHA_OK;
}
