/* SPDX-License-Identifier: MIT */
/*
 * Linears that cannot be, and runs that cannot be done: each has its own status, nothing is
 * written, and a configuration that is refused says why.
 */
#include "mha/mha.h"
#include "test.h"

#include <string.h>

enum { GAP = 0xa5 };

typedef struct bad_config {
    const char *what;
    mha_status status;
    mha_linear_config config;
} bad_config;

static void wrong_configurations(void)
{
    static const float w[64];
    const mha_matrix good = mha_matrix_out_in(w, MHA_F32, 4);
    const mha_matrix none = {NULL, MHA_F32, 4, 1};
    const mha_matrix odd = mha_matrix_out_in((const char *)w + 1, MHA_F32, 4);
    const mha_matrix odd_half = mha_matrix_out_in((const char *)w + 1, MHA_BF16, 4);
    const mha_matrix wild = {w, MHA_F32, PTRDIFF_MAX, PTRDIFF_MAX};
    const mha_vector bias = {w, MHA_F32}, bias_i8 = {w, MHA_I8}, bias_f64 = {w, MHA_F64};
    const mha_vector bias_odd = {(const char *)w + 2, MHA_F32};
    const mha_vector bias_unknown = {w, (mha_dtype)9};
    const size_t size = sizeof(mha_linear_config);
#define BAD(text, status, ...) \
    {                          \
        text, status,          \
        {                      \
            __VA_ARGS__        \
        }                      \
    }
    const bad_config table[] = {
        BAD("size 0", MHA_ERR_STRUCT, 0, 4, 4, good, bias, MHA_F32, NULL, 0),
        BAD("size 3", MHA_ERR_STRUCT, 3, 4, 4, good, bias, MHA_F32, NULL, 0),
        BAD("huge size", MHA_ERR_STRUCT, SIZE_MAX, 4, 4, good, bias, MHA_F32, NULL, 0),
        BAD("inputs -1", MHA_ERR_SHAPE, size, -1, 4, good, bias, MHA_F32, NULL, 0),
        BAD("outputs -1", MHA_ERR_SHAPE, size, 4, -1, good, bias, MHA_F32, NULL, 0),
        BAD("inputs most negative", MHA_ERR_SHAPE, size, PTRDIFF_MIN, 4, good, bias, MHA_F32, NULL,
            0),
        BAD("inputs huge", MHA_ERR_OVERFLOW, size, PTRDIFF_MAX, 4, good, bias, MHA_F32, NULL, 0),
        BAD("outputs huge", MHA_ERR_OVERFLOW, size, 4, PTRDIFF_MAX, good, bias, MHA_F32, NULL, 0),
        BAD("both large", MHA_ERR_OVERFLOW, size, (ptrdiff_t)1 << 40, (ptrdiff_t)1 << 40, good,
            bias, MHA_F32, NULL, 0),
        BAD("no weight", MHA_ERR_NULL, size, 4, 4, none, bias, MHA_F32, NULL, 0),
        BAD("weight misaligned", MHA_ERR_ALIGN, size, 4, 4, odd, bias, MHA_F32, NULL, 0),
        BAD("bf16 weight misaligned", MHA_ERR_ALIGN, size, 4, 4, odd_half, bias, MHA_F32, NULL, 0),
        BAD("wild strides", MHA_ERR_OVERFLOW, size, 4, 4, wild, bias, MHA_F32, NULL, 0),
        BAD("weight i8", MHA_ERR_DTYPE, size, 4, 4, mha_matrix_out_in(w, MHA_I8, 4), bias, MHA_F32,
            NULL, 0),
        BAD("weight f64", MHA_ERR_DTYPE, size, 4, 4, mha_matrix_out_in(w, MHA_F64, 4), bias,
            MHA_F32, NULL, 0),
        BAD("weight unknown", MHA_ERR_DTYPE, size, 4, 4, mha_matrix_out_in(w, (mha_dtype)-1, 4),
            bias, MHA_F32, NULL, 0),
        BAD("bias i8", MHA_ERR_DTYPE, size, 4, 4, good, bias_i8, MHA_F32, NULL, 0),
        BAD("bias f64", MHA_ERR_DTYPE, size, 4, 4, good, bias_f64, MHA_F32, NULL, 0),
        BAD("bias unknown", MHA_ERR_DTYPE, size, 4, 4, good, bias_unknown, MHA_F32, NULL, 0),
        BAD("bias misaligned", MHA_ERR_ALIGN, size, 4, 4, good, bias_odd, MHA_F32, NULL, 0),
        BAD("stored f64", MHA_ERR_DTYPE, size, 4, 4, good, bias, MHA_F64, NULL, 0),
        BAD("stored unknown", MHA_ERR_DTYPE, size, 4, 4, good, bias, (mha_dtype)5, NULL, 0),
    };
#undef BAD
    for (size_t n = 0; n < sizeof table / sizeof *table; n++) {
        mha_linear *linear = (mha_linear *)&table;
        char message[200] = "";
        mha_linear_config config = table[n].config;
        config.message = message;
        config.message_size = sizeof message;
        const mha_status status = mha_linear_create(&linear, &config);
        CHECK(status == table[n].status, "%s: %s", table[n].what, mha_status_string(status));
        CHECK(!linear, "%s: *linear is not NULL", table[n].what);
        CHECK(status == MHA_ERR_STRUCT || message[0], "%s: no message", table[n].what);
    }
    const mha_linear_config config = {
        .size = size, .inputs = 4, .outputs = 4, .weight = good, .bias = bias};
    mha_linear *linear = (mha_linear *)&table;
    CHECK(mha_linear_create(NULL, &config) == MHA_ERR_NULL, "nowhere to go");
    CHECK(mha_linear_create(&linear, NULL) == MHA_ERR_NULL && !linear, "no configuration");
    mha_linear_free(NULL);
}

typedef struct bad_run {
    const char *what;
    mha_status status;
    ptrdiff_t rows;
    const void *x;
    mha_dtype x_type;
    ptrdiff_t x_stride;
    void *y;
    mha_dtype y_type;
    ptrdiff_t y_stride;
    void *work;
    size_t work_size;
} bad_run;

static void wrong_runs(void)
{
    static const float w[16];
    static float x[64], y[64], work[65536];
    const mha_linear_config config = {.size = sizeof config,
                                      .inputs = 4,
                                      .outputs = 4,
                                      .weight = mha_matrix_out_in(w, MHA_F32, 4)};
    mha_linear *linear = NULL;
    if (!CHECK(mha_linear_create(&linear, &config) == MHA_OK, "create"))
        return;
    const size_t need = mha_linear_work_size(linear, 3, 1);
    CHECK(need <= sizeof work, "%zu bytes of workspace", need);
    const ptrdiff_t far = PTRDIFF_MAX / 2;
    char *const odd_y = (char *)y + 2;
    const char *const odd_x = (const char *)x + 1;
    const bad_run table[] = {
        {"rows -1", MHA_ERR_SHAPE, -1, x, MHA_F32, 4, y, MHA_F32, 4, work, need},
        {"rows huge", MHA_ERR_OVERFLOW, PTRDIFF_MAX, x, MHA_F32, 4, y, MHA_F32, 4, work, need},
        {"x NULL", MHA_ERR_NULL, 3, NULL, MHA_F32, 4, y, MHA_F32, 4, work, need},
        {"y NULL", MHA_ERR_NULL, 3, x, MHA_F32, 4, NULL, MHA_F32, 4, work, need},
        {"x f64", MHA_ERR_DTYPE, 3, x, MHA_F64, 4, y, MHA_F32, 4, work, need},
        {"x i8", MHA_ERR_DTYPE, 3, x, MHA_I8, 4, y, MHA_F32, 4, work, need},
        {"x unknown", MHA_ERR_DTYPE, 3, x, (mha_dtype)7, 4, y, MHA_F32, 4, work, need},
        {"y f64", MHA_ERR_DTYPE, 3, x, MHA_F32, 4, y, MHA_F64, 4, work, need},
        {"y i8", MHA_ERR_DTYPE, 3, x, MHA_F32, 4, y, MHA_I8, 4, work, need},
        {"y unknown", MHA_ERR_DTYPE, 3, x, MHA_F32, 4, y, (mha_dtype)-5, 4, work, need},
        {"x misaligned", MHA_ERR_ALIGN, 3, odd_x, MHA_F32, 4, y, MHA_F32, 4, work, need},
        {"y misaligned", MHA_ERR_ALIGN, 3, x, MHA_F32, 4, odd_y, MHA_F32, 4, work, need},
        {"y rows overlap", MHA_ERR_STRIDE, 3, x, MHA_F32, 4, y, MHA_F32, 3, work, need},
        {"y stride 0", MHA_ERR_STRIDE, 3, x, MHA_F32, 4, y, MHA_F32, 0, work, need},
        {"x far", MHA_ERR_OVERFLOW, 3, x, MHA_F32, far, y, MHA_F32, 4, work, need},
        {"y far", MHA_ERR_OVERFLOW, 3, x, MHA_F32, 4, y, MHA_F32, far, work, need},
        {"in place", MHA_ERR_OVERLAP, 3, y, MHA_F32, 4, y, MHA_F32, 4, work, need},
        {"x ends in y", MHA_ERR_OVERLAP, 3, y + 11, MHA_F32, 4, y, MHA_F32, 4, work, need},
        {"work in y", MHA_ERR_OVERLAP, 3, x, MHA_F32, 4, work + 8, MHA_F32, 4, work, need},
        {"work too small", MHA_ERR_WORKSPACE, 3, x, MHA_F32, 4, y, MHA_F32, 4, work, need - 1},
        {"work of 0", MHA_ERR_WORKSPACE, 3, x, MHA_F32, 4, y, MHA_F32, 4, work, 0},
    };
    for (size_t n = 0; n < sizeof table / sizeof *table; n++) {
        const bad_run *const r = &table[n];
        memset(y, GAP, sizeof y);
        const mha_status status =
            mha_linear_run(linear, r->rows, r->x, r->x_type, r->x_stride, r->y, r->y_type,
                           r->y_stride, r->work, r->work_size, NULL);
        CHECK(status == r->status, "%s: %s", r->what, mha_status_string(status));
        for (size_t i = 0; i < sizeof y; i++)
            CHECK(((unsigned char *)y)[i] == GAP, "%s: y was written", r->what);
    }
    CHECK(mha_linear_run(NULL, 3, x, MHA_F32, 4, y, MHA_F32, 4, NULL, 0, NULL) == MHA_ERR_NULL,
          "no linear");
    CHECK(mha_linear_run(linear, 1, x, MHA_F32, 0, y, MHA_F32, 0, NULL, 0, NULL) == MHA_OK,
          "the stride of one row");
    CHECK(mha_linear_run(linear, 3, x, MHA_F32, 0, y, MHA_F32, 4, NULL, 0, NULL) == MHA_OK,
          "one row of x for all");
    CHECK(mha_linear_work_size(NULL, 3, 1) == 0 && mha_linear_work_size(linear, -1, 1) == 0 &&
              mha_linear_work_size(linear, 3, 0) == 0 &&
              mha_linear_work_size(linear, 3, MHA_MAX_THREADS + 1) == 0,
          "sizes for what cannot be");
    mha_linear_free(linear);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(wrong_configurations);
    RUN(wrong_runs);
    return test_end();
}
