/* SPDX-License-Identifier: MIT */
/* OpenBLAS, to be measured against: looked for when the program runs, never linked. */
#ifndef CLI_OPPONENT_H
#define CLI_OPPONENT_H

#include <stdbool.h>
#include <stddef.h>

/* The Debian package it comes in. */
#define OPPONENT_PACKAGE "libopenblas0-pthread"

/* Where OpenBLAS takes W [n, k] of y = x W^T from. */
typedef enum opponent_layout {
    OPPONENT_OUT_IN, /* row-major [n, k], as PyTorch keeps it */
    OPPONENT_IN_OUT  /* row-major [k, n] */
} opponent_layout;

typedef struct opponent {
    void *library;
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
    void (*sgemv)(int order, int trans, int m, int n, float alpha, const float *a, int lda,
                  const float *x, int incx, float beta, float *y, int incy);
    void (*set_threads)(int threads);
} opponent;

/* False, with a message, where there is none. */
bool opponent_open(opponent *o, char *message, size_t size);

/* Its code stays loaded: its threads may still be on their way to sleep. */
void opponent_close(opponent *o);

/* y [m, n] = x [m, k] times the transpose of W. All contiguous. */
void opponent_product(const opponent *o, opponent_layout layout, int m, int n, int k,
                      const float *x, const float *weight, float *y);

/* The same for m = 1 by the product of a matrix and a vector. */
void opponent_vector_product(const opponent *o, opponent_layout layout, int n, int k,
                             const float *x, const float *weight, float *y);

#endif
