/* SPDX-License-Identifier: MIT */
/* Eigenvalues and eigenvectors of small symmetric matrices. */
#ifndef CLAIMS_SYMMETRIC_EIGEN_H
#define CLAIMS_SYMMETRIC_EIGEN_H

#include <stddef.h>

/*
 * Diagonalises the symmetric matrix a [n][n]. Afterwards row k of `vectors` [n][n] is a unit
 * eigenvector, `values` [n] its eigenvalue, and the values descend. Destroys a. The error of a
 * value is a small multiple of the rounding error of the largest one.
 */
void symmetric_eigen(double *a, ptrdiff_t n, double *values, double *vectors);

#endif
