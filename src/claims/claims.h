/* SPDX-License-Identifier: MIT */
/*
 * Claims about attention, run live. A claim is a function that says what is claimed, computes it
 * with the library's own operator and layers, and asserts numbers against bounds:
 *
 *      proof_say(p, "Rows of equal norm: no token prefers another to itself.");
 *      proof_at_most(p, worst, bound, "largest a_ij / a_ii - 1");
 */
#ifndef CLAIMS_H
#define CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#include <mha/mha.h>

#include "format/json_writer.h"

typedef enum proof_kind { PROOF_SAY, PROOF_NOTE, PROOF_AT_MOST, PROOF_AT_LEAST } proof_kind;

enum { PROOF_TEXT = 96 };

/* A line of a proof: a sentence, a number, or a number held against a bound. */
typedef struct proof_row {
    proof_kind kind;
    char text[PROOF_TEXT];
    double value, bound;
    bool holds;
} proof_row;

typedef struct proof {
    uint64_t seed;
    proof_row *rows;
    int count, asserted, failed;
    mha_status status; /* of the first call that failed; the proof is then void */
} proof;

void proof_free(proof *p);

void proof_say(proof *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void proof_note(proof *p, double value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* NaN is neither. */
void proof_at_most(proof *p, double value, double bound, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void proof_at_least(proof *p, double value, double bound, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Whether a call went well; the first that did not is kept. */
bool proof_ok(proof *p, mha_status status);

/* Memory of zeros, for free(). NULL voids the proof. */
void *proof_room(proof *p, size_t size);

/* The larger; NaN if one of them is. */
double proof_worse(double a, double b);

/* Least squares: the energy of `target` [rows] that no sum of `count` columns [count][rows] has.
 * Destroys both. */
double proof_unexplained(double *columns, int count, double *target, ptrdiff_t rows);

/* Whether everything was computed and every assertion holds. */
bool proof_holds(const proof *p);

/* ---------------------------------------------------------------- claims ----- */

typedef struct claim {
    const char *name;
    const char *title;
    void (*prove)(proof *p);
} claim;

enum { CLAIM_COUNT = 6 };
extern const claim claims[CLAIM_COUNT];

void prove_scores(proof *p);
void prove_pointwise(proof *p);
void prove_convolution(proof *p);
void prove_places(proof *p);
void prove_cost(proof *p);
void prove_fold(proof *p);

#endif
