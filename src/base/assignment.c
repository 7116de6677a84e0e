/* SPDX-License-Identifier: MIT */
/*
 * The Hungarian algorithm by shortest paths. Every row and column has a price, such that
 *
 *      cost - price of the row - price of the column >= 0,    and 0 for matched pairs
 *
 * Rows are matched one after another. For each, a shortest path leads from the row over matched
 * pairs to a free column; prices change along it so that the above stays true, and then its pairs
 * change places.
 */
#include "base/assignment.h"

#include <math.h>
#include <stdbool.h>

enum { NONE = -1 };

typedef struct matching {
    const double *cost;
    int rows, columns;
    double row_price[ASSIGNMENT_MAX], column_price[ASSIGNMENT_MAX];
    int row_of[ASSIGNMENT_MAX]; /* of a column; NONE: free */
} matching;

/* The paths from one row. */
typedef struct search {
    int row;
    double distance[ASSIGNMENT_MAX]; /* to a column that is not reached yet */
    int before[ASSIGNMENT_MAX];      /* the column before it on its path; NONE: the row itself */
    bool reached[ASSIGNMENT_MAX];
} search;

/* Shortens the paths by those over `row`, to which column `before` leads. */
static void relax(const matching *m, search *s, int row, int before)
{
    for (int c = 0; c < m->columns; c++) {
        const double left = m->cost[row * m->columns + c] - m->row_price[row] - m->column_price[c];
        if (!s->reached[c] && left < s->distance[c]) {
            s->distance[c] = left;
            s->before[c] = before;
        }
    }
}

/* The nearest column that is not reached, the first of equals. */
static int nearest(const matching *m, const search *s)
{
    int best = NONE;
    for (int c = 0; c < m->columns; c++)
        if (!s->reached[c] && (best == NONE || s->distance[c] < s->distance[best]))
            best = c;
    return best;
}

/* Moves the prices of all that is reached, so that the pair with the nearest column costs 0. */
static void move_prices(matching *m, search *s, double distance)
{
    m->row_price[s->row] += distance;
    for (int c = 0; c < m->columns; c++) {
        if (s->reached[c]) {
            m->row_price[m->row_of[c]] += distance;
            m->column_price[c] -= distance;
        } else {
            s->distance[c] -= distance;
        }
    }
}

static void match_row(matching *m, int row)
{
    search s = {.row = row};
    int column = NONE, last = row;
    for (int c = 0; c < m->columns; c++) {
        s.distance[c] = INFINITY;
        s.before[c] = NONE;
    }
    do {
        relax(m, &s, last, column);
        column = nearest(m, &s);
        move_prices(m, &s, s.distance[column]);
        s.reached[column] = true;
        last = m->row_of[column];
    } while (last != NONE);
    while (column != NONE) {
        const int before = s.before[column];
        m->row_of[column] = before == NONE ? row : m->row_of[before];
        column = before;
    }
}

double assignment_solve(const double *cost, int rows, int columns, int *column_of)
{
    matching m = {.cost = cost, .rows = rows, .columns = columns};
    double sum = 0.0;
    for (int c = 0; c < columns; c++)
        m.row_of[c] = NONE;
    for (int row = 0; row < rows; row++)
        match_row(&m, row);
    for (int c = 0; c < columns; c++)
        if (m.row_of[c] != NONE)
            column_of[m.row_of[c]] = c;
    for (int row = 0; row < rows; row++)
        sum += cost[row * columns + column_of[row]];
    return sum;
}
