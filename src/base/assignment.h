/* SPDX-License-Identifier: MIT */
/* Bipartite matching: every row gets a column of its own, so that the sum of costs is least. */
#ifndef BASE_ASSIGNMENT_H
#define BASE_ASSIGNMENT_H

enum { ASSIGNMENT_MAX = 64 };

/*
 * cost[rows][columns], 0 <= rows <= columns <= ASSIGNMENT_MAX. column_of[rows] receives the column
 * of each row; returns the sum of their costs. Of several best matchings the same costs always give
 * the same one. Costs that are not finite give some matching.
 */
double assignment_solve(const double *cost, int rows, int columns, int *column_of);

#endif
