/* SPDX-License-Identifier: MIT */
/*
 * mha-mpi train: "mha train" by all ranks together. Every rank computes some micro-batches of a
 * step, and mha_mpi_sum adds their gradients in the order in which one process alone does, so the
 * model has the same bits.
 *
 * Rank 0 writes the files and prints. What another rank says on stderr is kept, and printed only by
 * the lowest rank that fails: all of them would say the same.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi_program/job.h"
#include "program/train_request.h"

typedef struct mpi_team {
    mha_mpi_group *group;
    mha_mpi_sum *sum; /* of the current step; NULL: nothing was added yet */
    size_t count;
    int leaves;
    int first; /* the lowest rank that had an error, plus 1; 0: none had one */
} mpi_team;

/* ---------------------------------------------------------------- team ----- */

/* A step may have fewer leaves than the one before. */
static mha_status prepare(mpi_team *team, int leaves, size_t count)
{
    if (team->sum && team->leaves == leaves)
        return MHA_OK;
    mha_mpi_sum_free(team->sum);
    team->leaves = leaves;
    team->count = count;
    return mha_mpi_sum_create(&team->sum, team->group, (ptrdiff_t)count, leaves);
}

static mha_status add(void *context, int leaf, int leaves, const float *data, size_t count)
{
    mpi_team *const team = context;
    const mha_status status = prepare(team, leaves, count);
    return status ? status : mha_mpi_sum_add(team->sum, leaf, data);
}

static mha_status finish(void *context, mha_status mine, int leaves, float *total, size_t count)
{
    mpi_team *const team = context;
    if (!mine)
        mine = prepare(team, leaves, count);
    int number = -(int)mine;
    mha_status status = mha_mpi_agree(team->group, &number, NULL, 0);
    if (!status)
        status = (mha_status)-number;
    if (!status)
        return mha_mpi_sum_finish(team->sum, total);
    /* What was added belongs to a step that does not happen. */
    mha_mpi_sum_free(team->sum);
    team->sum = NULL;
    return status;
}

/* Also finds out who was the first: that rank prints what it has to say. */
static mha_status agree(void *context, int *number, uint64_t same)
{
    mpi_team *const team = context;
    int first = *number != 0 ? mha_mpi_group_rank(team->group) + 1 : 0;
    mha_status status = mha_mpi_agree(team->group, number, &same, sizeof same);
    if (!status && *number != 0 && team->first == 0) {
        status = mha_mpi_agree(team->group, &first, NULL, 0);
        team->first = first;
    }
    return status;
}

/* -------------------------------------------------------------- stderr ----- */

/* What this rank would print: nothing on stdout; stderr to a file without a name. Returns the real
 * stderr, or -1 if it could not be replaced. */
static int keep_quiet(FILE **kept)
{
    const int nothing = open("/dev/null", O_WRONLY);
    *kept = tmpfile();
    fflush(stderr);
    const int real = *kept ? dup(STDERR_FILENO) : -1;
    if (nothing >= 0) {
        dup2(nothing, STDOUT_FILENO);
        close(nothing);
    }
    if (real >= 0)
        dup2(fileno(*kept), STDERR_FILENO);
    return real;
}

/* Gives stderr back, and prints what was kept. */
static void speak(FILE *kept, int real, bool prints)
{
    char line[1024];
    fflush(stderr);
    if (real >= 0)
        dup2(real, STDERR_FILENO);
    if (kept && prints) {
        rewind(kept);
        while (fgets(line, sizeof line, kept))
            fputs(line, stderr);
    }
    if (kept)
        fclose(kept);
}

/* --------------------------------------------------------------- ranks ----- */

/* Unless the number of threads is chosen, the ranks of a machine share its cores. */
static void share_cores(void)
{
    MPI_Comm machine;
    int ranks = 1;
    char text[32];
    if (getenv("MHA_NUM_THREADS") || getenv("OMP_NUM_THREADS"))
        return;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    MPI_Comm_size(machine, &ranks);
    MPI_Comm_free(&machine);
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    snprintf(text, sizeof text, "%ld", cores > ranks ? cores / ranks : 1);
    setenv("MHA_NUM_THREADS", text, 1);
}

int mpi_train(mha_mpi_group *group, int argc, char **argv)
{
    mpi_team team = {.group = group};
    const int rank = mha_mpi_group_rank(group), ranks = mha_mpi_group_ranks(group);
    const training_team members = {rank, ranks, &team, add, finish, agree};
    FILE *kept = NULL;
    if (ranks == 1)
        return train_together(argc, argv, NULL);
    share_cores();
    const int real = rank > 0 ? keep_quiet(&kept) : -1;
    const int code = train_together(argc, argv, &members);
    int all = code;
    /* If the group is broken nobody can say who was the first. */
    const bool together = agree(&team, &all, 0) == MHA_OK;
    if (rank > 0)
        speak(kept, real, !together || team.first == rank + 1);
    mha_mpi_sum_free(team.sum);
    return together ? all : code != 0 ? code : 1;
}
