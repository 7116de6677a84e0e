/* SPDX-License-Identifier: MIT */
/* Bipartite matching against all permutations, over random costs with and without ties. */
#include "support/test.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/assignment.h"

enum { SMALL = 6 };

/* The least sum over all ways to give rows [row, rows) different columns. */
static double brute_force(const double *cost, int rows, int columns, int row, unsigned used)
{
    double least = row == rows ? 0.0 : (double)INFINITY;
    for (int c = 0; c < columns && row < rows; c++) {
        if (used >> c & 1)
            continue;
        const double sum =
            cost[row * columns + c] + brute_force(cost, rows, columns, row + 1, used | 1u << c);
        least = sum < least ? sum : least;
    }
    return least;
}

/* Whether every row has a column of its own. */
static bool is_matching(const int *column_of, int rows, int columns)
{
    bool used[ASSIGNMENT_MAX] = {false};
    for (int row = 0; row < rows; row++) {
        if (column_of[row] < 0 || column_of[row] >= columns || used[column_of[row]])
            return false;
        used[column_of[row]] = true;
    }
    return true;
}

/* `levels` > 0: costs are small integers, so that many matchings are equal. */
static void check_random(test_random *random, int levels)
{
    const int columns = 1 + (int)test_random_below(random, SMALL);
    const int rows = (int)test_random_below(random, columns + 1);
    double cost[SMALL * SMALL], sum = 0.0;
    int column_of[SMALL], again[SMALL];
    for (int n = 0; n < rows * columns; n++)
        cost[n] = levels > 0 ? (double)(test_random_below(random, levels) - levels / 2)
                             : (double)test_random_normal(random);
    const double said = assignment_solve(cost, rows, columns, column_of);
    if (!CHECK(is_matching(column_of, rows, columns), "%d x %d: no matching", rows, columns))
        return;
    for (int row = 0; row < rows; row++)
        sum += cost[row * columns + column_of[row]];
    const double least = brute_force(cost, rows, columns, 0, 0);
    CHECK(fabs(sum - least) < 1e-12 && fabs(said - sum) < 1e-12, "%d x %d, %d levels: %g, not %g",
          rows, columns, levels, sum, least);
    CHECK(assignment_solve(cost, rows, columns, again) == said &&
              memcmp(again, column_of, (size_t)rows * sizeof *again) == 0,
          "another matching of the same costs");
}

static void matchings_are_the_best(void)
{
    test_random random = {test_seed(11)};
    const int64_t rounds = test_effort(3000);
    for (int64_t n = 0; n < rounds; n++) {
        check_random(&random, 0);
        check_random(&random, 2 + (int)(n % 4));
    }
}

/* Of equal costs the choice is fixed: row n has column n. */
static void ties_are_fixed(void)
{
    double cost[5 * 8] = {0};
    int column_of[5];
    CHECK(assignment_solve(cost, 5, 8, column_of) == 0.0, "a sum of zeros");
    for (int n = 0; n < 5; n++)
        CHECK(column_of[n] == n, "row %d has column %d", n, column_of[n]);
}

/* A large matrix whose best matching is known: a permutation of zeros among positive costs. */
static void large_ones_are_solved(void)
{
    test_random random = {test_seed(12)};
    static double cost[ASSIGNMENT_MAX * ASSIGNMENT_MAX];
    int order[ASSIGNMENT_MAX], column_of[ASSIGNMENT_MAX];
    for (int n = 0; n < ASSIGNMENT_MAX; n++) {
        const int other = (int)test_random_below(&random, n + 1);
        order[n] = order[other];
        order[other] = n;
    }
    for (int n = 0; n < ASSIGNMENT_MAX * ASSIGNMENT_MAX; n++)
        cost[n] = n % ASSIGNMENT_MAX == order[n / ASSIGNMENT_MAX]
                      ? 0.0
                      : 1.01 + (double)test_random_float(&random);
    CHECK(assignment_solve(cost, ASSIGNMENT_MAX, ASSIGNMENT_MAX, column_of) == 0.0, "a sum");
    CHECK(memcmp(order, column_of, sizeof order) == 0, "another matching");
}

/* A training that diverges has such costs; the answer is some matching, and it comes. */
static void strange_costs_end(void)
{
    static const double values[] = {NAN, INFINITY, -INFINITY, 0.0, 1e308};
    test_random random = {test_seed(13)};
    for (int round = 0; round < 500; round++) {
        double cost[SMALL * SMALL];
        int column_of[SMALL];
        for (int n = 0; n < SMALL * SMALL; n++)
            cost[n] = values[test_random_below(&random, 5)];
        assignment_solve(cost, SMALL - 2, SMALL, column_of);
        CHECK(is_matching(column_of, SMALL - 2, SMALL), "round %d", round);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(matchings_are_the_best);
    RUN(ties_are_fixed);
    RUN(large_ones_are_solved);
    RUN(strange_costs_end);
    return test_end();
}
