/* SPDX-License-Identifier: MIT */
/*
 * 15. Many machines: one causal attention call over all ranks of an MPI job, with the bits of one.
 *
 *      mpirun -n 3 15_many_machines
 *
 * Every rank has the rows of some tokens, one run from the front and one from the back, so that all
 * have the same work. After the call each rank compares its rows with the same call computed alone,
 * which is only possible because the example is small. It also runs without mpirun, as one rank.
 */
#include <mha/mha_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 300, HEADS = 4, WIDTH = 16 };

/* Any numbers, the same on every rank. */
static float number(int tensor, ptrdiff_t token, ptrdiff_t c)
{
    return (float)((token * 7919 + c * 104729 + tensor * 31) % 1000) / 500.0f - 1.0f;
}

/* Rows of tokens as [rows, heads, width]; tokens NULL: all. */
static void fill(float *to, int tensor, const int64_t *tokens, ptrdiff_t rows)
{
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t c = 0; c < HEADS * WIDTH; c++)
            to[i * HEADS * WIDTH + c] = number(tensor, tokens ? (ptrdiff_t)tokens[i] : i, c);
}

static const mha_options causal = {.size = sizeof causal, .flags = MHA_CAUSAL};
static const mha_shape shape = {.B = 1, .H = HEADS, .L = TOKENS, .S = TOKENS, .D = WIDTH};

/* The rows of this rank, computed with all others. */
static mha_status attend(const mha_mpi_plan *plan, const int64_t *tokens, ptrdiff_t rows, float *o)
{
    static float q[TOKENS * HEADS * WIDTH], k[TOKENS * HEADS * WIDTH], v[TOKENS * HEADS * WIDTH];
    const size_t size = mha_mpi_plan_work_size(plan, &causal, 1, 0);
    void *const work = malloc(size);
    fill(q, 0, tokens, rows);
    fill(k, 1, tokens, rows);
    fill(v, 2, tokens, rows);
    const mha_status status =
        mha_mpi_plan_run(plan, mha_view_blhd(q, HEADS, rows, WIDTH),
                         mha_view_blhd(k, HEADS, rows, WIDTH), mha_view_blhd(v, HEADS, rows, WIDTH),
                         mha_out_blhd(o, HEADS, rows, WIDTH), &causal, work, size, NULL);
    free(work);
    return status;
}

/* How many of the rows have the bits of one call on this machine alone. */
static ptrdiff_t compare(const int64_t *tokens, ptrdiff_t rows, const float *o)
{
    static float q[TOKENS * HEADS * WIDTH], k[TOKENS * HEADS * WIDTH], v[TOKENS * HEADS * WIDTH];
    static float whole[TOKENS * HEADS * WIDTH];
    ptrdiff_t same = 0;
    fill(q, 0, NULL, TOKENS);
    fill(k, 1, NULL, TOKENS);
    fill(v, 2, NULL, TOKENS);
    if (mha_attention(&shape, mha_view_blhd(q, HEADS, TOKENS, WIDTH),
                      mha_view_blhd(k, HEADS, TOKENS, WIDTH),
                      mha_view_blhd(v, HEADS, TOKENS, WIDTH),
                      mha_out_blhd(whole, HEADS, TOKENS, WIDTH), &causal, NULL))
        return -1;
    for (ptrdiff_t i = 0; i < rows; i++)
        same += memcmp(o + i * HEADS * WIDTH, whole + tokens[i] * HEADS * WIDTH,
                       sizeof(float) * HEADS * WIDTH) == 0;
    return same;
}

int main(int argc, char **argv)
{
    static float o[TOKENS * HEADS * WIDTH];
    static int64_t tokens[TOKENS];
    const mha_mpi_layout layout = {
        .size = sizeof layout, .split = MHA_MPI_ZIGZAG, .tokens = TOKENS};
    mha_mpi_group *group = NULL;
    mha_mpi_plan *plan = NULL;
    char text[2000];
    MPI_Init(&argc, &argv);
    mha_status status = mha_mpi_group_create(&group, MPI_COMM_WORLD, NULL);
    if (!status)
        status = mha_mpi_plan_create(&plan, group, NULL, &shape, &layout, &layout);
    const int rank = mha_mpi_group_rank(group);
    const ptrdiff_t rows = mha_mpi_rows(group, &layout, rank, tokens);
    if (!status)
        status = attend(plan, tokens, rows, o);
    const ptrdiff_t same = status ? -1 : compare(tokens, rows, o);
    if (!status && rank == 0 && mha_mpi_plan_explain(plan, text, sizeof text) < sizeof text)
        printf("%s", text);
    printf("rank %d: %s; %td of %td rows have the bits of one call\n", rank,
           mha_status_string(status), same, rows);
    mha_mpi_plan_free(plan);
    mha_mpi_group_free(group);
    MPI_Finalize();
    return status != MHA_OK || same != rows;
}
