/* SPDX-License-Identifier: MIT */
/* What verify and bench of mha-mpi work on, one problem of which this rank has some rows; and the
 * commands. */
#ifndef MHA_MPI_PROGRAM_JOB_H
#define MHA_MPI_PROGRAM_JOB_H

#include <mha/mha_mpi.h>

#include <stdbool.h>

/* From the command line. */
typedef struct job_request {
    ptrdiff_t tokens, heads, groups, width, count;
    ptrdiff_t link; /* Gb/s that a rank can send, for the model of a bench; 0: not known */
    mha_mpi_scheme scheme;
    mha_mpi_split split;
    bool full, backward; /* full: not causal */
} job_request;

/* [B][heads][rows][width], f32: of this rank, or of all tokens. */
typedef struct job_data {
    ptrdiff_t rows;
    float *q, *k, *v, *o, *lse, *d_o, *d_q, *d_k, *d_v;
} job_data;

typedef struct job {
    mha_shape shape;
    mha_options options;
    mha_mpi_layout layout;
    mha_mpi_group *group;
    mha_mpi_plan *plan;
    job_data whole, own;
    int64_t *tokens; /* of this rank */
    void *work;
    size_t work_size;
} job;

/* Makes the problem from the seed, on every rank alike. MHA_ERR_MEMORY, or what a plan says. */
mha_status job_create(job *j, mha_mpi_group *group, const job_request *request, uint64_t seed);
void job_free(job *j);

/* One run, or one backward pass after a run: over all ranks, or of the whole alone. */
mha_status job_run(job *j, bool backward);
mha_status job_run_alone(job *j, bool backward);

/* Rows of this rank whose bits are not those of the whole. */
ptrdiff_t job_differs(const job *j, bool backward);

int mpi_bench(mha_mpi_group *group, const job_request *request);
int mpi_verify(mha_mpi_group *group, const job_request *request);
/* argv[0] is "train". Returns the same exit code on all ranks, unless the group is broken. */
int mpi_train(mha_mpi_group *group, int argc, char **argv);

#endif
