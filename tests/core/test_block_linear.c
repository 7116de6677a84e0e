/* SPDX-License-Identifier: MIT */
/*
 * Linears whose weights are of a block type. Results are compared with sums in double
 * precision over the weights as mha_row_to_f32() gives them; a row has the same bits in every call;
 * and weights that are converted are those one gets by converting them by hand.
 */
#include "core/linear.h"
#include "support/block_rows.h"
#include "support/guard.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mha_linear *make(mha_matrix weight, mha_vector bias, ptrdiff_t outputs, ptrdiff_t inputs,
                        mha_dtype stored)
{
    mha_linear *linear = NULL;
    char message[200] = "";
    const mha_linear_config config = {.size = sizeof config,
                                      .inputs = inputs,
                                      .outputs = outputs,
                                      .weight = weight,
                                      .bias = bias,
                                      .stored = stored,
                                      .message = message,
                                      .message_size = sizeof message};
    CHECK(mha_linear_create(&linear, &config) == MHA_OK, "%s", message);
    return linear;
}

static float *run(const mha_linear *linear, ptrdiff_t rows, const float *x, ptrdiff_t inputs,
                  ptrdiff_t outputs, mha_pool *pool)
{
    float *const y = block_memory(sizeof(float) * (size_t)(rows * outputs));
    CHECK(mha_linear_run(linear, rows, x, MHA_F32, inputs, y, MHA_F32, outputs, NULL, 0, pool) ==
              MHA_OK,
          "run");
    return y;
}

/* ---------------------------------------------------------------------- values ---- */

/* Sums in double precision, and what f32 may add to them: inputs count as they do in a block of
 * 32 whose largest one has 24 bits. */
static void check_sums(const char *what, const float *w, const float *x, const float *y,
                       ptrdiff_t rows, ptrdiff_t outputs, ptrdiff_t inputs)
{
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t n = 0; n < outputs; n++) {
            double sum = 0, size = 0;
            for (ptrdiff_t c = 0; c < inputs; c += 32) {
                double most = 0, weights = 0;
                for (ptrdiff_t d = c; d < c + 32; d++) {
                    const double xd = (double)x[i * inputs + d], wd = (double)w[n * inputs + d];
                    sum += xd * wd;
                    most = fmax(most, fabs(xd));
                    weights += fabs(wd);
                }
                size += most * weights;
            }
            CHECK(fabs((double)y[i * outputs + n] - sum) <= 1e-6 * size,
                  "%s, %td x %td, row %td of %td, output %td: %g, not %g", what, outputs, inputs, i,
                  rows, n, (double)y[i * outputs + n], sum);
        }
}

static void sums_are_those_of_the_weights(void)
{
    static const ptrdiff_t outputs[] = {1, 17, 32, 100, 49152}, rows[] = {1, 2, 3, 9, 14, 40};
    for (int t = 0; t < BLOCK_TYPES; t++)
        for (int o = 0; o < 5; o++)
            for (int r = 0; r < (o == 4 ? 1 : 6); r++) {
                const ptrdiff_t inputs =
                    block_length(block_types[t]) * (o == 4 ? 1 : 1 + (o + r) % 3 * 5);
                uint8_t *const blocks = block_rows_random(block_types[t], outputs[o], inputs, 7);
                float *const w = block_rows_f32(block_types[t], blocks, outputs[o], inputs);
                float *const x = random_numbers(rows[r] * inputs, 8);
                mha_linear *const linear =
                    make(mha_matrix_out_in(blocks, block_types[t], inputs), (mha_vector){0},
                         outputs[o], inputs, block_types[t]);
                float *const y = run(linear, rows[r], x, inputs, outputs[o], NULL);
                char what[20];
                snprintf(what, sizeof what, "type %d", block_types[t]);
                check_sums(what, w, x, y, rows[r], outputs[o], inputs);
                mha_linear_free(linear);
                free(blocks);
                free(w);
                free(x);
                free(y);
            }
}

/* Small whole numbers and scales of 1 give exact results. */
static void whole_numbers_are_exact(void)
{
    enum { OUTPUTS = 40, INPUTS = 96, ROWS = 20 };
    float w[OUTPUTS * INPUTS], x[ROWS * INPUTS], bias[OUTPUTS];
    test_random random = {test_seed(31)};
    for (int n = 0; n < OUTPUTS * INPUTS; n++)
        w[n] = (float)(n % 32 == 0 ? 127 : test_random_below(&random, 255) - 127);
    for (int n = 0; n < ROWS * INPUTS; n++)
        x[n] = (float)(test_random_below(&random, 201) - 100);
    for (int n = 0; n < OUTPUTS; n++)
        bias[n] = (float)n;
    mha_linear *const linear = make(mha_matrix_out_in(w, MHA_F32, INPUTS),
                                    (mha_vector){bias, MHA_F32}, OUTPUTS, INPUTS, MHA_Q8_0);
    float *const y = run(linear, ROWS, x, INPUTS, OUTPUTS, NULL);
    for (int i = 0; i < ROWS; i++)
        for (int n = 0; n < OUTPUTS; n++) {
            double sum = n;
            for (int c = 0; c < INPUTS; c++)
                sum += (double)w[n * INPUTS + c] * (double)x[i * INPUTS + c];
            CHECK((double)y[i * OUTPUTS + n] == sum, "row %d, output %d: %g, not %g", i, n,
                  (double)y[i * OUTPUTS + n], sum);
        }
    mha_linear_free(linear);
    free(y);
}

/* ------------------------------------------------------------------------ bits ---- */

static void rows_and_threads_do_not_matter(void)
{
    enum { ROWS = 130, OUTPUTS = 75 };
    static const ptrdiff_t counts[] = {1, 2, 3, 4, 5, 7, 8, 12, 13, 30, 97};
    mha_pool *pool = NULL;
    CHECK(mha_pool_create(&pool, 3) == MHA_OK, "pool");
    for (int t = 0; t < BLOCK_TYPES; t++) {
        const ptrdiff_t inputs =
            block_length(block_types[t]) * (block_types[t] <= MHA_Q4_1 ? 50 : 6);
        uint8_t *const blocks = block_rows_random(block_types[t], OUTPUTS, inputs, 17);
        float *const x = random_numbers(ROWS * inputs, 18);
        mha_linear *const linear = make(mha_matrix_out_in(blocks, block_types[t], inputs),
                                        (mha_vector){0}, OUTPUTS, inputs, block_types[t]);
        float *const all = run(linear, ROWS, x, inputs, OUTPUTS, NULL);
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
            for (int threads = 0; threads < 2; threads++) {
                const ptrdiff_t first = (ptrdiff_t)(k * 7) % (ROWS - counts[k]);
                float *const some = run(linear, counts[k], x + first * inputs, inputs, OUTPUTS,
                                        threads ? pool : NULL);
                CHECK(memcmp(some, all + first * OUTPUTS,
                             sizeof(float) * (size_t)(counts[k] * OUTPUTS)) == 0,
                      "type %d: other bits in a call of %td rows", block_types[t], counts[k]);
                free(some);
            }
        mha_linear_free(linear);
        free(blocks);
        free(x);
        free(all);
    }
    mha_pool_free(pool);
}

/* Without products of bytes, results have the bits of a linear with the weights in f32. */
static void converted_slices(void)
{
    enum { OUTPUTS = 75 };
    for (int t = 0; t < BLOCK_TYPES; t++)
        for (ptrdiff_t rows = 1; rows < 200; rows = rows * 3 + 1) {
            const ptrdiff_t inputs =
                block_length(block_types[t]) * (block_types[t] <= MHA_Q4_1 ? 50 : 6);
            uint8_t *const blocks = block_rows_random(block_types[t], OUTPUTS, inputs, 117);
            float *const w = block_rows_f32(block_types[t], blocks, OUTPUTS, inputs);
            float *const x = random_numbers(rows * inputs, 118);
            mha_linear *const linear = make(mha_matrix_out_in(blocks, block_types[t], inputs),
                                            (mha_vector){0}, OUTPUTS, inputs, block_types[t]);
            mha_linear *const plain = make(mha_matrix_out_in(w, MHA_F32, inputs), (mha_vector){0},
                                           OUTPUTS, inputs, MHA_F32);
            linear->digits = false;
            float *const y = run(linear, rows, x, inputs, OUTPUTS, NULL);
            float *const wanted = run(plain, rows, x, inputs, OUTPUTS, NULL);
            CHECK(memcmp(y, wanted, sizeof(float) * (size_t)(rows * OUTPUTS)) == 0,
                  "type %d, %td rows", block_types[t], rows);
            mha_linear_free(linear);
            mha_linear_free(plain);
            free(blocks);
            free(w);
            free(x);
            free(y);
            free(wanted);
        }
}

/* One NaN or infinity in x spoils its own row and no other. */
static void damage_stays_in_its_row(void)
{
    enum { OUTPUTS = 40 };
    for (int t = 0; t < BLOCK_TYPES; t++)
        for (ptrdiff_t rows = 3; rows <= 33; rows += 30) {
            const ptrdiff_t inputs = 2 * block_length(block_types[t]);
            uint8_t *const blocks = block_rows_random(block_types[t], OUTPUTS, inputs, 27);
            float *const x = random_numbers(rows * inputs, 28);
            mha_linear *const linear = make(mha_matrix_out_in(blocks, block_types[t], inputs),
                                            (mha_vector){0}, OUTPUTS, inputs, block_types[t]);
            float *const clean = run(linear, rows, x, inputs, OUTPUTS, NULL);
            x[0 * inputs + 5] = NAN;
            x[2 * inputs + inputs - 1] = -INFINITY;
            float *const y = run(linear, rows, x, inputs, OUTPUTS, NULL);
            for (ptrdiff_t n = 0; n < rows * OUTPUTS; n++) {
                const ptrdiff_t row = n / OUTPUTS;
                CHECK(row == 0   ? isnan(y[n])
                      : row == 2 ? !isfinite(y[n])
                                 : y[n] == clean[n],
                      "type %d: row %td has %g", block_types[t], row, (double)y[n]);
            }
            mha_linear_free(linear);
            free(blocks);
            free(x);
            free(clean);
            free(y);
        }
}

/* Inputs of every size, from denormal ones to the largest. */
static void inputs_of_any_size(void)
{
    enum { OUTPUTS = 33, INPUTS = 64, SIZES = 9 };
    static const float sizes[SIZES] = {0, 1e-44f, 1e-38f, 1e-30f, 1e-10f, 1, 1e10f, 1e30f, 1e36f};
    uint8_t *const blocks = block_rows_random(MHA_Q4_1, OUTPUTS, INPUTS, 37);
    float *const w = block_rows_f32(MHA_Q4_1, blocks, OUTPUTS, INPUTS);
    float *const x = random_numbers(SIZES * INPUTS, 38);
    for (int n = 0; n < SIZES * INPUTS; n++)
        x[n] *= sizes[n / INPUTS];
    mha_linear *const linear = make(mha_matrix_out_in(blocks, MHA_Q4_1, INPUTS), (mha_vector){0},
                                    OUTPUTS, INPUTS, MHA_Q4_1);
    float *const y = run(linear, SIZES, x, INPUTS, OUTPUTS, NULL);
    for (int i = 0; i < SIZES; i++)
        for (int n = 0; n < OUTPUTS; n++) {
            double sum = 0, size = 0;
            for (int c = 0; c < INPUTS; c++) {
                sum += (double)w[n * INPUTS + c] * (double)x[i * INPUTS + c];
                size += fabs((double)w[n * INPUTS + c]);
            }
            CHECK(fabs((double)y[i * OUTPUTS + n] - sum) <=
                      1e-5 * size * (double)sizes[i] + 1e-36 * size,
                  "size %g, output %d: %g, not %g", (double)sizes[i], n, (double)y[i * OUTPUTS + n],
                  sum);
        }
    mha_linear_free(linear);
    free(blocks);
    free(w);
    free(x);
    free(y);
}

/* ----------------------------------------------------------------- conversions ---- */

/* y of a matrix, stored as given. */
static float *product(mha_matrix weight, mha_dtype stored, const float *x, ptrdiff_t rows,
                      ptrdiff_t inputs, ptrdiff_t outputs)
{
    mha_linear *const linear = make(weight, (mha_vector){0}, outputs, inputs, stored);
    float *const y = run(linear, rows, x, inputs, outputs, NULL);
    mha_linear_free(linear);
    return y;
}

/* Stored in another type, a matrix is what its f32 values give in that type. */
static void block_matrices_in_other_types(void)
{
    enum { OUTPUTS = 37, INPUTS = 512, ROWS = 3 };
    static const mha_dtype stored[] = {MHA_F32,  MHA_F16,  MHA_BF16, MHA_I8,
                                       MHA_Q8_0, MHA_Q4_0, MHA_Q4_1};
    float *const x = random_numbers(ROWS * INPUTS, 48);
    for (int t = 0; t < BLOCK_TYPES; t++) {
        uint8_t *const blocks = block_rows_random(block_types[t], OUTPUTS, INPUTS, 47);
        float *const w = block_rows_f32(block_types[t], blocks, OUTPUTS, INPUTS);
        for (size_t s = 0; s < sizeof stored / sizeof *stored; s++) {
            if (stored[s] == block_types[t])
                continue;
            float *const a = product(mha_matrix_out_in(blocks, block_types[t], INPUTS), stored[s],
                                     x, ROWS, INPUTS, OUTPUTS);
            float *const b =
                product(mha_matrix_out_in(w, MHA_F32, INPUTS), stored[s], x, ROWS, INPUTS, OUTPUTS);
            CHECK(memcmp(a, b, sizeof(float) * ROWS * OUTPUTS) == 0, "%d stored as %d",
                  block_types[t], stored[s]);
            free(a);
            free(b);
        }
        free(blocks);
        free(w);
    }
    free(x);
}

/* Numbers that are stored in a block type are those of a row converted by hand, in any layout. */
static void numbers_stored_as_blocks(void)
{
    enum { OUTPUTS = 21, INPUTS = 160, ROWS = 3 };
    float *const x = random_numbers(ROWS * INPUTS, 58), *const w =
                                                            random_numbers(OUTPUTS * INPUTS, 57);
    float *const transposed = block_memory(sizeof(float) * OUTPUTS * INPUTS);
    for (int n = 0; n < OUTPUTS; n++)
        for (int c = 0; c < INPUTS; c++)
            transposed[c * OUTPUTS + n] = w[n * INPUTS + c];
    for (int t = 0; t < 3; t++) {
        uint8_t *const blocks = block_memory(OUTPUTS * mha_row_bytes(block_types[t], INPUTS));
        mhai_blocks_from_f32(block_types[t], w, OUTPUTS * INPUTS, blocks);
        float *const a = product(mha_matrix_out_in(blocks, block_types[t], INPUTS), block_types[t],
                                 x, ROWS, INPUTS, OUTPUTS);
        float *const b = product(mha_matrix_out_in(w, MHA_F32, INPUTS), block_types[t], x, ROWS,
                                 INPUTS, OUTPUTS);
        float *const c = product(mha_matrix_in_out(transposed, MHA_F32, OUTPUTS), block_types[t], x,
                                 ROWS, INPUTS, OUTPUTS);
        CHECK(memcmp(a, b, sizeof(float) * ROWS * OUTPUTS) == 0, "type %d", block_types[t]);
        CHECK(memcmp(a, c, sizeof(float) * ROWS * OUTPUTS) == 0, "type %d, [in, out]",
              block_types[t]);
        free(blocks);
        free(a);
        free(b);
        free(c);
    }
    free(x);
    free(w);
    free(transposed);
}

/* A part of a fused matrix, rows that are apart or run backwards, and a matrix at an odd address.
 */
static void rows_anywhere(void)
{
    enum { OUTPUTS = 50, INPUTS = 256, ROWS = 2, FIRST = 20 };
    float *const x = random_numbers(ROWS * INPUTS, 68);
    for (int t = 0; t < BLOCK_TYPES; t++) {
        const size_t row = mha_row_bytes(block_types[t], INPUTS);
        uint8_t *const blocks = block_rows_random(block_types[t], OUTPUTS, INPUTS, 67);
        float *const all = product(mha_matrix_out_in(blocks, block_types[t], INPUTS),
                                   block_types[t], x, ROWS, INPUTS, OUTPUTS);
        const mha_matrix from =
            mha_matrix_from(mha_matrix_out_in(blocks, block_types[t], INPUTS), FIRST);
        float *const part = product(from, block_types[t], x, ROWS, INPUTS, OUTPUTS - FIRST);
        guard_buffer apart = guard_new(2 * OUTPUTS * row - row + 1, GUARD_BEFORE);
        for (size_t n = 0; n < OUTPUTS; n++)
            memcpy((uint8_t *)apart.data + 1 + 2 * n * row, blocks + n * row, row);
        guard_seal(&apart);
        const mha_matrix gaps = {(uint8_t *)apart.data + 1, block_types[t], 2 * INPUTS, 1};
        float *const same = product(gaps, block_types[t], x, ROWS, INPUTS, OUTPUTS);
        const mha_matrix back = {blocks + (OUTPUTS - 1) * row, block_types[t], -INPUTS, 1};
        float *const reversed = product(back, block_types[t], x, ROWS, INPUTS, OUTPUTS);
        float *const last =
            product(mha_matrix_from(back, OUTPUTS - 1), block_types[t], x, ROWS, INPUTS, 1);
        CHECK(memcmp(same, all, sizeof(float) * ROWS * OUTPUTS) == 0, "type %d: gaps",
              block_types[t]);
        for (int i = 0; i < ROWS; i++) {
            CHECK(last[i] == all[i * OUTPUTS], "type %d: from the end", block_types[t]);
            for (int n = 0; n < OUTPUTS; n++)
                CHECK(reversed[i * OUTPUTS + n] == all[i * OUTPUTS + OUTPUTS - 1 - n],
                      "type %d: backwards", block_types[t]);
            for (int n = FIRST; n < OUTPUTS; n++)
                CHECK(part[i * (OUTPUTS - FIRST) + n - FIRST] == all[i * OUTPUTS + n],
                      "type %d: a part", block_types[t]);
        }
        guard_free(&apart);
        free(blocks);
        free(all);
        free(part);
        free(same);
        free(reversed);
        free(last);
    }
    free(x);
}

static void updates(void)
{
    enum { OUTPUTS = 37, INPUTS = 256, ROWS = 2 };
    float *const x = random_numbers(ROWS * INPUTS, 78);
    for (int t = 0; t < BLOCK_TYPES; t++) {
        uint8_t *const before = block_rows_random(block_types[t], OUTPUTS, INPUTS, 76);
        uint8_t *const blocks = block_rows_random(block_types[t], OUTPUTS, INPUTS, 77);
        const mha_matrix weight = mha_matrix_out_in(blocks, block_types[t], INPUTS);
        mha_linear *const linear = make(mha_matrix_out_in(before, block_types[t], INPUTS),
                                        (mha_vector){0}, OUTPUTS, INPUTS, block_types[t]);
        CHECK(mha_linear_update(linear, weight, (mha_vector){0}) == MHA_OK, "update");
        float *const a = run(linear, ROWS, x, INPUTS, OUTPUTS, NULL);
        float *const b = product(weight, block_types[t], x, ROWS, INPUTS, OUTPUTS);
        CHECK(memcmp(a, b, sizeof(float) * ROWS * OUTPUTS) == 0, "type %d", block_types[t]);
        const mha_status status =
            mha_linear_update(linear, mha_matrix_out_in(x, MHA_F32, 0), (mha_vector){0});
        CHECK(status == (t < 3 ? MHA_OK : MHA_ERR_DTYPE), "type %d from f32: %d", block_types[t],
              status);
        mha_linear_free(linear);
        free(before);
        free(blocks);
        free(a);
        free(b);
    }
    free(x);
}

/* ---------------------------------------------------------------------- errors ---- */

static void refused(const char *part, mha_status wanted, mha_matrix weight, ptrdiff_t outputs,
                    ptrdiff_t inputs, mha_dtype stored)
{
    mha_linear *linear = (mha_linear *)&linear;
    char message[200] = "";
    const mha_linear_config config = {.size = sizeof config,
                                      .inputs = inputs,
                                      .outputs = outputs,
                                      .weight = weight,
                                      .stored = stored,
                                      .message = message,
                                      .message_size = sizeof message};
    const mha_status status = mha_linear_create(&linear, &config);
    CHECK(status == wanted && !linear, "%s: %s", part, mha_status_string(status));
    CHECK(strstr(message, part), "no \"%s\" in: %s", part, message);
}

static void wrong_matrices(void)
{
    static const uint8_t data[4096];
    const mha_matrix q4 = mha_matrix_out_in(data, MHA_Q4_1, 64);
    const mha_matrix k = mha_matrix_out_in(data, MHA_Q4_K, 256);
    const mha_matrix plain = {data, MHA_F32, 0, 0}, none = {NULL, MHA_Q4_1, 64, 1};
    const mha_matrix across = {data, MHA_Q4_1, 1, 64}, odd = {data, MHA_Q4_1, 33, 1};
    const mha_matrix wild = {data, MHA_Q4_1, PTRDIFF_MAX / 32 * 32, 1};
    refused("multiple of 32", MHA_ERR_SHAPE, q4, 4, 48, MHA_Q4_1);
    refused("multiple of 32", MHA_ERR_SHAPE, q4, 4, 48, MHA_F32);
    refused("multiple of 256", MHA_ERR_SHAPE, k, 4, 128, MHA_Q4_K);
    refused("multiple of 32", MHA_ERR_SHAPE, plain, 4, 31, MHA_Q8_0);
    refused("in_stride is 1", MHA_ERR_STRIDE, across, 4, 64, MHA_Q4_1);
    refused("out_stride", MHA_ERR_STRIDE, odd, 4, 64, MHA_Q4_1);
    refused("address space", MHA_ERR_OVERFLOW, wild, 400, 64, MHA_Q4_1);
    refused("NULL", MHA_ERR_NULL, none, 4, 64, MHA_Q4_1);
    refused("cannot be converted to MHA_Q4_K", MHA_ERR_DTYPE, plain, 4, 256, MHA_Q4_K);
    refused("cannot be converted to MHA_Q6_K", MHA_ERR_DTYPE, k, 4, 256, MHA_Q6_K);
    refused("config.stored", MHA_ERR_DTYPE, plain, 4, 256, (mha_dtype)11);
}

static void no_backward_pass(void)
{
    static const uint8_t data[20 * 4];
    float x[32] = {0}, d_y[4] = {0}, d_x[32];
    mha_linear *const linear =
        make(mha_matrix_out_in(data, MHA_Q4_1, 32), (mha_vector){0}, 4, 32, MHA_Q4_1);
    const mha_linear_gradients g = {
        .size = sizeof g, .d_y = d_y, .d_y_stride = 4, .d_x = d_x, .d_x_stride = 32};
    CHECK(mha_linear_backward(linear, 1, x, MHA_F32, 32, &g, NULL, 0, NULL) == MHA_ERR_DTYPE,
          "backward");
    CHECK(mha_linear_backward_work_size(linear, 1, 1) == 0, "its workspace");
    mha_linear_free(linear);
}

/* Outputs and inputs of 0 are allowed, as for every type. */
static void nothing_to_do(void)
{
    for (int t = 0; t < BLOCK_TYPES; t++) {
        float x[256] = {0}, y[3] = {7, 7, 7}, bias[] = {1, 2, 3};
        const mha_matrix none = {NULL, block_types[t], 0, 1};
        mha_linear *const empty = make(none, (mha_vector){0}, 0, 256, block_types[t]);
        CHECK(mha_linear_run(empty, 1, x, MHA_F32, 256, y, MHA_F32, 3, NULL, 0, NULL) == MHA_OK,
              "no outputs");
        CHECK(y[0] == 7, "written");
        mha_linear *const constant = make(none, (mha_vector){bias, MHA_F32}, 3, 0, block_types[t]);
        CHECK(mha_linear_run(constant, 1, x, MHA_F32, 0, y, MHA_F32, 3, NULL, 0, NULL) == MHA_OK,
              "no inputs");
        CHECK(memcmp(y, bias, sizeof y) == 0, "the bias alone");
        mha_linear_free(empty);
        mha_linear_free(constant);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(sums_are_those_of_the_weights);
    RUN(whole_numbers_are_exact);
    RUN(rows_and_threads_do_not_matter);
    RUN(converted_slices);
    RUN(damage_stays_in_its_row);
    RUN(inputs_of_any_size);
    RUN(block_matrices_in_other_types);
    RUN(numbers_stored_as_blocks);
    RUN(rows_anywhere);
    RUN(updates);
    RUN(wrong_matrices);
    RUN(no_backward_pass);
    RUN(nothing_to_do);
    return test_end();
}
