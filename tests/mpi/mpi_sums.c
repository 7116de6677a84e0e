/* SPDX-License-Identifier: MIT */
/* Sums over ranks: the same bits, whichever rank adds which leaf and in which order, as on one
 * rank; leaves that are missing or there twice are refused everywhere. */
#include "mpi/mpi_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float element(uint64_t seed, ptrdiff_t leaf, ptrdiff_t n)
{
    rng r = {seed * 1000003 + (uint64_t)leaf * 7919 + (uint64_t)n};
    return (float)rng_normal(&r);
}

static void fill(float *to, uint64_t seed, ptrdiff_t leaf, ptrdiff_t count)
{
    for (ptrdiff_t n = 0; n < count; n++)
        to[n] = element(seed, leaf, n);
}

/* All leaves in ascending order by one rank. */
static void add_alone(mha_mpi_group *self, uint64_t seed, ptrdiff_t count, ptrdiff_t leaves,
                      float *data, float *total)
{
    mha_mpi_sum *sum = NULL;
    CHECK(mha_mpi_sum_create(&sum, self, count, leaves) == MHA_OK, "create");
    for (ptrdiff_t leaf = 0; leaf < leaves; leaf++) {
        fill(data, seed, leaf, count);
        CHECK(mha_mpi_sum_add(sum, leaf, data) == MHA_OK, "add");
    }
    CHECK(mha_mpi_sum_finish(sum, total) == MHA_OK, "finish");
    mha_mpi_sum_free(sum);
}

static void check_sum(uint64_t seed, mha_mpi_group *group, mha_mpi_group *self)
{
    rng r = {seed};
    const ptrdiff_t count = rng_between(&r, 0, 300), leaves = rng_between(&r, 1, 33);
    const int ranks = mha_mpi_group_ranks(group), rank = mha_mpi_group_rank(group);
    const bool in_blocks = rng_chance(&r, 50);
    float *const data = malloc(sizeof *data * (size_t)(count + 1));
    float *const want = calloc((size_t)count + 1, sizeof *want);
    float *const got = calloc((size_t)count + 1, sizeof *got);
    mha_mpi_sum *sum = NULL;
    add_alone(self, seed, count, leaves, data, want);
    CHECK(mha_mpi_sum_create(&sum, group, count, leaves) == MHA_OK, "create");
    for (int round = 0; round < 2; round++) {
        for (ptrdiff_t n = 0; n < leaves; n++) {
            const ptrdiff_t leaf = round ? leaves - 1 - n : n;
            const ptrdiff_t owner = in_blocks
                                        ? leaf * ranks / leaves
                                        : (leaf * 5 + (ptrdiff_t)(seed % (uint64_t)ranks)) % ranks;
            if (owner != rank)
                continue;
            fill(data, seed, leaf, count);
            CHECK(mha_mpi_sum_add(sum, leaf, data) == MHA_OK, "add");
            CHECK(mha_mpi_sum_add(sum, leaf, data) == MHA_ERR_LENGTH, "twice");
        }
        memset(got, 0, sizeof *got * (size_t)count);
        const mha_status status = mha_mpi_sum_finish(sum, got);
        CHECK(status == MHA_OK && memcmp(got, want, sizeof *got * (size_t)count) == 0,
              "seed %llu: %td numbers, %td leaves: %s", (unsigned long long)seed, count, leaves,
              status ? mha_status_string(status) : "other bits");
    }
    mha_mpi_sum_free(sum);
    free(data);
    free(want);
    free(got);
}

/* The tree adds pairs, so the sum is close to the true one. */
static void check_value(mha_mpi_group *self)
{
    enum { COUNT = 50, LEAVES = 21 };
    float data[COUNT], total[COUNT];
    add_alone(self, 3, COUNT, LEAVES, data, total);
    for (ptrdiff_t n = 0; n < COUNT; n++) {
        double sum = 0.0;
        for (ptrdiff_t leaf = 0; leaf < LEAVES; leaf++)
            sum += (double)element(3, leaf, n);
        CHECK(fabs((double)total[n] - sum) < 1e-5, "number %td is %g, not %g", n, (double)total[n],
              sum);
    }
}

static void check_refusals(mha_mpi_group *group)
{
    const int rank = mha_mpi_group_rank(group), ranks = mha_mpi_group_ranks(group);
    float x[4] = {1, 2, 3, 4}, total[4] = {7, 7, 7, 7};
    mha_mpi_sum *sum = NULL;
    CHECK(mha_mpi_sum_create(&sum, group, 4, 3) == MHA_OK, "create");
    if (rank == 0)
        CHECK(mha_mpi_sum_add(sum, 1, x) == MHA_OK, "add");
    CHECK(mha_mpi_sum_finish(sum, total) == MHA_ERR_LENGTH, "missing leaves");
    CHECK(total[0] == 7.0f, "a refused sum has written");
    if (rank == 0)
        CHECK(mha_mpi_sum_add(sum, 0, x) == MHA_OK, "add");
    if (rank == ranks - 1)
        CHECK(mha_mpi_sum_add(sum, 2, x) == MHA_OK, "add");
    CHECK(mha_mpi_sum_finish(sum, rank == ranks - 1 ? NULL : total) == MHA_ERR_NULL,
          "no room on one rank");
    CHECK(mha_mpi_sum_finish(sum, total) == MHA_OK && total[3] == 12.0f, "complete: %g",
          (double)total[3]);
    if (ranks > 1) {
        CHECK(rank > 1 || mha_mpi_sum_add(sum, 0, x) == MHA_OK, "add");
        if (rank == 0)
            CHECK(mha_mpi_sum_add(sum, 1, x) == MHA_OK && mha_mpi_sum_add(sum, 2, x) == MHA_OK,
                  "add");
        CHECK(mha_mpi_sum_finish(sum, total) == MHA_ERR_LENGTH, "a leaf on two ranks");
    }
    mha_mpi_sum_free(sum);
    CHECK(mha_mpi_sum_create(&sum, group, 4, 0) == MHA_ERR_SHAPE && !sum, "no leaves");
    CHECK(mha_mpi_sum_create(&sum, NULL, 4, 1) == MHA_ERR_NULL, "no group");
    CHECK(mha_mpi_sum_create(&sum, group, 4 + (rank == 0), 1) == MHA_OK, "create");
    if (rank == 0)
        CHECK(mha_mpi_sum_add(sum, 0, (float[5]){0}) == MHA_OK, "add");
    CHECK(ranks == 1 || mha_mpi_sum_finish(sum, (float[5]){0}) == MHA_ERR_AGREE, "other counts");
    mha_mpi_sum_free(sum);
}

int main(int argc, char **argv)
{
    const int count = argc > 1 ? atoi(argv[1]) : 60;
    mha_mpi_group *const group = mpi_test_begin(&argc, &argv, NULL);
    const mha_mpi_group_config short_config = {.size = sizeof short_config, .message_bytes = 100};
    mha_mpi_group *self = NULL, *brief = NULL;
    CHECK(mha_mpi_group_create(&self, MPI_COMM_SELF, NULL) == MHA_OK &&
              mha_mpi_group_create(&brief, MPI_COMM_WORLD, &short_config) == MHA_OK,
          "groups");
    mpi_test("sums_have_the_same_bits_on_any_number_of_ranks");
    for (int n = 0; n < count; n++)
        check_sum((uint64_t)n, n % 3 == 2 ? brief : group, self);
    mpi_test("a_sum_is_the_sum");
    check_value(self);
    mpi_test("leaves_are_there_once");
    check_refusals(group);
    mha_mpi_group_free(self);
    mha_mpi_group_free(brief);
    return mpi_test_end(group);
}
