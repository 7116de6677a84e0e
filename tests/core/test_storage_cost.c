/* SPDX-License-Identifier: MIT */
/*
 * What f16, bf16 and i8 cost: the output of a layer with its weights, its cache or both stored so,
 * against f32. Prints the table of docs/numerics.md and holds every figure to a bound.
 *
 * The layer has GPT-2's widths; inputs are normal, as after a layer norm, and weights normal, such
 * that scores have a standard deviation of about 3 and rows look at a few tokens, not at all alike.
 */
#include "support/test.h"

#include <math.h>
#include <mha/mha.h>
#include <stdio.h>
#include <stdlib.h>

enum { L = 128 };

typedef struct numbers {
    const mha_preset_info *model;
    float *weights; /* q, k, v, o: [E, E] each */
    float *x, *want, *got;
} numbers;

static float *normal(ptrdiff_t count, uint64_t seed, float size)
{
    float *const data = malloc((size_t)count * sizeof *data);
    test_random random = {seed};
    if (!data)
        abort();
    for (ptrdiff_t n = 0; n < count; n++)
        data[n] = size * test_random_normal(&random);
    return data;
}

static numbers numbers_new(void)
{
    const mha_preset_info *const model = mha_preset("gpt2-small");
    const ptrdiff_t E = model->E;
    return (numbers){.model = model,
                     .weights = normal(4 * E * E, 1, 0.06f),
                     .x = normal(L * E, 2, 1.0f),
                     .want = normal(L * E, 3, 0.0f),
                     .got = normal(L * E, 4, 0.0f)};
}

static void numbers_free(numbers *n)
{
    free(n->weights);
    free(n->x);
    free(n->want);
    free(n->got);
}

static mha_status make_layer(const numbers *n, mha_dtype stored, mha_layer **layer)
{
    const ptrdiff_t E = n->model->E;
    const mha_matrix all = mha_matrix_out_in(n->weights, MHA_F32, E);
    const mha_layer_config config = {
        .size = sizeof config, .E = E, .H = n->model->H, .stored = stored};
    const mha_layer_weights weights = {.size = sizeof weights,
                                       .q = all,
                                       .k = mha_matrix_from(all, E),
                                       .v = mha_matrix_from(all, 2 * E),
                                       .o = mha_matrix_from(all, 3 * E)};
    return mha_layer_create(layer, &config, &weights);
}

/* All tokens in one causal call that goes through a cache. */
static mha_status run(const numbers *n, mha_dtype stored, mha_dtype cached, float *y)
{
    const mha_options options = {.size = sizeof options, .flags = MHA_CAUSAL};
    const mha_cache_config config = {.size = sizeof config,
                                     .sequences = 1,
                                     .capacity = L,
                                     .G = n->model->H,
                                     .D = n->model->D,
                                     .k_type = cached,
                                     .v_type = cached};
    mha_layer *layer = NULL;
    mha_cache *cache = NULL;
    mha_status status = make_layer(n, stored, &layer);
    if (status == MHA_OK)
        status = mha_cache_create(&cache, &config);
    const mha_layer_call call = {.size = sizeof call,
                                 .B = 1,
                                 .L = L,
                                 .query = mha_view_ble(n->x, L, n->model->E),
                                 .output = mha_out_ble(y, L, n->model->E),
                                 .cache = cache,
                                 .options = &options};
    if (status == MHA_OK)
        status = mha_layer_run(layer, &call, NULL, 0, NULL);
    mha_cache_free(cache);
    mha_layer_free(layer);
    return status;
}

/* Root mean square of the error, relative to that of the output. */
static double relative_error(const numbers *n)
{
    double error = 0, size = 0;
    for (ptrdiff_t i = 0; i < L * n->model->E; i++) {
        const double difference = (double)n->got[i] - (double)n->want[i];
        error += difference * difference;
        size += (double)n->want[i] * (double)n->want[i];
    }
    return sqrt(error / size);
}

static void each_type_has_its_price(void)
{
    static const struct {
        const char *name;
        mha_dtype stored, cached;
        double bound;
    } cases[] = {
        {"f16 cache", MHA_F32, MHA_F16, 1e-3},     {"bf16 cache", MHA_F32, MHA_BF16, 8e-3},
        {"i8 cache", MHA_F32, MHA_I8, 3e-2},       {"f16 weights", MHA_F16, MHA_F32, 1e-3},
        {"bf16 weights", MHA_BF16, MHA_F32, 8e-3}, {"i8 weights", MHA_I8, MHA_F32, 5e-2},
        {"f16 both", MHA_F16, MHA_F16, 2e-3},      {"bf16 both", MHA_BF16, MHA_BF16, 1e-2},
        {"i8 both", MHA_I8, MHA_I8, 6e-2},
    };
    numbers n = numbers_new();
    CHECK(run(&n, MHA_F32, MHA_F32, n.want) == MHA_OK, "f32");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const mha_status status = run(&n, cases[i].stored, cases[i].cached, n.got);
        if (!CHECK(status == MHA_OK, "%s: %s", cases[i].name, mha_status_string(status)))
            break;
        const double error = relative_error(&n);
        CHECK(error > 0 && error < cases[i].bound, "%s: %.1e", cases[i].name, error);
        printf("     %-13s %.1e\n", cases[i].name, error);
    }
    numbers_free(&n);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(each_type_has_its_price);
    return test_end();
}
