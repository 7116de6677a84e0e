/* SPDX-License-Identifier: MIT */
/* Tests of the operations on rows (row_math.h) against the formulas in double. */
#include "support/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "translator/row_math.h"

enum { WIDTH_MAX = 600 };

static const int widths[] = {1, 2, 3, 4, 5, 8, 31, 64, 66, 570};
enum { WIDTHS = sizeof widths / sizeof widths[0] };

static void fill(test_random *random, float *x, int width, float scale)
{
    for (int c = 0; c < width; c++)
        x[c] = scale * test_random_normal(random);
}

/* ------------------------------------------------------------- softmax ----- */

static void check_softmax(const float *logits, int width, int expected)
{
    float out[WIDTH_MAX + 1], sum;
    memcpy(out, logits, (size_t)width * sizeof *out);
    out[width] = 77.0f;
    double largest = -INFINITY, total = 0.0;
    for (int c = 0; c < width; c++)
        largest = (double)logits[c] > largest ? (double)logits[c] : largest;
    for (int c = 0; c < width; c++)
        total += exp((double)logits[c] - largest);
    const row_score score = row_softmax(out, width, expected, &sum);
    /* cppcheck-suppress invalidFunctionArg ; a row has a width */
    const double wanted = log(total) + largest - (double)logits[expected];
    CHECK(fabs(score.loss - wanted) < 1e-6 * (1.0 + wanted), "width %d: %g, not %g", width,
          score.loss, wanted);
    CHECK(score.right == ((double)logits[expected] >= largest), "width %d: right", width);
    row_softmax_backward(out, width, expected, sum, 0.1f, 0.25f);
    for (int c = 0; c < width; c++) {
        const double target = 0.1 / width + (c == expected ? 0.9 : 0.0);
        const double d = 0.25 * (exp((double)logits[c] - largest) / total - target);
        CHECK(fabs((double)out[c] - d) < 1e-7, "width %d: %g, not %g", width, (double)out[c], d);
    }
    CHECK(out[width] == 77.0f, "width %d: written past the row", width);
}

static void softmax_is_the_formula(void)
{
    test_random random = {test_seed(1)};
    for (int n = 0; n < WIDTHS; n++)
        for (int scale = 1; scale <= 100; scale *= 10) {
            float logits[WIDTH_MAX];
            fill(&random, logits, widths[n], (float)scale);
            for (int expected = 0; expected < widths[n]; expected += 1 + widths[n] / 5)
                check_softmax(logits, widths[n], expected);
        }
}

static void the_likeliest_word_is_right(void)
{
    float logits[5] = {1.0f, 3.0f, 2.0f, 3.0f, -INFINITY}, sum;
    for (int expected = 0; expected < 5; expected++) {
        float copy[5];
        memcpy(copy, logits, sizeof copy);
        const row_score score = row_softmax(copy, 5, expected, &sum);
        CHECK(score.right == (expected == 1 || expected == 3), "word %d", expected);
        CHECK((expected == 4) == (score.loss == (double)INFINITY), "word %d: %g", expected,
              score.loss);
    }
}

static void nan_does_not_vanish(void)
{
    for (int n = 0; n < WIDTHS; n++)
        for (int at = 0; at < widths[n]; at += 1 + widths[n] / 7)
            for (int sign = -1; sign <= 1; sign += 2) {
                float x[WIDTH_MAX] = {0.0f}, sum;
                x[at] = copysignf(NAN, (float)sign);
                row_relu(x, widths[n]);
                CHECK(isnan(x[at]), "relu, width %d at %d", widths[n], at);
                const row_score score = row_softmax(x, widths[n], 0, &sum);
                CHECK(isnan(score.loss), "loss %g, width %d at %d", score.loss, widths[n], at);
            }
}

/* ---------------------------------------------------------------- relu ----- */

static void relu_goes_there_and_back(void)
{
    test_random random = {test_seed(2)};
    for (int n = 0; n < WIDTHS; n++) {
        float x[WIDTH_MAX], y[WIDTH_MAX], d[WIDTH_MAX];
        const int width = widths[n];
        fill(&random, x, width, 1.0f);
        x[0] = 0.0f;
        memcpy(y, x, sizeof y);
        memcpy(d, x, sizeof d);
        for (int c = 0; c < width; c++)
            d[c] += 5.0f;
        row_relu(y, width);
        row_relu_backward(y, width, d);
        for (int c = 0; c < width; c++) {
            CHECK(y[c] == (x[c] > 0.0f ? x[c] : 0.0f), "width %d column %d", width, c);
            CHECK(d[c] == (x[c] > 0.0f ? x[c] + 5.0f : 0.0f), "width %d column %d", width, c);
        }
    }
}

/* ------------------------------------------------------------- dropout ----- */

static void dropout_keeps_its_share(void)
{
    static const double probabilities[] = {0.0, 0.1, 0.5, 0.9, 0.9999999};
    for (int n = 0; n < 5; n++) {
        const double p = probabilities[n];
        const row_dropout dropout = row_dropout_make(p, 3);
        double sum = 0.0;
        int dropped = 0, all = 0;
        for (ptrdiff_t row = 0; row < 300; row++) {
            float x[100], y[100];
            for (int c = 0; c < 100; c++)
                x[c] = 1.0f;
            row_drop(&dropout, row, x, 100, y);
            for (int c = 0; c < 100; c++, all++) {
                CHECK(y[c] == 0.0f || y[c] == dropout.scale, "%g", (double)y[c]);
                dropped += y[c] == 0.0f;
                sum += (double)y[c];
            }
        }
        const double share = (double)dropped / all, kept = fmax(1.0 - p, 1.0 / 65536);
        CHECK(fabs(share - (1.0 - kept)) < 5.0 * sqrt(p * (1.0 - p) / all) + 1e-3, "%g: %g", p,
              share);
        CHECK(fabs((double)dropout.scale * kept - 1.0) < 1e-4, "%g: scale %g", p,
              (double)dropout.scale);
        CHECK(n == 4 || fabs(sum / all - 1.0) < 0.1, "%g: mean %g", p, sum / all);
    }
}

/* Rows, columns and keys drop independently: with probability 1/2 each, about a quarter drop in
 * both. */
static void dropout_knows_no_pattern(void)
{
    enum { ROWS = 64, WIDTH = 256 };
    static float y[3][ROWS][WIDTH];
    for (int n = 0; n < 2; n++) {
        const row_dropout dropout = row_dropout_make(0.5, (uint64_t)n);
        for (int row = 0; row < ROWS; row++) {
            float ones[WIDTH];
            for (int c = 0; c < WIDTH; c++)
                ones[c] = 1.0f;
            row_drop(&dropout, row, ones, WIDTH, y[n][row]);
            row_drop(&dropout, row, ones, WIDTH, y[2][row]);
            CHECK(n == 1 || memcmp(y[0][row], y[2][row], sizeof y[2][row]) == 0,
                  "not the same again");
        }
    }
    int rows = 0, columns = 0, keys = 0;
    for (int row = 0; row + 1 < ROWS; row++)
        for (int c = 0; c + 1 < WIDTH; c++) {
            const bool here = y[0][row][c] == 0.0f;
            rows += here && y[0][row + 1][c] == 0.0f;
            columns += here && y[0][row][c + 1] == 0.0f;
            keys += here && y[1][row][c] == 0.0f;
        }
    const int all = (ROWS - 1) * (WIDTH - 1), tolerance = 300;
    CHECK(abs(4 * rows - all) < 4 * tolerance, "rows: %d of %d", rows, all);
    CHECK(abs(4 * columns - all) < 4 * tolerance, "columns: %d of %d", columns, all);
    CHECK(abs(4 * keys - all) < 4 * tolerance, "keys: %d of %d", keys, all);
}

static void dropped_nan_is_gone(void)
{
    const row_dropout dropout = row_dropout_make(0.5, 1);
    for (int width = 1; width < 70; width++) {
        float x[71], y[71];
        for (int c = 0; c <= width; c++)
            x[c] = NAN;
        y[width] = 5.0f;
        row_drop(&dropout, 9, x, width, y);
        row_drop(&dropout, 9, x, width, x);
        for (int c = 0; c < width; c++)
            CHECK((isnan(y[c]) || y[c] == 0.0f) && isnan(x[c]) == isnan(y[c]), "width %d", width);
        CHECK(y[width] == 5.0f, "width %d: written past the row", width);
    }
}

/* ---------------------------------------------------------------- norm ----- */

static void norm_backward_is_the_formula(void)
{
    test_random random = {test_seed(4)};
    for (int n = 1; n < WIDTHS; n++) {
        const int width = widths[n];
        float x[WIDTH_MAX], weight[WIDTH_MAX], bias[WIDTH_MAX], y[WIDTH_MAX], d_y[WIDTH_MAX];
        float d_x[WIDTH_MAX], d_weight[WIDTH_MAX], d_bias[WIDTH_MAX], stats[2];
        fill(&random, x, width, 2.0f);
        fill(&random, weight, width, 1.0f);
        fill(&random, bias, width, 1.0f);
        fill(&random, d_y, width, 1.0f);
        for (int c = 0; c < width; c++)
            d_x[c] = d_weight[c] = d_bias[c] = 1.0f;
        row_norm(x, width, weight, bias, y, stats);
        row_norm_backward(x, stats, weight, d_y, width, d_x, d_weight, d_bias);
        const double inverse = (double)stats[1];
        double plain = 0.0, along = 0.0;
        for (int c = 0; c < width; c++) {
            const double normal = ((double)x[c] - (double)stats[0]) * inverse;
            plain += (double)d_y[c] * (double)weight[c] / width;
            along += (double)d_y[c] * (double)weight[c] * normal / width;
        }
        for (int c = 0; c < width; c++) {
            const double normal = ((double)x[c] - (double)stats[0]) * inverse, d = (double)d_y[c];
            const double wanted = inverse * (d * (double)weight[c] - plain - normal * along);
            CHECK(fabs((double)d_x[c] - 1.0 - wanted) < 1e-5 * (1.0 + inverse),
                  "width %d: %g, not %g", width, (double)d_x[c] - 1.0, wanted);
            CHECK(fabs((double)d_weight[c] - 1.0 - d * normal) < 1e-5, "width %d: weight", width);
            CHECK(fabs((double)d_bias[c] - 1.0 - d) < 1e-5, "width %d: bias", width);
        }
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(softmax_is_the_formula);
    RUN(the_likeliest_word_is_right);
    RUN(nan_does_not_vanish);
    RUN(relu_goes_there_and_back);
    RUN(dropout_keeps_its_share);
    RUN(dropout_knows_no_pattern);
    RUN(dropped_nan_is_gone);
    RUN(norm_backward_is_the_formula);
    return test_end();
}
