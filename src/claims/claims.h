/* SPDX-License-Identifier: MIT */
/*
 * Claims about attention, checked by running them. A claim is a function that states what is
 * claimed, computes it with the library's own operator and layers, and compares the numbers with
 * bounds:
 *
 *      proof_say(p, "Rows of equal norm: no token prefers another to itself.");
 *      proof_at_most(p, worst, bound, "largest a_ij / a_ii - 1");
 */
#ifndef CLAIMS_H
#define CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#include <mha/mha.h>

#include "claims/data_study.h"
#include "format/json_writer.h"

typedef enum proof_kind { PROOF_SAY, PROOF_NOTE, PROOF_AT_MOST, PROOF_AT_LEAST } proof_kind;

enum { PROOF_TEXT = 96 };

/* A line of a proof: a sentence, a number, or a number that is compared with a bound. */
typedef struct proof_row {
    proof_kind kind;
    char text[PROOF_TEXT];
    double value, bound;
    bool holds;
} proof_row;

typedef struct proof {
    uint64_t seed;
    mha_pool *pool;      /* of long claims; NULL: one thread */
    bool full;           /* the claim "data" in full, for minutes */
    study_result *study; /* NULL, or where the claim "data" leaves its numbers */
    void (*progress)(study_task task, int size); /* of the claim "data"; may be NULL */
    proof_row *rows;
    int count, asserted, failed;
    mha_status status; /* of the first call that failed; it makes the proof void */
} proof;

/* Frees the rows and resets everything but the seed. */
void proof_free(proof *p);

/* Adds a sentence, or a number for information. Texts are cut to PROOF_TEXT - 1 characters. */
void proof_say(proof *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void proof_note(proof *p, double value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds an assertion: value <= bound, or value >= bound. It fails if one of them is NaN. */
void proof_at_most(proof *p, double value, double bound, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void proof_at_least(proof *p, double value, double bound, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Whether a call succeeded. The status of the first call that failed is kept. */
bool proof_ok(proof *p, mha_status status);

/* Zeroed memory, to be released with free(). If there is none, returns NULL and voids the proof. */
void *proof_calloc(proof *p, size_t size);

/* The larger and the smaller of two numbers; NaN if one of them is NaN. */
double proof_larger(double a, double b);
double proof_smaller(double a, double b);

/* Least squares: the sum of squares that remains of `target` [rows] after the best combination of
 * the `count` columns [count][rows] has been subtracted. Destroys both. */
double proof_unexplained(double *columns, int count, double *target, ptrdiff_t rows);

/* Whether no call failed, there is an assertion, and every assertion holds. */
bool proof_holds(const proof *p);

/* ---------------------------------------------------------------- claims ----- */

typedef struct claim {
    const char *name;
    const char *title;
    void (*prove)(proof *p);
} claim;

enum { CLAIM_COUNT = 8 };
extern const claim claims[CLAIM_COUNT];

void prove_scores(proof *p);
void prove_pointwise(proof *p);
void prove_convolution(proof *p);
void prove_places(proof *p);
void prove_cost(proof *p);
void prove_fold(proof *p);
void prove_heads(proof *p);
void prove_data(proof *p);

/* The claim "data" by another plan than the short and the full one. */
void prove_data_by(proof *p, const study_plan *plan);

#endif
