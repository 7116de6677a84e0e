/* SPDX-License-Identifier: MIT */
/*
 * The matrices of the heads of a convolution: W_V and W_O from the taps, factored in one of three
 * ways, and W_Q and W_K, which are 0 unless the heads read positions from channels.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "claims/convolution_parts.h"

/* ----------------------------------------------------------- factoring ----- */

/* Absolute value and position of the largest element of a matrix [rows][columns]. `at` is unchanged
 * if all are 0. */
static double largest(const double *m, ptrdiff_t rows, ptrdiff_t columns, conv_point *at)
{
    double top = 0.0;
    for (ptrdiff_t n = 0; n < rows * columns; n++)
        if (fabs(m[n]) > top) {
            top = fabs(m[n]);
            *at = (conv_point){n / columns, n % columns};
        }
    return top;
}

/* Subtracts the matrix left * right of rank 1 that makes the row and the column of `at` zero. */
static void eliminate(double *m, ptrdiff_t rows, ptrdiff_t columns, conv_point at, double *left,
                      double *right)
{
    for (ptrdiff_t c = 0; c < rows; c++)
        left[c] = m[c * columns + at.column];
    for (ptrdiff_t n = 0; n < columns; n++)
        right[n] = m[at.row * columns + n] / left[at.row];
    for (ptrdiff_t c = 0; c < rows; c++)
        for (ptrdiff_t n = 0; n < columns; n++)
            m[c * columns + n] -= left[c] * right[n];
    /* Rounding leaves small numbers there, which must not become pivots. */
    for (ptrdiff_t c = 0; c < rows; c++)
        m[c * columns + at.column] = 0.0;
    for (ptrdiff_t n = 0; n < columns; n++)
        m[at.row * columns + n] = 0.0;
}

/* Factors m [inputs][outputs] = left^T right by elimination with full pivoting; left is
 * [rank][inputs], right [rank][outputs]. Destroys m and returns the rank. */
static ptrdiff_t factor(double *m, ptrdiff_t inputs, ptrdiff_t outputs, double *left, double *right)
{
    conv_point at = {0, 0};
    const double negligible = 1e-13 * largest(m, inputs, outputs, &at);
    ptrdiff_t rank = 0;
    while (largest(m, inputs, outputs, &at) > negligible) {
        eliminate(m, inputs, outputs, at, left + rank * inputs, right + rank * outputs);
        rank++;
    }
    return rank;
}

typedef struct factors {
    double *block, *copy;
    double *left, *right; /* of all taps: [taps][width][inputs], [taps][width][outputs] */
    ptrdiff_t width;      /* largest possible rank */
    ptrdiff_t rank;       /* largest rank of a tap */
} factors;

/* Factors all taps. False if out of memory. The caller frees the block. */
static bool factor_all(factors *f, const conv_spec *spec, ptrdiff_t taps)
{
    const ptrdiff_t inputs = spec->inputs, outputs = spec->outputs;
    f->width = inputs < outputs ? inputs : outputs;
    f->block =
        calloc((size_t)(inputs * outputs + taps * f->width * (inputs + outputs)), sizeof *f->block);
    if (f->block == NULL)
        return false;
    f->copy = f->block;
    f->left = f->copy + inputs * outputs;
    f->right = f->left + taps * f->width * inputs;
    for (ptrdiff_t t = 0; t < taps; t++) {
        memcpy(f->copy, spec->weights + t * inputs * outputs,
               (size_t)(inputs * outputs) * sizeof *f->copy);
        const ptrdiff_t rank = factor(f->copy, inputs, outputs, f->left + t * f->width * inputs,
                                      f->right + t * f->width * outputs);
        f->rank = rank > f->rank ? rank : f->rank;
    }
    return true;
}

/* -------------------------------------------------------------- values ----- */

/* Element of W_V from input c to element n of head h. */
static double value_weight(const conv_spec *spec, const factors *f, ptrdiff_t h, ptrdiff_t n,
                           ptrdiff_t c)
{
    if (f->left != NULL)
        return f->left[(h * f->width + n) * spec->inputs + c];
    if (spec->factoring == CONV_BY_OUTPUTS)
        return spec->weights[(h * spec->inputs + c) * spec->outputs + n];
    return n == c ? 1.0 : 0.0;
}

/* Element of W_O from element n of head h to output `out`. */
static double output_weight(const conv_spec *spec, const factors *f, ptrdiff_t h, ptrdiff_t n,
                            ptrdiff_t out)
{
    if (f->right != NULL)
        return f->right[(h * f->width + n) * spec->outputs + out];
    if (spec->factoring == CONV_BY_INPUTS)
        return spec->weights[(h * spec->inputs + n) * spec->outputs + out];
    return n == out ? 1.0 : 0.0;
}

static void fill_values(conv_heads *heads, const factors *f)
{
    for (ptrdiff_t h = 0; h < heads->H; h++)
        for (ptrdiff_t n = 0; n < heads->Dv; n++) {
            const ptrdiff_t row = h * heads->Dv + n;
            for (ptrdiff_t c = 0; c < heads->spec.inputs; c++)
                heads->v[row * heads->E + c] = value_weight(&heads->spec, f, h, n, c);
            for (ptrdiff_t out = 0; out < heads->spec.outputs; out++)
                heads->o[out * heads->H * heads->Dv + row] =
                    output_weight(&heads->spec, f, h, n, out);
        }
}

/* ----------------------------------------------------- queries and keys ---- */

/*
 * -alpha |p(k) - p(q) - t|^2 is 2 alpha (p(q) + t) . p(k) - alpha |p(k)|^2 plus a number that is
 * the same for all keys, which softmax cancels. So
 *
 *      query = (2 alpha (row + t.row), 2 alpha (column + t.column), -alpha)
 *      key   = (row, column, row^2 + column^2)
 */
static void fill_places(conv_heads *heads)
{
    const ptrdiff_t row = heads->spec.inputs, column = row + 1, square = row + 2, one = row + 3;
    const double alpha = heads->spec.sharpness;
    for (ptrdiff_t h = 0; h < heads->H; h++) {
        const conv_point tap = conv_tap(&heads->spec, h);
        double *const q = heads->q + h * heads->D * heads->E;
        double *const k = heads->k + h * heads->D * heads->E;
        q[row] = 2.0 * alpha;
        q[one] = 2.0 * alpha * (double)tap.row;
        q[heads->E + column] = 2.0 * alpha;
        q[heads->E + one] = 2.0 * alpha * (double)tap.column;
        q[2 * heads->E + one] = -alpha;
        k[row] = 1.0;
        k[heads->E + column] = 1.0;
        k[2 * heads->E + square] = 1.0;
    }
}

static ptrdiff_t head_width(const conv_spec *spec, const factors *f)
{
    switch (spec->factoring) {
    case CONV_BY_OUTPUTS:
        return spec->outputs;
    case CONV_BY_INPUTS:
        return spec->inputs;
    case CONV_BY_RANK:
        break;
    }
    return f->rank > 0 ? f->rank : 1;
}

mha_status conv_matrices(conv_heads *heads)
{
    const conv_spec *const spec = &heads->spec;
    const bool absolute = spec->code == CONV_ABSOLUTE;
    factors f = {0};
    if (spec->factoring == CONV_BY_RANK && !factor_all(&f, spec, heads->H))
        return MHA_ERR_MEMORY;
    heads->E = spec->inputs + (absolute ? CONV_PLACE_CHANNELS : 0);
    heads->D = absolute ? 3 : 1;
    heads->Dv = head_width(spec, &f);
    const size_t E = (size_t)heads->E, H = (size_t)heads->H;
    heads->q = calloc(H * (size_t)heads->D * E, sizeof *heads->q);
    heads->k = calloc(H * (size_t)heads->D * E, sizeof *heads->k);
    heads->v = calloc(H * (size_t)heads->Dv * E, sizeof *heads->v);
    heads->o = calloc(H * (size_t)(heads->Dv * spec->outputs), sizeof *heads->o);
    const bool there = heads->q && heads->k && heads->v && heads->o;
    if (there)
        fill_values(heads, &f);
    if (there && absolute)
        fill_places(heads);
    free(f.block);
    return there ? MHA_OK : MHA_ERR_MEMORY;
}
