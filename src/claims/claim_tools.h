/* SPDX-License-Identifier: MIT */
/* One convolution as attention, compared with the plain loop, for the claims about convolutions. */
#ifndef CLAIMS_CLAIM_TOOLS_H
#define CLAIMS_CLAIM_TOOLS_H

#include "base/rng.h"
#include "claims/claims.h"
#include "claims/convolution.h"

typedef struct conv_trial {
    double error;      /* largest difference from the convolution in f64 */
    double bound;      /* of the error */
    ptrdiff_t outputs; /* numbers compared */
    ptrdiff_t unequal; /* of them, those that differ from the loop in the same order and type */
} conv_trial;

/* Builds the heads of a convolution, runs them and compares. False if a call failed, which voids
 * the proof. */
bool proof_convolve(proof *p, const conv_spec *spec, const double *picture, conv_trial *trial);

/* The same with existing heads, whose positional codes may have been changed. */
bool proof_convolve_heads(proof *p, const conv_heads *heads, const double *picture,
                          conv_trial *trial);

/* Largest total weight that a query of a head gives to keys other than its most attended one. */
bool proof_leak(proof *p, const conv_heads *heads, const double *picture, double *leak);

/* Random numbers in [-1, 1), each of them exact in f32. */
void proof_fill(rng *r, double *x, ptrdiff_t count);

/* Largest |a - b|. */
double proof_difference(const double *a, const double *b, ptrdiff_t count);

/* Second half of claim 3: the number of heads that a convolution needs. False: the proof is void.
 */
bool prove_heads_needed(proof *p);

#endif
