/* SPDX-License-Identifier: MIT */
/*
 * A convolution by heads that attend to several taps at once. Their weights depend on positions
 * only: head h gives tap t the weight share[h][t] >= 0, and its weights sum to 1. So the layer is
 *
 *      Y[q] = sum over heads h, taps t of share[h][t] X[q + t] M_h,     M_h = W_V_h W_O_h
 *
 * which is the convolution with the taps W_t = sum over h of share[h][t] M_h. Seen as a matrix with
 * a row for each tap and a column for each pair of an input and an output channel, W = share^T M
 * has at most the rank of the number of heads: at least rank(W) heads are needed. rank(W) + 1
 * suffice.
 */
#ifndef CLAIMS_CONVOLUTION_MIXED_H
#define CLAIMS_CONVOLUTION_MIXED_H

#include "claims/convolution.h"

enum { MIXED_TAPS_MAX = 49, MIXED_PATHS_MAX = 12, MIXED_HEADS_MAX = MIXED_PATHS_MAX + 1 };

/* A path is a pair of an input and an output channel. */
typedef struct conv_mixture {
    ptrdiff_t heads, taps, paths;
    double share[MIXED_HEADS_MAX * MIXED_TAPS_MAX];   /* [heads][taps] */
    double matrix[MIXED_HEADS_MAX * MIXED_PATHS_MAX]; /* [heads][inputs][outputs] */
} conv_mixture;

/* Any kernel of one input and one output channel, exactly: a head for the positive taps and one for
 * the negative taps, with |tap| / sum |tap| as weights and plus or minus the sum as its matrix. A
 * sign that no tap has needs no head; a kernel of zeros has one head with a matrix of zero. */
conv_mixture conv_mix_by_sign(const conv_spec *spec);

/*
 * The nearest kernel of this rank, in rank + 1 heads; the kernel itself, if it has no larger rank.
 * With the right singular vectors v_i of W, W = sum_i (W v_i) v_i^T. Weights must not be negative:
 * head i has those of W v_i plus a constant, and one more head, with equal weights, takes the
 * constants away again. `rank` is at most the number of paths, MIXED_PATHS_MAX.
 */
conv_mixture conv_mix_by_rank(const conv_spec *spec, ptrdiff_t rank);

/* Singular values of W, descending, `values` [inputs * outputs]; zeros beyond the taps' number. */
void conv_singular_values(const conv_spec *spec, double *values);

/* The attention layer. The padding must be replicate or circular and the stride 1; the other
 * settings of the spec are those of its convolution. The mixture must live as long as the heads. */
mha_status conv_mixed_heads(conv_heads *heads, const conv_spec *spec, const conv_mixture *m);

/* What rounding may do to outputs from keys [S][E], in the type of the heads. */
double conv_mixed_bound(const conv_heads *heads, const conv_mixture *m, const double *keys);

#endif
