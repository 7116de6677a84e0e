/* SPDX-License-Identifier: MIT */
/* Layers: created from plain matrices, run on contiguous rows. */
#include "mhajs.h"

static mha_matrix matrix(const float *data, ptrdiff_t inputs)
{
    return mha_matrix_out_in(data, MHA_F32, inputs);
}

static mha_vector vector(const float *data)
{
    return (mha_vector){data, MHA_F32};
}

mha_layer *mhajs_layer_create(const mhajs_layer_config *c, int32_t *status)
{
    const ptrdiff_t width = c->D ? c->D : c->H > 0 ? c->E / c->H : 0;
    const ptrdiff_t key_width = c->key_width ? c->key_width : c->E;
    const mha_layer_config config = {
        .size = sizeof config,
        .E = c->E,
        .H = c->H,
        .G = c->G,
        .D = c->D,
        .key_width = c->key_width,
        .value_width = c->value_width,
        .stored = (mha_dtype)c->stored,
        .rope = {.pairs = (mha_rope_pairs)c->rope_pairs, .base = (double)c->rope_base},
        .message = c->message,
        .message_size = (size_t)c->message_size,
    };
    const mha_layer_weights weights = {
        .size = sizeof weights,
        .q = matrix(c->q, c->E),
        .k = matrix(c->k, key_width),
        .v = matrix(c->v, c->value_width ? c->value_width : key_width),
        .o = matrix(c->o, c->H * width),
        .q_bias = vector(c->q_bias),
        .k_bias = vector(c->k_bias),
        .v_bias = vector(c->v_bias),
        .o_bias = vector(c->o_bias),
    };
    mha_layer *layer = NULL;
    *status = mha_layer_create(&layer, &config, &weights);
    return layer;
}

mha_status mhajs_layer_run(const mha_layer *layer, const mhajs_layer_call *c)
{
    const mha_layer_config config = mha_layer_get_config(layer);
    const ptrdiff_t S = c->S ? c->S : c->L;
    const mha_options options = mhajs_options_read(&c->options, config.H, c->L, S);
    const mha_layer_call call = {
        .size = sizeof call,
        .B = c->B,
        .L = c->L,
        .S = c->S,
        .query = mha_view_ble(c->query, c->L, config.E),
        .key = mha_view_ble(c->key, S, config.key_width),
        .value = mha_view_ble(c->value, S, config.value_width),
        .output = mha_out_ble(c->output, c->L, config.output_width),
        .options = &options,
    };
    return mha_layer_run(layer, &call, NULL, 0, NULL);
}
