/* SPDX-License-Identifier: MIT */
/*
 * mha-mpi bench: what a call over all ranks costs. CPU time of a rank does not depend on what else
 * the machine does, so the sum over ranks is compared with that of one call alone: 1 means that
 * nothing is lost. Waiting is the wall-clock time of the slowest rank without its CPU time; on one
 * machine with fewer cores than ranks it says nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "mpi_program/job.h"

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The best of some runs: seconds of CPU of this rank. */
static double best_of(job *j, bool alone, bool backward, ptrdiff_t count, mha_status *status)
{
    double best = 1e30;
    for (ptrdiff_t n = 0; n < count && !*status; n++) {
        const double start = cpu_seconds();
        *status = alone ? job_run_alone(j, backward) : job_run(j, backward);
        const double took = cpu_seconds() - start;
        best = took < best ? took : best;
    }
    return best;
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
            alone = best_of(j, true, backward, request->count, &status);
    }
    const double one = reduce(alone, MPI_MAX);
    const double mine = best_of(j, false, backward, request->count, &status);
    if (status)
        return status;
    const double sum = reduce(mine, MPI_SUM), most = reduce(mine, MPI_MAX);
    const double pairs = work_of(j, request->full), all_pairs = reduce(pairs, MPI_SUM);
    const double most_pairs = reduce(pairs, MPI_MAX);
    const double sent = reduce((double)mha_mpi_plan_sent(j->plan, &j->options, backward), MPI_SUM);
    if (mha_mpi_group_rank(j->group) == 0)
        printf("%-8s  alone %8.2f ms  all ranks %8.2f ms  ratio %.3f  busiest/mean %.3f (pairs "
               "%.3f)  sent %.3f MB\n",
               backward ? "backward" : "forward", 1e3 * one, 1e3 * sum, one / sum,
               most * ranks / sum, most_pairs * ranks / all_pairs, 1e-6 * sent);
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
