/* SPDX-License-Identifier: MIT */
/*
 * One query row worked out in double precision, step by step as the public header words it, with
 * the magnitudes that bound its rounding errors. Plain loops: the second opinion on the library's
 * own f64 path, and through it on every fast one.
 */
#ifndef PROBLEM_ORACLE_H
#define PROBLEM_ORACLE_H

#include <stdbool.h>

#include "problem/problem.h"

typedef struct row_model {
    ptrdiff_t keys;           /* true number of keys; the arrays over j are S long */
    double lse;               /* -inf where no key is attended to, sink or not */
    double magnitude;         /* the largest of magnitudes[] over attended keys, and of the sink */
    bool *attended;           /* over j */
    double *raw;              /* over j: scale * q.k */
    double *capped;           /* over j: after the soft cap */
    double *score;            /* over j: after bias; -inf where masked */
    double *weight;           /* over j: softmax */
    double *magnitudes;       /* over j: scale * sum |q_c k_jc| + |bias| + |add_mask| + |ALiBi| */
    double *output;           /* over c: sum weight * v */
    double *output_magnitude; /* over c: sum weight * |v| */
    double *value_magnitude;  /* over c: sum |v| over attended keys */
} row_model;

/* Room for the rows of p. False if there is no memory. */
bool row_model_create(row_model *row, const problem *p);
void row_model_free(row_model *row);

/* Fill in the row (b, h, i): masks from `p`, numbers from its f64 twin. */
void row_model_compute(row_model *row, const problem *p, const problem *twin, ptrdiff_t b,
                       ptrdiff_t h, ptrdiff_t i);

#endif
