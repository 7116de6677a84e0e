/* SPDX-License-Identifier: MIT */
/* mha-mpi verify: random problems over all ranks, compared bit by bit with one call on each rank.
 */
#include <stdio.h>

#include "base/rng.h"
#include "mpi_program/job.h"

static job_request draw(rng *r, const job_request *given)
{
    job_request x = *given;
    x.groups = rng_between(r, 1, 6);
    x.heads = x.groups * rng_between(r, 1, 3);
    x.width = rng_between(r, 1, 48);
    x.tokens = rng_between(r, 1, given->tokens);
    x.split = rng_chance(r, 50) ? MHA_MPI_ZIGZAG : MHA_MPI_BLOCKS;
    x.full = rng_chance(r, 30);
    if (given->scheme == MHA_MPI_AUTO)
        x.scheme = (mha_mpi_scheme)rng_between(r, MHA_MPI_AUTO, MHA_MPI_GRID);
    return x;
}

/* Rows that differ, -1 if the problem could not be computed; the same number on every rank. */
static long check(mha_mpi_group *group, const job_request *request, uint64_t seed)
{
    job j;
    long differs = 0, all = 0;
    mha_status status = job_create(&j, group, request, seed);
    for (int backward = 0; backward < 2 && !status; backward++) {
        status = job_run(&j, backward);
        if (!status)
            status = job_run_alone(&j, backward);
        differs += status ? 0 : (long)job_differs(&j, backward);
    }
    if (status) {
        fprintf(stderr, "mha-mpi: rank %d: %s\n", mha_mpi_group_rank(group),
                mha_status_string(status));
        differs = -1;
    }
    job_free(&j);
    /* A broken group cannot count any more. */
    if (status == MHA_ERR_MPI || status == MHA_ERR_TIMEOUT)
        return -1;
    MPI_Allreduce(&differs, &all, 1, MPI_LONG, differs < 0 ? MPI_MIN : MPI_SUM, MPI_COMM_WORLD);
    return all;
}

int mpi_verify(mha_mpi_group *group, const job_request *request)
{
    long wrong = 0;
    for (ptrdiff_t n = 0; n < request->count; n++) {
        rng r = rng_for(20260, (uint64_t)n);
        const job_request drawn = draw(&r, request);
        const long differs = check(group, &drawn, (uint64_t)n);
        if (differs < 0)
            return 1;
        wrong += differs > 0;
        if (differs > 0 && mha_mpi_group_rank(group) == 0)
            printf("problem %td: %ld rows differ\n", n, differs);
    }
    if (mha_mpi_group_rank(group) == 0)
        printf("%td problems on %d ranks (%s), forward and backward: %s\n", request->count,
               mha_mpi_group_ranks(group), mha_isa_name(),
               wrong ? "BITS DIFFER" : "every bit as on one machine");
    return wrong > 0;
}
