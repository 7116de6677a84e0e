/* SPDX-License-Identifier: MIT */
/*
 * The kernels of native arithmetic (MHA_NATIVE): products in the storage type of the weights. They
 * are a small second table beside that of kernels.h, which has everything else. Every base table
 * has one, written in f32 (native.inc); a CPU with instructions for such products has another one
 * that uses them. Arithmetic is the same in both; only the sums of bf16 products may be rounded
 * differently.
 *
 * Panels hold as many outputs as those of the base table, nr, but several inputs of an output lie
 * side by side, as the instructions want them:
 *
 *      bf16    panel[(c/2*nr + n)*2 + c%2]        input c, output n
 *      i8      panel[(c/4*nr + n)*4 + c%4]        each plus `bias`, as a byte
 *
 * The last inputs are padded with zeros to a whole pair or quad.
 */
#ifndef MHAK_NATIVE_H
#define MHAK_NATIVE_H

#include "core/kernels/pairs.h"

enum { MHAK_PAIR = 2, MHAK_QUAD = 4 };

/* No more inputs can be summed in int32: 255 * 127 * 65536 is below 2^31. */
enum { MHAK_I8_INPUTS = 65536 };

/* A row of inputs in 8 bits: x[c] = scale * (q[c] - zero), q from -128 to 127. */
typedef struct mhak_i8_row {
    float scale;
    int32_t zero;
    int32_t sum; /* of all q */
} mhak_i8_row;

/* Rows of i8 times one panel. */
typedef struct mhak_i8_product {
    const void *x; /* rows as row_i8 makes them, */
    ptrdiff_t ldx; /* so many bytes apart, */
    const mhak_i8_row *rows;
    int count;
    const void *panel;
    const int32_t *sums; /* [nr]: the sum of the weights of each output, without `bias` */
    int depth;
    float *y; /* rows of ldy floats */
    ptrdiff_t ldy;
} mhak_i8_product;

typedef struct mhak_native {
    const char *name;        /* as in MHA_ISA */
    const mhak_table *base;  /* its name is how this one's begins */
    const char *bf16, *i8;   /* the instructions in use; NULL: those of f32 */
    const mhak_pairs *pairs; /* attention in products of bf16; NULL: it would not be faster */
    const char *bf16_words, *i8_words; /* how products are computed, for mha_arithmetic_explain() */
    int bf16_bytes;                    /* of an input in a row as row_bf16 makes it, 2 or 4 */
    int i8_bytes;                      /* of an input in a row as row_i8 makes it, 1 or 4 */
    int bias; /* 0 or 128: added to weights of i8, for instructions that want it */

    /* Makes a row for product_bf16: n inputs, rounded to bf16 (nearest, ties to even; NaN stays
     * NaN), and a zero where n is odd. */
    void (*row_bf16)(const float *x, int n, void *to);

    /*
     * Rows times one panel of bf16, as `product` of the base table. x has rows of ldx bytes, from
     * row_bf16; depth counts inputs, the last pair is complete. A sum is one chain over all pairs,
     * ascending, in f32; how the two products of a pair are added to it is up to the instruction,
     * which may take subnormal numbers as 0. With `add` the sum is added to y.
     */
    void (*product_bf16)(const void *x, ptrdiff_t ldx, const void *panel, int depth, int rows,
                         bool add, float *y, ptrdiff_t ldy);

    /*
     * Makes pairs of rows for outer_bf16, in panels of `width` columns, whole vectors, `step` words
     * apart: to[c/width*step + k*ld + c%width] holds element c of rows 2k and 2k + 1 of x, rounded
     * to bf16, in its lower and upper half; a row that is missing is 0. The rows have n elements
     * and are `stride` apart. Words up to the next whole vector are written, as 0.
     */
    void (*pair_rows)(const float *x, ptrdiff_t stride, int rows, int n, uint32_t *to, ptrdiff_t ld,
                      int width, ptrdiff_t step);

    /*
     * y += x^T . w, as product_transposed of the base table, for a panel of nr columns of w and
     * pairs of rows:
     *
     *      y[r*ldy + n] += the chain over ascending k of x[k*ldx + r] . w[k*nr + n]
     *
     * where a product of two pairs is added to the chain as in product_bf16.
     */
    void (*outer_bf16)(const uint32_t *x, ptrdiff_t ldx, const uint32_t *w, int pairs, int rows,
                       float *y, ptrdiff_t ldy);

    /*
     * Makes a row for product_i8, zeros up to the next quad included: n inputs. With low the
     * smallest input or 0, high the largest input or 0,
     *
     *      scale = high / 253 - low / 253
     *      zero = round(-127 - low * (1 / scale))         q = round(x * (1 / scale) + zero)
     *
     * where every operation is rounded to f32, except that sums which are rounded to whole numbers
     * are rounded to those at once, ties to even. 253 steps leave room for rounding: q is never
     * outside of -128 .. 127. If 1 / scale is not finite, all q and the scale are 0; if an input is
     * not finite, all q are 0 and the scale is NaN. The bits are the same for every table.
     */
    mhak_i8_row (*row_i8)(const float *x, int n, void *to);

    /* y[r][n] = (float)(sum over c of (q[r][c] - zero[r]) * weight[c][n]) * scale[r]; depth is at
     * most MHAK_I8_INPUTS. The bits are the same for every table. */
    void (*product_i8)(const mhak_i8_product *product);
} mhak_native;

extern const mhak_native mhak_native_c;
extern const mhak_native mhak_native_avx2;
extern const mhak_native mhak_native_avx2vnni;
extern const mhak_native mhak_native_avx512;
extern const mhak_native mhak_native_avx512vnni;
extern const mhak_native mhak_native_avx512bf16;
extern const mhak_native mhak_native_neon;
extern const mhak_native mhak_native_neondot;
extern const mhak_native mhak_native_neonbf16;
extern const mhak_native mhak_native_wasm;

#endif
