/* SPDX-License-Identifier: MIT */
/*
 * Runs the heads of a convolution: in f32 as an mha_layer, in f64 as mha_attention() between
 * products in double. Callers pass f64 in both cases; f32 rounds on the way in.
 */
#include <stdlib.h>

#include "claims/convolution_parts.h"

/* The bias or mask, with a batch stride of 0: all pictures of a batch share it. */
static mha_options options_of(const conv_heads *heads)
{
    const ptrdiff_t L = heads->L, S = heads->S;
    mha_options options = {.size = sizeof options, .scale = 1.0f};
    if (heads->mask != NULL)
        options.attend_mask = (mha_view){heads->mask, 0, L * S, S};
    if (heads->bias_f32 != NULL) {
        options.bias = (mha_view){heads->bias_f32, 0, L * S, S};
        options.bias_type = MHA_F32;
    } else if (heads->bias != NULL) {
        options.bias = (mha_view){heads->bias, 0, L * S, S};
        options.bias_type = MHA_F64;
    }
    return options;
}

/* ----------------------------------------------------------------- f32 ----- */

/* A copy in f32; NULL if out of memory. A count of 0 is not an error. */
static float *to_f32(const double *x, ptrdiff_t count)
{
    float *const y = malloc((size_t)(count + 1) * sizeof *y);
    for (ptrdiff_t n = 0; y != NULL && n < count; n++)
        y[n] = (float)x[n];
    return y;
}

static void to_f64(const float *x, ptrdiff_t count, double *y)
{
    for (ptrdiff_t n = 0; n < count; n++)
        y[n] = (double)x[n];
}

static mha_status create_layer(conv_heads *heads, const float *q, const float *k, const float *v,
                               const float *o, const float *bias)
{
    const mha_layer_config config = {.size = sizeof config,
                                     .E = heads->E,
                                     .H = heads->H,
                                     .D = heads->D,
                                     .Dv = heads->Dv,
                                     .output_width = heads->spec.outputs};
    const mha_layer_weights weights = {.size = sizeof weights,
                                       .q = mha_matrix_out_in(q, MHA_F32, heads->E),
                                       .k = mha_matrix_out_in(k, MHA_F32, heads->E),
                                       .v = mha_matrix_out_in(v, MHA_F32, heads->E),
                                       .o = mha_matrix_out_in(o, MHA_F32, heads->H * heads->Dv),
                                       .o_bias = {heads->spec.bias != NULL ? bias : NULL, MHA_F32}};
    return mha_layer_create(&heads->layer, &config, &weights);
}

mha_status conv_layer(conv_heads *heads)
{
    const ptrdiff_t projected = heads->H * heads->D * heads->E;
    const bool biased = heads->spec.bias != NULL;
    float *const q = to_f32(heads->q, projected), *const k = to_f32(heads->k, projected);
    float *const v = to_f32(heads->v, heads->H * heads->Dv * heads->E);
    float *const o = to_f32(heads->o, heads->H * heads->Dv * heads->spec.outputs);
    float *const bias = to_f32(heads->spec.bias, biased ? heads->spec.outputs : 0);
    mha_status status = MHA_ERR_MEMORY;
    if (q && k && v && o && bias)
        status = create_layer(heads, q, k, v, o, bias);
    free(q);
    free(k);
    free(v);
    free(o);
    free(bias);
    return status;
}

static mha_status run_layer(const conv_heads *heads, ptrdiff_t B, const float *keys,
                            const float *queries, float *y, float *weights, mha_pool *pool)
{
    mha_options options = options_of(heads);
    if (weights != NULL)
        options.weights = mha_out_bhld(weights, heads->H, heads->L, heads->S);
    const mha_layer_call call = {.size = sizeof call,
                                 .B = B,
                                 .L = heads->L,
                                 .S = heads->S,
                                 .query = mha_view_ble(queries, heads->L, heads->E),
                                 .key = mha_view_ble(keys, heads->S, heads->E),
                                 .output = mha_out_ble(y, heads->L, heads->spec.outputs),
                                 .options = &options};
    return mha_layer_run(heads->layer, &call, NULL, 0, pool);
}

/* Rounds keys and queries, runs the layer, and widens the outputs. */
static mha_status run_f32(const conv_heads *heads, ptrdiff_t B, const double *keys,
                          const double *queries, double *y, double *weights, mha_pool *pool)
{
    const ptrdiff_t outputs = B * heads->L * heads->spec.outputs;
    const ptrdiff_t scores = weights != NULL ? B * heads->H * heads->L * heads->S : 0;
    float *const keys32 = to_f32(keys, B * heads->S * heads->E);
    float *const queries32 = to_f32(queries, B * heads->L * heads->E);
    float *const y32 = malloc((size_t)(outputs + 1) * sizeof *y32);
    float *const weights32 = malloc((size_t)(scores + 1) * sizeof *weights32);
    mha_status status = MHA_ERR_MEMORY;
    if (keys32 && queries32 && y32 && weights32)
        status =
            run_layer(heads, B, keys32, queries32, y32, weights != NULL ? weights32 : NULL, pool);
    if (status == MHA_OK) {
        to_f64(y32, outputs, y);
        to_f64(weights32, scores, weights);
    }
    free(keys32);
    free(queries32);
    free(y32);
    free(weights32);
    return status;
}

/* ----------------------------------------------------------------- f64 ----- */

/* x W^T + bias in a new array; `bias` may be NULL. Sums run in ascending order. Returns NULL if
 * out of memory. */
static double *product(const double *x, ptrdiff_t rows, ptrdiff_t inputs, const double *w,
                       ptrdiff_t outputs, const double *bias)
{
    double *const y = malloc((size_t)(rows * outputs + 1) * sizeof *y);
    for (ptrdiff_t i = 0; y != NULL && i < rows; i++)
        for (ptrdiff_t n = 0; n < outputs; n++) {
            double sum = 0.0;
            for (ptrdiff_t c = 0; c < inputs; c++)
                sum += x[i * inputs + c] * w[n * inputs + c];
            y[i * outputs + n] = bias != NULL ? sum + bias[n] : sum;
        }
    return y;
}

/* The operator on projected q, k and v; o is [B][L][H][Dv]. */
static mha_status attend(const conv_heads *heads, ptrdiff_t B, const double *q, const double *k,
                         const double *v, double *o, double *weights, mha_pool *pool)
{
    const ptrdiff_t H = heads->H, L = heads->L, S = heads->S;
    const mha_shape shape = {.B = B,
                             .H = H,
                             .L = L,
                             .S = S,
                             .D = heads->D,
                             .Dv = heads->Dv,
                             .q_type = MHA_F64,
                             .k_type = MHA_F64,
                             .v_type = MHA_F64,
                             .o_type = MHA_F64};
    mha_options options = options_of(heads);
    if (weights != NULL) {
        options.weights = mha_out_bhld(weights, H, L, S);
        options.weights_type = MHA_F64;
    }
    return mha_attention(&shape, mha_view_blhd(q, H, L, heads->D), mha_view_blhd(k, H, S, heads->D),
                         mha_view_blhd(v, H, S, heads->Dv), mha_out_blhd(o, H, L, heads->Dv),
                         &options, pool);
}

static void copy(const double *x, ptrdiff_t count, double *y)
{
    for (ptrdiff_t n = 0; n < count; n++)
        y[n] = x[n];
}

/* Projects, attends, and projects the heads to the output. */
static mha_status run_f64(const conv_heads *heads, ptrdiff_t B, const double *keys,
                          const double *queries, double *y, double *weights, mha_pool *pool)
{
    const ptrdiff_t E = heads->E, HD = heads->H * heads->D, HDv = heads->H * heads->Dv;
    const ptrdiff_t outputs = heads->spec.outputs, rows = B * heads->L;
    double *const q = product(queries, rows, E, heads->q, HD, NULL);
    double *const k = product(keys, B * heads->S, E, heads->k, HD, NULL);
    double *const v = product(keys, B * heads->S, E, heads->v, HDv, NULL);
    double *const o = malloc((size_t)(rows * HDv + 1) * sizeof *o);
    mha_status status = MHA_ERR_MEMORY;
    if (q && k && v && o)
        status = attend(heads, B, q, k, v, o, weights, pool);
    if (status == MHA_OK) {
        double *const result = product(o, rows, HDv, heads->o, outputs, heads->spec.bias);
        status = result != NULL ? MHA_OK : MHA_ERR_MEMORY;
        copy(result, result != NULL ? rows * outputs : 0, y);
        free(result);
    }
    free(q);
    free(k);
    free(v);
    free(o);
    return status;
}

mha_status conv_run(const conv_heads *heads, ptrdiff_t B, const double *keys, const double *queries,
                    double *y, double *weights, mha_pool *pool)
{
    return (heads->spec.type == MHA_F64 ? run_f64 : run_f32)(heads, B, keys, queries, y, weights,
                                                             pool);
}
