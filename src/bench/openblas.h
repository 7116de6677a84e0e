/* SPDX-License-Identifier: MIT */
/* OpenBLAS, for comparison: loaded at run time if it is installed, never linked. */
#ifndef BENCH_OPENBLAS_H
#define BENCH_OPENBLAS_H

#include <stdbool.h>
#include <stddef.h>

/* The Debian package that has it. */
#define OPENBLAS_PACKAGE "libopenblas0-pthread"

/* How W [n, k] of y = x W^T is stored. */
typedef enum openblas_layout {
    OPENBLAS_OUT_IN, /* row-major [n, k], as PyTorch stores it */
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

/* Loads OpenBLAS. Returns false, with a message, if it is not installed or has no C interface. */
bool openblas_open(openblas *o, char *message, size_t size);

/* The code stays in memory (RTLD_NODELETE), since its threads may still be running. */
void openblas_close(openblas *o);

/* y [m, n] = x [m, k] W^T. All matrices are contiguous. */
void openblas_product(const openblas *o, openblas_layout layout, int m, int n, int k,
                      const float *x, const float *weight, float *y);

/* The same for m = 1, as a matrix-vector product. */
void openblas_vector_product(const openblas *o, openblas_layout layout, int n, int k,
                             const float *x, const float *weight, float *y);

#endif
