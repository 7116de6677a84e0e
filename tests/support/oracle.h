/* SPDX-License-Identifier: MIT */
/*
 * The independent oracle of the tests: attention in double precision, one row at a time, written
 * from the public header alone. It shares no line with the library, so it can also judge the
 * library's own reference path.
 *
 *      numbers     f32, f16, bf16, f64 in memory <-> double, rounded to nearest even
 *      oracle      which keys a row attends to, and what the row must then be
 *      comparison  outputs in memory against the oracle, in units of the error bound
 */
#ifndef MHA_TEST_ORACLE_H
#define MHA_TEST_ORACLE_H

#include <mha/mha.h>

#include <stdbool.h>
#include <stddef.h>

/* One call of mha_attention(), all but the pool. Owns nothing. */
typedef struct problem {
    mha_shape shape;
    mha_view q, k, v;
    mha_out o;
    mha_options options;
} problem;

/* ---------------------------------------------------------------- numbers */

double number_get(mha_dtype type, const void *data, ptrdiff_t index);

/* Rounds to nearest even; overflows to infinity. */
void number_set(mha_dtype type, void *data, ptrdiff_t index, double value);

/* `value` as it reads back after number_set(). */
double number_round(mha_dtype type, double value);

/* ----------------------------------------------------------------- oracle */

/* Extents with their defaults filled in. */
ptrdiff_t oracle_groups(const problem *p);
ptrdiff_t oracle_value_width(const problem *p);

/* Queries and keys that batch b really has, and the key position of its query 0. */
ptrdiff_t oracle_queries(const problem *p, ptrdiff_t b);
ptrdiff_t oracle_keys(const problem *p, ptrdiff_t b);
ptrdiff_t oracle_offset(const problem *p, ptrdiff_t b);

/* Element index of row i of batch b and head h, packed or not. */
ptrdiff_t oracle_row_index(const mha_view *view, const int64_t *starts, ptrdiff_t b, ptrdiff_t h,
                           ptrdiff_t i);

/* Whether query i of head h attends to key j. */
bool oracle_allows(const problem *p, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j);

/*
 * What one row must be. A unit is what E counts in: u * sum_j p_j |v_j| * size for an output, with
 * size = 1 + max_j (sum_c |q_c k_jc| * scale + |bias_j|) over the attended keys (and the sink),
 * plus what underflow of exp() in the working precision may lose.
 */
typedef struct oracle_row {
    ptrdiff_t attended;
    double lse, lse_unit;
    double *o, *o_unit;             /* [Dv] */
    double *weights, *weights_unit; /* [S], in the mode the options ask for */
    double *scores, *sizes;         /* [S], scratch */
    double *q, *k;                  /* [D], scratch */
} oracle_row;

void oracle_row_init(oracle_row *row, const problem *p);
void oracle_row_free(oracle_row *row);
void oracle_row_compute(oracle_row *row, const problem *p, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i);

/* ------------------------------------------------------------- comparison */

typedef struct comparison {
    double limit; /* largest E allowed */
    double worst; /* largest E seen; INFINITY for a NaN or an infinity that should not be */
    ptrdiff_t failures;
    char first[200]; /* the first failure in words */
} comparison;

/* Distance of `got`, a number of `type` that was computed in f32 or f64 (`work`), from `want`, in
 * units. Half a spacing of a type other than `work` is free, because it is the rounding of the
 * store. INFINITY where NaN or infinity do not match. */
double oracle_error(mha_dtype type, mha_dtype work, double got, double want, double unit);

/* Compare every output in memory with the oracle. Only limit has to be set in `result`. */
void oracle_compare(const problem *p, comparison *result);

#endif
