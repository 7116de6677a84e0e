/* SPDX-License-Identifier: MIT */
/* One convolution by attention, held against the loop: for the claims that need it. */
#ifndef CLAIMS_CLAIM_TOOLS_H
#define CLAIMS_CLAIM_TOOLS_H

#include "base/rng.h"
#include "claims/claims.h"
#include "claims/convolution.h"

typedef struct conv_trial {
    double error;      /* largest difference from the convolution in double */
    double bound;      /* what it may be */
    ptrdiff_t outputs; /* numbers compared */
    ptrdiff_t unequal; /* of them, not the bits of the loop in the same order and type */
} conv_trial;

/* False if a call failed: then the proof is void. */
bool proof_convolve(proof *p, const conv_spec *spec, const double *picture, conv_trial *trial);

/* The same with heads that are there already, whose codes may have been changed. */
bool proof_convolve_heads(proof *p, const conv_heads *heads, const double *picture,
                          conv_trial *trial);

/* Largest weight that a head gives to other keys than the one it gives most. */
bool proof_leak(proof *p, const conv_heads *heads, const double *picture, double *leak);

/* Numbers of f32 in [-1, 1). */
void proof_fill(rng *r, double *x, ptrdiff_t count);

/* Largest |a - b|. */
double proof_difference(const double *a, const double *b, ptrdiff_t count);

#endif
