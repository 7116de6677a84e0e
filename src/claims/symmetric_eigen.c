/* SPDX-License-Identifier: MIT */
/*
 * The cyclic Jacobi method for symmetric matrices: every off-diagonal element in turn is made zero
 * by a rotation of its two rows and columns, until all of them are negligible. The claims use it
 * for the symmetric part of W_Q W_K^T and for the singular values of a convolution's taps.
 */
#include "claims/symmetric_eigen.h"

#include <math.h>
#include <string.h>

/* Convergence is quadratic: matrices of some dozen rows need fewer than ten sweeps. */
enum { SWEEPS_MAX = 60 };

/* Elements x[i] and y[i] of two rows or columns, `step` apart, become c x - s y and s x + c y. */
static void rotate(double *x, double *y, ptrdiff_t n, ptrdiff_t step, double c, double s)
{
    for (ptrdiff_t i = 0; i < n * step; i += step) {
        const double old = x[i];
        x[i] = c * old - s * y[i];
        y[i] = s * old + c * y[i];
    }
}

/* Makes a[p][q] = a[q][p] = 0. Of the two angles that do, the smaller one is taken. */
static void eliminate(double *a, double *vectors, ptrdiff_t n, ptrdiff_t p, ptrdiff_t q)
{
    const double theta = 0.5 * (a[q * n + q] - a[p * n + p]) / a[p * n + q];
    const double t = copysign(1.0, theta) / (fabs(theta) + hypot(theta, 1.0));
    const double c = 1.0 / hypot(t, 1.0), s = t * c;
    rotate(a + p * n, a + q * n, n, 1, c, s);
    rotate(a + p, a + q, n, n, c, s);
    rotate(vectors + p * n, vectors + q * n, n, 1, c, s);
    a[p * n + q] = a[q * n + p] = 0.0;
}

/* One pass over all pairs. Returns how many were not yet negligible. */
static int sweep(double *a, double *vectors, ptrdiff_t n, double negligible)
{
    int count = 0;
    for (ptrdiff_t p = 0; p < n; p++)
        for (ptrdiff_t q = p + 1; q < n; q++)
            if (fabs(a[p * n + q]) > negligible) {
                eliminate(a, vectors, n, p, q);
                count++;
            }
    return count;
}

static void swap_rows(double *x, double *y, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const double old = x[i];
        x[i] = y[i];
        y[i] = old;
    }
}

void symmetric_eigen(double *a, ptrdiff_t n, double *values, double *vectors)
{
    double square = 0.0;
    memset(vectors, 0, (size_t)(n * n) * sizeof *vectors);
    for (ptrdiff_t i = 0; i < n; i++)
        vectors[i * n + i] = 1.0;
    for (ptrdiff_t i = 0; i < n * n; i++)
        square += a[i] * a[i];
    for (int pass = 0; pass < SWEEPS_MAX && sweep(a, vectors, n, 1e-17 * sqrt(square)) > 0; pass++)
        ;
    for (ptrdiff_t i = 0; i < n; i++)
        values[i] = a[i * n + i];
    for (ptrdiff_t i = 0; i < n; i++) {
        ptrdiff_t top = i;
        for (ptrdiff_t k = i + 1; k < n; k++)
            top = values[k] > values[top] ? k : top;
        swap_rows(values + i, values + top, 1);
        swap_rows(vectors + i * n, vectors + top * n, n);
    }
}
