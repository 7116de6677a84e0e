/* SPDX-License-Identifier: MIT */
/* OpenBLAS, to be measured against: looked for when the program runs, never linked. */
#ifndef BENCH_OPENBLAS_H
#define BENCH_OPENBLAS_H

#include <stdbool.h>
#include <stddef.h>

/* The Debian package it comes in. */
#define OPENBLAS_PACKAGE "libopenblas0-pthread"

/* Where OpenBLAS takes W [n, k] of y = x W^T from. */
typedef enum openblas_layout {
    OPENBLAS_OUT_IN, /* row-major [n, k], as PyTorch keeps it */
    OPENBLAS_IN_OUT  /* row-major [k, n] */
} openblas_layout;

typedef struct openblas {
    void *library;
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
    void (*sgemv)(int order, int trans, int m, int n, float alpha, const float *a, int lda,
                  const float *x, int incx, float beta, float *y, int incy);
    void (*set_threads)(int threads);
} openblas;

/* False, with a message, where there is none. */
bool openblas_open(openblas *o, char *message, size_t size);

/* Its code stays loaded: its threads may still be on their way to sleep. */
void openblas_close(openblas *o);

/* y [m, n] = x [m, k] times the transpose of W. All contiguous. */
void openblas_product(const openblas *o, openblas_layout layout, int m, int n, int k,
                      const float *x, const float *weight, float *y);

/* The same for m = 1 by the product of a matrix and a vector. */
void openblas_vector_product(const openblas *o, openblas_layout layout, int n, int k,
                             const float *x, const float *weight, float *y);

#endif
