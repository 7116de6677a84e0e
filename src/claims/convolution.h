/* SPDX-License-Identifier: MIT */
/*
 * A convolution as multi-head attention: pixels are tokens, and each tap of the kernel is a head.
 *
 *      Y[q] = b + sum over taps t of X[q + t] W_t              convolution (cross-correlation)
 *      Y    = b + sum over heads h of A_h X W_V_h W_O_h        multi-head attention
 *
 * In head h, pixel q attends to pixel q + t(h), whatever the pixels hold, and W_V_h W_O_h = W_t(h).
 * The positional code of a head says where it attends; it also decides what it reads where the tap
 * lies outside the picture.
 *
 *      code       score of key k for query q, d = p(k) - p(q)    outside the picture it reads
 *      quadratic  -alpha |d - t|^2, a bias                       the nearest pixel
 *      absolute   the same up to a constant of the row, from     the nearest pixel
 *                 W_Q and W_K: no bias, a plain layer
 *      one-hot    beta where d = t, else 0, a bias               the mean of all pixels
 *      hard       all keys but d = t are masked                  0, the row is fully masked
 *
 * For any other padding the picture is padded, and only the pixels of the picture are queries. For
 * circular padding with a bias or a mask this is not needed: distances wrap around.
 */
#ifndef CLAIMS_CONVOLUTION_H
#define CLAIMS_CONVOLUTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mha/mha.h>

typedef enum conv_code { CONV_QUADRATIC, CONV_ABSOLUTE, CONV_ONE_HOT, CONV_HARD } conv_code;

/* CONV_VALID: outputs only where the whole kernel lies on the picture. */
typedef enum conv_padding { CONV_REPLICATE, CONV_ZERO, CONV_CIRCULAR, CONV_VALID } conv_padding;

/* How W_t is factored into W_V_h W_O_h. */
typedef enum conv_factoring {
    CONV_BY_OUTPUTS, /* W_V = W_t, W_O = I: heads as wide as the output */
    CONV_BY_INPUTS,  /* W_V = I, W_O = W_t: heads as wide as the input */
    CONV_BY_RANK     /* any factors: heads as wide as the largest rank of a W_t */
} conv_factoring;

/* Rows and columns, of a rectangle or a point. */
typedef struct conv_point {
    ptrdiff_t row, column;
} conv_point;

typedef struct conv_spec {
    conv_point picture, kernel; /* extents */
    ptrdiff_t inputs, outputs;  /* channels */
    ptrdiff_t stride, dilation;
    ptrdiff_t margin; /* CONV_VALID: pixels on every side that are read but give no output */
    conv_padding padding;
    conv_code code;
    conv_factoring factoring;
    double sharpness;      /* alpha or beta of the code */
    mha_dtype type;        /* f32: mha_layer; f64: mha_attention() and products in double */
    const double *weights; /* [taps][inputs][outputs], taps row by row */
    const double *bias;    /* [outputs]; NULL: none */
} conv_spec;

/* The attention heads of a convolution: matrices, positional codes, and the layer if it is f32. */
typedef struct conv_heads {
    conv_spec spec;
    conv_point grid;   /* extents of the keys: the picture, padded or not */
    conv_point origin; /* position of the first query on the grid */
    bool padded, wraps;
    conv_point output; /* extents */
    ptrdiff_t E, H, D, Dv, L, S;
    double *q, *k, *v, *o; /* [H*D][E], [H*D][E], [H*Dv][E], [outputs][H*Dv] */
    double *bias;          /* [H][L][S]; NULL: none */
    uint8_t *mask;         /* [H][L][S], non-zero = attend; NULL: none */
    float *bias_f32;       /* the same for an f32 layer */
    mha_layer *layer;
} conv_heads;

/* The index of the pixel that is read at position n, which may lie outside of 0 ... extent - 1.
 * Returns -1 if there is none and 0 is read. */
ptrdiff_t conv_source(conv_padding padding, ptrdiff_t n, ptrdiff_t extent);

/* Rows and columns of the output. They are 0 if the kernel must lie on the picture and is larger.
 */
conv_point conv_output(const conv_spec *spec);

/* The position of the tap of a head relative to its query. */
conv_point conv_tap(const conv_spec *spec, ptrdiff_t head);

/* Makes the heads, one per tap. `weights` and `bias` of the spec must live as long as the heads. On
 * error nothing has to be freed. */
mha_status conv_heads_create(conv_heads *heads, const conv_spec *spec);
void conv_heads_free(conv_heads *heads);

/* Makes the tokens of one picture [rows][columns][inputs]: keys [S][E] and queries [L][E]. */
void conv_tokens(const conv_heads *heads, const double *picture, double *keys, double *queries);

/* Runs the heads on B pictures: keys [B][S][E], queries [B][L][E], y [B][L][outputs], and the
 * attention weights [B][H][L][S] unless `weights` is NULL. f32 heads round their inputs to f32. */
mha_status conv_run(const conv_heads *heads, ptrdiff_t B, const double *keys, const double *queries,
                    double *y, double *weights, mha_pool *pool);

/* ------------------------------------------------------------ reference --------- */

typedef enum conv_arithmetic {
    CONV_F64,
    CONV_F32,      /* products and sums are rounded */
    CONV_F32_FUSED /* sums are rounded */
} conv_arithmetic;

/* The arithmetic of the library's products of this type on this machine. */
conv_arithmetic conv_arithmetic_of(mha_dtype type);

/* The convolution by a plain loop, y [rows][columns][outputs]. It adds over taps, then channels, in
 * the order of the layer: with a hard code, not factored by rank, and up to 256 inputs, the layer
 * gives the same bits. Picture, weights and bias are not rounded first. */
void conv_direct(const conv_spec *spec, conv_arithmetic arithmetic, const double *picture,
                 double *y);

/* Upper bound of eps: the weights that a head gives to other keys, divided by that of its tap. */
double conv_leak(const conv_heads *heads);

/* Largest possible error of the outputs for these keys [S][E]: wrong pixels, and rounding. */
double conv_bound(const conv_heads *heads, const double *keys);

#endif
