/* SPDX-License-Identifier: MIT */
/*
 * Layers against PyTorch: every tests/golden/NAME.golden is a test of its own. The library and the
 * oracle of the other tests must both give what is written there. How the files are made, and what
 * is in them, is described in tests/golden/make_layer_goldens.py.
 */
#include "support/layer_golden.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- comparing ---- */

/* Both sides are right to a few units of f32 of the largest number around. */
static bool close_enough(double got, double want, double magnitude)
{
    return isfinite(got) && isfinite(want) && fabs(got - want) <= 2e-6 * magnitude;
}

static double magnitude_of(const float *numbers, size_t count)
{
    double largest = 1e-3;
    for (size_t n = 0; n < count; n++)
        if (fabs((double)numbers[n]) > largest) /* NaN is passed over */
            largest = fabs((double)numbers[n]);
    return largest;
}

/* PyTorch gives NaN for a row that sees no key. Here its weights are 0, and its output is what the
 * output projection makes of 0: the bias. */
static double wanted(float golden_number, const float *bias, size_t column)
{
    return isnan(golden_number) ? (bias ? (double)bias[column] : 0.0) : (double)golden_number;
}

static void compare(const char *source, const golden_entry *want, const float *got,
                    const float *bias, size_t width)
{
    const float *const numbers = want->data;
    const double magnitude = magnitude_of(numbers, want->count);
    for (size_t n = 0; n < want->count; n++) {
        const double number = wanted(numbers[n], bias, n % width);
        CHECK(close_enough((double)got[n], number, magnitude), "%s: %s[%zu] is %.9g, not %.9g",
              source, want->name, n, (double)got[n], number);
    }
}

static void comparator_is_strict(void)
{
    CHECK(close_enough(1, 1 + 1e-6, 1), "a rounding error");
    CHECK(!close_enough(1, 1 + 1e-5, 1), "an error");
    CHECK(!close_enough((double)NAN, 0, 1) && !close_enough(0, (double)NAN, 1), "NaN");
    CHECK(!close_enough((double)INFINITY, (double)INFINITY, 1), "infinity");
}

/* -------------------------------------------------------------------- running ---- */

static void run_library(const layer_problem *p, const golden *g)
{
    const golden_entry *const output = golden_find(g, "output"), *const weights =
                                                                     golden_find(g, "weights");
    const ptrdiff_t width = layer_defaults(&p->config).output_width;
    float *const y = malloc(output->count * sizeof *y);
    float *const w = malloc((weights ? weights->count : 1) * sizeof *w);
    layer_problem now = *p;
    mha_options options = *p->call.options;
    now.call.options = &options;
    now.call.output = golden_extent(g, "sequence_first") ? mha_out_lbe(y, p->call.B, width)
                                                         : mha_out_ble(y, p->call.L, width);
    if (weights) {
        const ptrdiff_t columns = layer_columns(p);
        const ptrdiff_t heads = golden_extent(g, "average") ? 1 : p->config.H;
        options.weights = mha_out_bhld(w, heads, p->call.L, columns);
    }
    mha_layer *layer = NULL;
    mha_status status = mha_layer_create(&layer, &now.config, &now.weights);
    if (status == MHA_OK)
        status = mha_layer_run(layer, &now.call, NULL, 0, NULL);
    if (CHECK(status == MHA_OK, "%s", mha_status_string(status))) {
        compare("library", output, y, p->weights.o_bias.data, (size_t)width);
        if (weights)
            compare("library", weights, w, NULL, 1);
    }
    mha_layer_free(layer);
    free(y);
    free(w);
}

static void run_oracle(const layer_problem *p, const golden *g)
{
    const golden_entry *const output = golden_find(g, "output"), *const weights =
                                                                     golden_find(g, "weights");
    const mha_layer_config full = layer_defaults(&p->config);
    const ptrdiff_t B = p->call.B, L = p->call.L, cells = L * layer_columns(p);
    const bool transposed = golden_extent(g, "sequence_first"),
               average = golden_extent(g, "average");
    layer_answer answer = layer_oracle(p);
    float *const y = calloc(output->count, sizeof *y);
    float *const w = calloc(weights ? weights->count : 1, sizeof *w);
    for (ptrdiff_t n = 0; n < B * L * full.output_width; n++) {
        const ptrdiff_t b = n / full.output_width / L, i = n / full.output_width % L;
        const ptrdiff_t row = transposed ? i * B + b : b * L + i;
        y[row * full.output_width + n % full.output_width] = (float)answer.output[n].x;
    }
    for (ptrdiff_t n = 0; weights && n < B * full.H * cells; n++)
        if (average)
            w[n / cells / full.H * cells + n % cells] +=
                (float)(answer.weights[n].x / (double)full.H);
        else
            w[n] = (float)answer.weights[n].x;
    compare("oracle", output, y, p->weights.o_bias.data, (size_t)full.output_width);
    if (weights)
        compare("oracle", weights, w, NULL, 1);
    layer_answer_free(&answer);
    free(y);
    free(w);
}

static void run_golden(void)
{
    golden g;
    mha_options options;
    if (CHECK(golden_read(&g, golden_path, "mha-layer-golden 1"), "%s cannot be read",
              golden_path)) {
        const layer_problem p = layer_golden_problem(&g, &options);
        run_oracle(&p, &g);
        run_library(&p, &g);
    }
    golden_free(&g);
}

static int golden_count;

static void files_are_there(void)
{
    CHECK(golden_count >= 40, "%d golden files in %s", golden_count, MHA_GOLDEN_FOLDER);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(comparator_is_strict);
    golden_count = golden_run_all(MHA_GOLDEN_FOLDER, run_golden);
    RUN(files_are_there);
    return test_end();
}
