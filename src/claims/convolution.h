/* SPDX-License-Identifier: MIT */
/*
 * A convolution as multi-head attention: pixels are tokens, and each tap of the kernel is a head.
 *
 *      Y[q] = b + sum over taps t of X[q + t] W_t              convolution (cross-correlation)
 *      Y    = b + sum over heads h of A_h X W_V_h W_O_h        multi-head attention
 *
 * Head h looks from pixel q at pixel q + t(h), whatever the pixels hold, and W_V_h W_O_h = W_t(h).
 * What tells a head where to look is its code; a code also decides what lies beyond the border.
 *
 *      code       score of key k for query q, d = p(k) - p(q)    beyond the border it reads
 *      quadratic  -alpha |d - t|^2, a bias                       the nearest pixel
 *      absolute   the same up to a constant of the row, from     the nearest pixel
 *                 W_Q and W_K: no bias, a plain layer
 *      one-hot    beta where d = t, else 0, a bias               all pixels alike
 *      hard       a mask hides all but d = t                     nothing, which is 0
 *
 * Where a padding is not what the code has by itself, the picture is padded, and only the tokens
 * of the picture ask. Circular padding needs none of this for codes that are a bias or a mask:
 * distances then go round.
 */
#ifndef CLAIMS_CONVOLUTION_H
#define CLAIMS_CONVOLUTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mha/mha.h>

typedef enum conv_code { CONV_QUADRATIC, CONV_ABSOLUTE, CONV_ONE_HOT, CONV_HARD } conv_code;

/* CONV_VALID: only where all of the kernel lies on the picture. */
typedef enum conv_padding { CONV_REPLICATE, CONV_ZERO, CONV_CIRCULAR, CONV_VALID } conv_padding;

/* How W_t becomes W_V_h W_O_h. */
typedef enum conv_factoring {
    CONV_BY_OUTPUTS, /* W_V = W_t, W_O = I: heads as wide as the output */
    CONV_BY_INPUTS,  /* W_V = I, W_O = W_t: heads as wide as the input */
    CONV_BY_RANK     /* heads as wide as the largest rank of a W_t */
} conv_factoring;

/* Rows and columns, of a rectangle or a point. */
typedef struct conv_point {
    ptrdiff_t row, column;
} conv_point;

typedef struct conv_spec {
    conv_point picture, kernel; /* extents */
    ptrdiff_t inputs, outputs;  /* channels */
    ptrdiff_t stride, dilation;
    ptrdiff_t margin; /* CONV_VALID: pixels on every side that are looked at and give no output */
    conv_padding padding;
    conv_code code;
    conv_factoring factoring;
    double sharpness;      /* alpha or beta */
    mha_dtype type;        /* f32: a layer; f64: the operator between products in double */
    const double *weights; /* [taps][inputs][outputs], taps row by row */
    const double *bias;    /* [outputs]; NULL: none */
} conv_spec;

/* The layer that a spec leads to. */
typedef struct conv_heads {
    conv_spec spec;
    conv_point grid;   /* extents of the tokens: the picture, padded or not */
    conv_point origin; /* where on the grid the first query stands */
    bool padded, wraps;
    conv_point output; /* extents */
    ptrdiff_t E, H, D, Dv, L, S;
    double *q, *k, *v, *o; /* [H*D][E], [H*D][E], [H*Dv][E], [outputs][H*Dv] */
    double *bias;          /* [H][L][S]; NULL: none */
    uint8_t *mask;         /* [H][L][S], non-zero = attend; NULL: none */
    float *bias_f32;       /* of an f32 layer */
    mha_layer *layer;
} conv_heads;

/* Which of `extent` pixels in a row stands at `n`, which may lie outside; -1: none, it is 0. */
ptrdiff_t conv_source(conv_padding padding, ptrdiff_t n, ptrdiff_t extent);

/* Rows and columns of the output; 0 where the kernel is larger than a picture it must lie on. */
conv_point conv_output(const conv_spec *spec);

/* How far from its query the tap of a head is. */
conv_point conv_tap(const conv_spec *spec, ptrdiff_t head);

/* `weights` and `bias` of the spec must live as long as the heads. On error nothing is left. */
mha_status conv_heads_create(conv_heads *heads, const conv_spec *spec);
void conv_heads_free(conv_heads *heads);

/* Tokens of one picture [rows][columns][inputs]: keys [S][E] and queries [L][E]. */
void conv_tokens(const conv_heads *heads, const double *picture, double *keys, double *queries);

/* B pictures: keys [B][S][E], queries [B][L][E], y [B][L][outputs]. `weights` [B][H][L][S], or
 * NULL. With f32 everything is rounded on its way in. */
mha_status conv_run(const conv_heads *heads, ptrdiff_t B, const double *keys, const double *queries,
                    double *y, double *weights, mha_pool *pool);

/* --------------------------------------------------------------- the truth ----- */

typedef enum conv_arithmetic {
    CONV_F64,
    CONV_F32,      /* products and sums are rounded */
    CONV_F32_FUSED /* sums are rounded */
} conv_arithmetic;

/* What the library's products are made of here. */
conv_arithmetic conv_arithmetic_of(mha_dtype type);

/* The convolution by a plain loop, y [rows][columns][outputs]. Sums run over taps, then channels,
 * in the order of the layer's: with a hard code, not factored by rank, and up to 256 inputs, the
 * layer gives these numbers exactly. Picture, weights and bias are taken as they are. */
void conv_direct(const conv_spec *spec, conv_arithmetic arithmetic, const double *picture,
                 double *y);

/* Largest total of what a head gives to other keys, in units of what it gives to its tap. */
double conv_leak(const conv_heads *heads);

/* How far the output for these keys [S][E] can be from the convolution in exact numbers. */
double conv_bound(const conv_heads *heads, const double *keys);

#endif
