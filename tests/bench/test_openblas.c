/* SPDX-License-Identifier: MIT */
/* The OpenBLAS products that the benchmark compares linears with compute the same as they do:
 * y = x W^T, in both layouts. Skipped if OpenBLAS is not installed. */
#include "support/test.h"

#include <math.h>
#include <stddef.h>

#include "bench/openblas.h"

enum { M = 5, N = 37, K = 29 };

static void fill(float *numbers, int count, uint64_t seed)
{
    test_random random = {seed};
    for (int n = 0; n < count; n++)
        numbers[n] = test_random_float(&random);
}

static void check_product(const float *x, const float *weight, const float *y, int rows)
{
    for (int i = 0; i < rows; i++) {
        for (int n = 0; n < N; n++) {
            double sum = 0.0;
            for (int c = 0; c < K; c++)
                sum += (double)x[i * K + c] * (double)weight[n * K + c];
            CHECK(fabs(sum - (double)y[i * N + n]) < 1e-5, "row %d, output %d: %g, not %g", i, n,
                  (double)y[i * N + n], sum);
        }
    }
}

static void products(void)
{
    static float x[M * K], out_in[N * K], in_out[K * N], y[M * N];
    char message[256];
    openblas blas;
    if (!openblas_open(&blas, message, sizeof message)) {
        test_skip(message);
        return;
    }
    fill(x, M * K, 1);
    fill(out_in, N * K, 2);
    for (int n = 0; n < N; n++)
        for (int c = 0; c < K; c++)
            in_out[c * N + n] = out_in[n * K + c];
    blas.set_threads(1);
    openblas_product(&blas, OPENBLAS_OUT_IN, M, N, K, x, out_in, y);
    check_product(x, out_in, y, M);
    openblas_product(&blas, OPENBLAS_IN_OUT, M, N, K, x, in_out, y);
    check_product(x, out_in, y, M);
    openblas_vector_product(&blas, OPENBLAS_OUT_IN, N, K, x + K, out_in, y);
    check_product(x + K, out_in, y, 1);
    openblas_vector_product(&blas, OPENBLAS_IN_OUT, N, K, x + K, in_out, y);
    check_product(x + K, out_in, y, 1);
    openblas_close(&blas);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(products);
    return test_end();
}
