/* SPDX-License-Identifier: MIT */
/*
 * Linears that cannot be, runs and backward passes that cannot be done: each has its own status,
 * nothing is written, and a configuration that is refused says why.
 */
#include "mha/mha.h"
#include "support/test.h"

#include <stddef.h>
#include <stdlib.h>
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
    const mha_vector bias_unknown = {w, (mha_dtype)99};
    const size_t size = sizeof(mha_linear_config);
#define BAD(text, status, ...)           \
    {                                    \
        text, status,                    \
        {                                \
            __VA_ARGS__, NULL, MHA_EXACT \
        }                                \
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
        BAD("stored unknown", MHA_ERR_DTYPE, size, 4, 4, good, bias, (mha_dtype)77, NULL, 0),
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
        {"x unknown", MHA_ERR_DTYPE, 3, x, (mha_dtype)77, 4, y, MHA_F32, 4, work, need},
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

/* ------------------------------------------------------------------ gradients ---- */

/* A backward pass of 3 rows through 4 inputs and 5 outputs that works. */
typedef struct backward_call {
    mha_linear *linear;
    ptrdiff_t rows;
    const void *x;
    mha_dtype x_type;
    ptrdiff_t x_stride;
    mha_linear_gradients g;
    uint64_t after; /* not zero: what g.size finds when it is too large */
    void *work;
    size_t work_size;
} backward_call;

enum { ROOM = 256 };

/* Inputs x and d_y, outputs d_x, d_weight and d_bias, and a workspace. */
typedef struct backward_memory {
    float x[ROOM], d_y[ROOM], d_x[ROOM], d_weight[ROOM], d_bias[ROOM];
    float *work;
} backward_memory;

static mha_linear *small_linear(void)
{
    static const float w[20] = {1, 2, 3};
    const mha_linear_config config = {.size = sizeof config,
                                      .inputs = 4,
                                      .outputs = 5,
                                      .weight = mha_matrix_out_in(w, MHA_F32, 4)};
    mha_linear *linear = NULL;
    CHECK(mha_linear_create(&linear, &config) == MHA_OK, "create");
    return linear;
}

static backward_call good_call(mha_linear *linear, backward_memory *m)
{
    return (backward_call){.linear = linear,
                           .rows = 3,
                           .x = m->x,
                           .x_stride = 4,
                           .g = {.size = sizeof(mha_linear_gradients),
                                 .d_y = m->d_y,
                                 .d_y_stride = 5,
                                 .d_x = m->d_x,
                                 .d_x_stride = 4,
                                 .d_weight = {m->d_weight, 4, 1},
                                 .d_bias = m->d_bias},
                           .after = 1,
                           .work = m->work,
                           .work_size = mha_linear_backward_work_size(linear, 3, 1)};
}

static mha_status run_backward(const backward_call *c)
{
    return mha_linear_backward(c->linear, c->rows, c->x, c->x_type, c->x_stride, &c->g, c->work,
                               c->work_size, NULL);
}

/* One field of a good call is changed; outputs must stay as they are. */
#define TRY(wanted, change)                                                              \
    do {                                                                                 \
        backward_call c = good_call(linear, m);                                          \
        c.change;                                                                        \
        memset(m, GAP, offsetof(backward_memory, work));                                 \
        const mha_status status = run_backward(&c);                                      \
        CHECK(status == (wanted), #change ": %s", mha_status_string(status));            \
        for (size_t n = 0; n < offsetof(backward_memory, work) && status != MHA_OK; n++) \
            if (!CHECK(((unsigned char *)m)[n] == GAP, #change ": memory has changed"))  \
                break;                                                                   \
    } while (0)

static void wrong_rows(mha_linear *linear, backward_memory *m)
{
    const ptrdiff_t far = PTRDIFF_MAX / 2;
    TRY(MHA_OK, rows = 3);
    TRY(MHA_ERR_NULL, linear = NULL);
    TRY(MHA_ERR_SHAPE, rows = -1);
    TRY(MHA_ERR_SHAPE, rows = PTRDIFF_MIN);
    TRY(MHA_ERR_OVERFLOW, rows = PTRDIFF_MAX);
    TRY(MHA_ERR_NULL, x = NULL);
    TRY(MHA_ERR_DTYPE, x_type = MHA_F64);
    TRY(MHA_ERR_DTYPE, x_type = MHA_I8);
    TRY(MHA_ERR_DTYPE, x_type = (mha_dtype)99);
    TRY(MHA_ERR_ALIGN, x = (const char *)m->x + 1);
    TRY(MHA_ERR_OVERFLOW, x_stride = far);
    TRY(MHA_ERR_NULL, g.d_y = NULL);
    TRY(MHA_ERR_DTYPE, g.d_y_type = MHA_F64);
    TRY(MHA_ERR_DTYPE, g.d_y_type = MHA_I8);
    TRY(MHA_ERR_DTYPE, g.d_y_type = (mha_dtype)-1);
    TRY(MHA_ERR_ALIGN, g.d_y = (const char *)m->d_y + 2);
    TRY(MHA_ERR_OVERFLOW, g.d_y_stride = far);
    TRY(MHA_OK, x_stride = 0); /* one row for all */
    TRY(MHA_OK, g.d_y_stride = 0);
}

static void wrong_outputs(mha_linear *linear, backward_memory *m)
{
    const ptrdiff_t far = PTRDIFF_MAX / 2;
    TRY(MHA_ERR_ALIGN, g.d_x = (float *)((char *)m->d_x + 2));
    TRY(MHA_ERR_ALIGN, g.d_weight.data = (float *)((char *)m->d_weight + 1));
    TRY(MHA_ERR_ALIGN, g.d_bias = (float *)((char *)m->d_bias + 2));
    TRY(MHA_ERR_STRIDE, g.d_x_stride = 3);
    TRY(MHA_ERR_STRIDE, g.d_x_stride = 0);
    TRY(MHA_ERR_OVERFLOW, g.d_x_stride = far);
    TRY(MHA_ERR_STRIDE, g.d_weight.out_stride = 3);
    TRY(MHA_ERR_STRIDE, g.d_weight.in_stride = 2);
    TRY(MHA_ERR_STRIDE, g.d_weight.out_stride = 1);
    TRY(MHA_ERR_STRIDE, g.d_weight.out_stride = 0);
    TRY(MHA_ERR_OVERFLOW, g.d_weight.out_stride = far);
    TRY(MHA_OK, g.d_weight = ((mha_matrix_out){m->d_weight, 1, 5}));
    TRY(MHA_OK, g.d_weight = ((mha_matrix_out){m->d_weight, 1, 9}));
    TRY(MHA_OK, g.d_weight = ((mha_matrix_out){NULL, 7, 7})); /* not wanted, so not looked at */
    TRY(MHA_ERR_STRIDE, g.d_weight = ((mha_matrix_out){m->d_weight, 1, 4}));
    TRY(MHA_ERR_OVERLAP, g.d_x = m->d_weight);
    TRY(MHA_ERR_OVERLAP, g.d_bias = m->d_weight + 19);
    TRY(MHA_ERR_OVERLAP, g.d_bias = m->d_x);
    TRY(MHA_ERR_OVERLAP, g.d_x = m->d_y);
    TRY(MHA_ERR_OVERLAP, g.d_x = m->x);
    TRY(MHA_ERR_OVERLAP, g.d_weight.data = m->x);
    TRY(MHA_ERR_OVERLAP, g.d_bias = m->d_y);
    TRY(MHA_OK, g.accumulate = 1);
    TRY(MHA_ERR_FLAG, g.accumulate = 2);
    TRY(MHA_ERR_FLAG, g.accumulate = -1);
}

static void wrong_workspaces(mha_linear *linear, backward_memory *m)
{
    TRY(MHA_ERR_WORKSPACE, work_size = 0);
    TRY(MHA_ERR_WORKSPACE, work_size -= 1);
    TRY(MHA_ERR_OVERLAP, work = m->d_x);
    TRY(MHA_ERR_OVERLAP, work = m->d_bias);
    TRY(MHA_ERR_OVERLAP, work = m->x);
    TRY(MHA_OK, work = NULL);
    TRY(MHA_ERR_STRUCT, g.size = 0);
    TRY(MHA_ERR_STRUCT, g.size = sizeof(size_t));
    TRY(MHA_ERR_STRUCT, g.size = sizeof(mha_linear_gradients) + 8); /* finds what is not 0 */
    TRY(MHA_ERR_STRUCT, g.size = SIZE_MAX);
    TRY(MHA_OK, g.size = offsetof(mha_linear_gradients, accumulate)); /* as it was before */
    CHECK(mha_linear_backward(linear, 3, m->x, MHA_F32, 4, NULL, NULL, 0, NULL) == MHA_ERR_NULL,
          "no gradients");
    CHECK(mha_linear_backward_work_size(NULL, 3, 1) == 0 &&
              mha_linear_backward_work_size(linear, -1, 1) == 0 &&
              mha_linear_backward_work_size(linear, 3, 0) == 0 &&
              mha_linear_backward_work_size(linear, 3, MHA_MAX_THREADS + 1) == 0,
          "sizes for what cannot be");
}
#undef TRY

static void wrong_backward_passes(void)
{
    mha_linear *const linear = small_linear();
    backward_memory *const m = calloc(1, sizeof *m);
    if (!m)
        abort();
    m->work = malloc(mha_linear_backward_work_size(linear, 3, 1));
    wrong_rows(linear, m);
    wrong_outputs(linear, m);
    wrong_workspaces(linear, m);
    free(m->work);
    free(m);
    mha_linear_free(linear);
}

/* Weights that are refused leave the old ones in place. */
static void wrong_updates(void)
{
    static const float w[20] = {7, 8, 9}, x[4] = {1, 10, 100, 1000};
    float before[5], after[5];
    mha_linear *const linear = small_linear();
    const mha_matrix good = mha_matrix_out_in(w, MHA_F32, 4), none = {NULL, MHA_F32, 4, 1};
    const mha_matrix odd = mha_matrix_out_in((const char *)w + 1, MHA_F32, 4);
    const mha_matrix wide = {w, MHA_F64, 4, 1}, wild = {w, MHA_F32, PTRDIFF_MAX, PTRDIFF_MAX};
    const mha_vector bias = {w, MHA_F32}, bias_i8 = {w, MHA_I8};
    const mha_vector bias_odd = {(const char *)w + 2, MHA_F32};
    const struct {
        mha_status status;
        mha_matrix weight;
        mha_vector bias;
    } table[] = {{MHA_ERR_NULL, none, bias},     {MHA_ERR_ALIGN, odd, bias},
                 {MHA_ERR_DTYPE, wide, bias},    {MHA_ERR_OVERFLOW, wild, bias},
                 {MHA_ERR_DTYPE, good, bias_i8}, {MHA_ERR_ALIGN, good, bias_odd}};
    mha_linear_run(linear, 1, x, MHA_F32, 4, before, MHA_F32, 5, NULL, 0, NULL);
    for (size_t n = 0; n < sizeof table / sizeof *table; n++) {
        const mha_status status = mha_linear_update(linear, table[n].weight, table[n].bias);
        CHECK(status == table[n].status, "%zu: %s", n, mha_status_string(status));
        mha_linear_run(linear, 1, x, MHA_F32, 4, after, MHA_F32, 5, NULL, 0, NULL);
        CHECK(memcmp(before, after, sizeof before) == 0, "%zu: the old weights are gone", n);
    }
    CHECK(mha_linear_update(NULL, good, bias) == MHA_ERR_NULL, "no linear");
    CHECK(mha_linear_update(linear, good, bias) == MHA_OK, "good weights");
    mha_linear_run(linear, 1, x, MHA_F32, 4, after, MHA_F32, 5, NULL, 0, NULL);
    CHECK(after[0] == 7 + 80 + 900 + 7, "%g", (double)after[0]);
    mha_linear_free(linear);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(wrong_configurations);
    RUN(wrong_runs);
    RUN(wrong_backward_passes);
    RUN(wrong_updates);
    return test_end();
}
