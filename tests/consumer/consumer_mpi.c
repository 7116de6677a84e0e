/* SPDX-License-Identifier: MIT */
/* What a program of several machines sees of the installed libmha_mpi: a plan, and a run. */
#include <mha/mha_mpi.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    enum { TOKENS = 8, WIDTH = 4 };
    const mha_shape shape = {.B = 1, .H = 1, .L = TOKENS, .S = TOKENS, .D = WIDTH};
    const mha_mpi_layout layout = {.size = sizeof layout, .tokens = TOKENS};
    static float x[TOKENS * WIDTH], o[TOKENS * WIDTH];
    mha_mpi_group *group;
    mha_mpi_plan *plan;
    MPI_Init(&argc, &argv);
    for (int n = 0; n < TOKENS * WIDTH; n++)
        x[n] = (float)n;
    if (mha_mpi_group_create(&group, MPI_COMM_WORLD, NULL) ||
        mha_mpi_plan_create(&plan, group, NULL, &shape, &layout, &layout))
        return 1;
    const ptrdiff_t rows = mha_mpi_rows(group, &layout, mha_mpi_group_rank(group), NULL);
    const mha_view view = mha_view_bhld(x, 1, rows, WIDTH);
    const size_t size = mha_mpi_plan_work_size(plan, NULL, 1, 0);
    void *const work = malloc(size);
    const mha_status status = mha_mpi_plan_run(
        plan, view, view, view, mha_out_bhld(o, 1, rows, WIDTH), NULL, work, size, NULL);
    printf("%s, %g\n", mha_status_string(status), (double)o[0]);
    free(work);
    mha_mpi_plan_free(plan);
    mha_mpi_group_free(group);
    MPI_Finalize();
    return status != MHA_OK || o[0] == 0.0f;
}
