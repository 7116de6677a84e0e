/* SPDX-License-Identifier: MIT */
/*
 * Feed-forwards that cannot be, runs of them and of fused linears that cannot be done: each has its
 * own status, nothing is written, and a configuration that is refused says why.
 */
#include "mha/mha.h"
#include "support/test.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const float w[64];

static mha_feed_forward_config good_config(void)
{
    const mha_matrix matrix = mha_matrix_out_in(w, MHA_F32, 4);
    const mha_vector bias = {w, MHA_F32};
    return (mha_feed_forward_config){.size = sizeof(mha_feed_forward_config),
                                     .inputs = 4,
                                     .inner = 4,
                                     .activation = MHA_ACTIVATION_SILU,
                                     .gated = 1,
                                     .gate = matrix,
                                     .up = matrix,
                                     .down = matrix,
                                     .gate_bias = bias,
                                     .up_bias = bias,
                                     .down_bias = bias};
}

static void refused(const mha_feed_forward_config *given, mha_status want, const char *what)
{
    mha_feed_forward *ff = (mha_feed_forward *)&w;
    char message[200] = "";
    mha_feed_forward_config config = *given;
    config.message = message;
    config.message_size = sizeof message;
    const mha_status status = mha_feed_forward_create(&ff, &config);
    CHECK(status == want, "%s: %s", what, mha_status_string(status));
    CHECK(!ff, "%s: *feed_forward is not NULL", what);
    CHECK(status == MHA_ERR_STRUCT || message[0], "%s: no message", what);
}

static void wrong_extents(void)
{
    static const ptrdiff_t bad[] = {-1, PTRDIFF_MIN, PTRDIFF_MAX, (ptrdiff_t)1 << 40};
    for (int n = 0; n < 3 * 4; n++) {
        mha_feed_forward_config c = good_config();
        ptrdiff_t *const extents[] = {&c.inputs, &c.inner, &c.outputs};
        *extents[n / 4] = bad[n % 4];
        if (n % 4 == 3) /* 2^40 times 2^40 */
            c.inputs = c.inner = c.outputs = bad[3];
        refused(&c, bad[n % 4] < 0 ? MHA_ERR_SHAPE : MHA_ERR_OVERFLOW, "extent");
    }
}

static void wrong_kinds(void)
{
    mha_feed_forward_config c = good_config();
    c.size = 0;
    refused(&c, MHA_ERR_STRUCT, "size 0");
    c.size = sizeof c - 1;
    refused(&c, MHA_ERR_STRUCT, "size too small");
    c = good_config();
    c.activation = (mha_activation)7;
    refused(&c, MHA_ERR_FLAG, "activation 7");
    c.activation = (mha_activation)-1;
    refused(&c, MHA_ERR_FLAG, "activation -1");
    c = good_config();
    c.gated = 0;
    refused(&c, MHA_ERR_FLAG, "a gate that is not used");
    c.gate.data = NULL;
    refused(&c, MHA_ERR_FLAG, "a bias of a gate that is not used");
    c = good_config();
    c.stored = MHA_F64;
    refused(&c, MHA_ERR_DTYPE, "stored f64");
}

static void wrong_weights(void)
{
    for (int n = 0; n < 3; n++) {
        mha_feed_forward_config c = good_config();
        mha_matrix *const matrices[] = {&c.gate, &c.up, &c.down};
        mha_vector *const vectors[] = {&c.gate_bias, &c.up_bias, &c.down_bias};
        matrices[n]->data = NULL;
        refused(&c, MHA_ERR_NULL, "no matrix");
        matrices[n]->data = (const char *)w + 1;
        refused(&c, MHA_ERR_ALIGN, "a matrix that is not aligned");
        *matrices[n] = (mha_matrix){w, MHA_F32, PTRDIFF_MAX, PTRDIFF_MAX};
        refused(&c, MHA_ERR_OVERFLOW, "wild strides");
        *matrices[n] = mha_matrix_out_in(w, MHA_F64, 4);
        refused(&c, MHA_ERR_DTYPE, "an f64 matrix");
        *matrices[n] = mha_matrix_out_in(w, MHA_F32, 4);
        vectors[n]->type = MHA_F64;
        refused(&c, MHA_ERR_DTYPE, "an f64 bias");
        *vectors[n] = (mha_vector){(const char *)w + 2, MHA_F32};
        refused(&c, MHA_ERR_ALIGN, "a bias that is not aligned");
    }
}

static void missing_arguments(void)
{
    mha_feed_forward *ff = (mha_feed_forward *)&w;
    char message[100] = "";
    mha_feed_forward_config c = good_config();
    CHECK(mha_feed_forward_create(&ff, NULL) == MHA_ERR_NULL && !ff, "config");
    c.message = message;
    c.message_size = sizeof message;
    CHECK(mha_feed_forward_create(NULL, &c) == MHA_ERR_NULL && message[0], "feed_forward");
    mha_feed_forward_free(NULL);
    CHECK(mha_feed_forward_bytes(NULL) == 0, "bytes");
    CHECK(mha_feed_forward_work_size(NULL, 1, 1) == 0, "work size");
    CHECK(mha_feed_forward_run(NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL) == MHA_ERR_NULL,
          "run");
}

/* --------------------------------------------------------------------- runs ---- */

static mha_feed_forward *make(ptrdiff_t inputs, ptrdiff_t outputs)
{
    mha_feed_forward *ff = NULL;
    mha_feed_forward_config c = good_config();
    c.inputs = inputs;
    c.outputs = outputs;
    c.gate = c.up = mha_matrix_out_in(w, MHA_F32, inputs);
    CHECK(mha_feed_forward_create(&ff, &c) == MHA_OK, "create");
    return ff;
}

static void work_sizes(void)
{
    mha_feed_forward *const ff = make(4, 4);
    CHECK(mha_feed_forward_work_size(ff, -1, 1) == 0 && mha_feed_forward_work_size(ff, 1, 0) == 0 &&
              mha_feed_forward_work_size(ff, 1, MHA_MAX_THREADS + 1) == 0,
          "invalid arguments have a workspace");
    size_t before = 0;
    for (ptrdiff_t rows = 0; rows < 2000; rows += 37)
        for (int threads = 1; threads < 4; threads++) {
            const size_t size = mha_feed_forward_work_size(ff, rows, threads);
            CHECK(threads == 1 ? size >= before : size > 0, "%td rows: %zu bytes", rows, size);
            before = threads == 1 ? size : before;
        }
    CHECK(mha_feed_forward_work_size(ff, 100000, 1) == before, "grows with any number of rows");
    mha_feed_forward_free(ff);
}

static void wrong_runs(void)
{
    float x[64] = {0}, y[64], r[64] = {0};
    mha_feed_forward *const ff = make(4, 6);
    memset(y, 0xa5, sizeof y);
    const size_t size = mha_feed_forward_work_size(ff, 3, 1);
    char *const work = malloc(size);
#define GIVES(want, ...) CHECK(mha_feed_forward_run(ff, __VA_ARGS__, NULL) == (want), #__VA_ARGS__)
    GIVES(MHA_ERR_SHAPE, -1, x, 4, NULL, 0, y, 6, NULL, 0);
    GIVES(MHA_ERR_OVERFLOW, PTRDIFF_MAX, x, 4, NULL, 0, y, 6, NULL, 0);
    GIVES(MHA_ERR_OVERFLOW, 3, x, PTRDIFF_MAX / 2, NULL, 0, y, 6, NULL, 0);
    GIVES(MHA_ERR_NULL, 3, NULL, 4, NULL, 0, y, 6, NULL, 0);
    GIVES(MHA_ERR_NULL, 3, x, 4, NULL, 0, NULL, 6, NULL, 0);
    GIVES(MHA_ERR_STRIDE, 3, x, 4, NULL, 0, y, 5, NULL, 0);
    GIVES(MHA_ERR_ALIGN, 3, (float *)((char *)x + 1), 4, NULL, 0, y, 6, NULL, 0);
    GIVES(MHA_ERR_ALIGN, 3, x, 4, (float *)((char *)r + 1), 6, y, 6, NULL, 0);
    GIVES(MHA_ERR_OVERLAP, 3, y, 4, NULL, 0, y, 6, NULL, 0);
    GIVES(MHA_ERR_OVERLAP, 3, y + 1, 6, NULL, 0, y, 6, NULL, 0);
    GIVES(MHA_ERR_OVERLAP, 3, x, 4, y + 1, 6, y, 6, NULL, 0);
    GIVES(MHA_ERR_OVERLAP, 3, x, 4, y, 0, y, 6, NULL, 0);
    GIVES(MHA_ERR_OVERLAP, 3, x, 4, (float *)work, 6, y, 6, work, size);
    GIVES(MHA_ERR_OVERLAP, 3, x, 4, NULL, 0, (float *)work, 6, work, size);
    GIVES(MHA_ERR_WORKSPACE, 3, x, 4, NULL, 0, y, 6, work, size - 1);
    for (size_t n = 0; n < sizeof y; n++)
        CHECK(((unsigned char *)y)[n] == 0xa5, "y was written");
    GIVES(MHA_OK, 0, NULL, 4, NULL, 0, NULL, 6, NULL, 0);
    GIVES(MHA_OK, 3, x, 0, r, 0, y, 6, work, size); /* broadcast inputs */
    GIVES(MHA_OK, 3, y, 6, y, 6, y, 6, work, size);
#undef GIVES
    free(work);
    mha_feed_forward_free(ff);
}

static void wrong_fused_runs(void)
{
    float x[64] = {0}, y[64], r[64] = {0};
    mha_linear *linear;
    const mha_linear_config c = {
        .size = sizeof c, .inputs = 4, .outputs = 6, .weight = mha_matrix_out_in(w, MHA_F32, 4)};
    CHECK(mha_linear_create(&linear, &c) == MHA_OK, "create");
    memset(y, 0xa5, sizeof y);
#define GIVES(want, activation, residual, residual_stride, y_type)                               \
    CHECK(mha_linear_run_fused(linear, 3, x, MHA_F32, 4, (mha_activation)(activation), residual, \
                               residual_stride, y, y_type, 6, NULL, 0, NULL) == (want),          \
          #residual)
    GIVES(MHA_ERR_FLAG, 7, NULL, 0, MHA_F32);
    GIVES(MHA_ERR_FLAG, -1, NULL, 0, MHA_F32);
    GIVES(MHA_ERR_DTYPE, 0, NULL, 0, MHA_I8);
    GIVES(MHA_ERR_ALIGN, 0, (float *)((char *)r + 2), 6, MHA_F32);
    GIVES(MHA_ERR_OVERFLOW, 0, r, PTRDIFF_MAX / 2, MHA_F32);
    GIVES(MHA_ERR_OVERLAP, 0, y, 7, MHA_F32);
    GIVES(MHA_ERR_OVERLAP, 0, y, 6, MHA_BF16);
    for (size_t n = 0; n < sizeof y; n++)
        CHECK(((unsigned char *)y)[n] == 0xa5, "y was written");
    GIVES(MHA_OK, 6, r, 0, MHA_F16);
    GIVES(MHA_OK, 6, r, 6, MHA_F32);
    GIVES(MHA_OK, 6, y, 6, MHA_F32);
#undef GIVES
    CHECK(mha_linear_run_fused(NULL, 3, x, MHA_F32, 4, MHA_ACTIVATION_RELU, NULL, 0, y, MHA_F32, 6,
                               NULL, 0, NULL) == MHA_ERR_NULL,
          "NULL");
    mha_linear_free(linear);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(wrong_extents);
    RUN(wrong_kinds);
    RUN(wrong_weights);
    RUN(missing_arguments);
    RUN(work_sizes);
    RUN(wrong_runs);
    RUN(wrong_fused_runs);
    return test_end();
}
