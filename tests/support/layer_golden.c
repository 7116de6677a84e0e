/* SPDX-License-Identifier: MIT */
/* Makes the layer, the inputs and the call that a golden file describes (golden_file.h). */
#include "support/layer_golden.h"

static mha_layer_config config_of(const golden *g)
{
    return (mha_layer_config){
        .size = sizeof(mha_layer_config),
        .flags = golden_extent(g, "zero_attn") ? MHA_LAYER_ZERO_ATTN : 0,
        .norm_eps = (float)golden_number(g, "norm_eps"),
        .E = golden_extent(g, "E"),
        .H = golden_extent(g, "H"),
        .G = golden_extent(g, "G"),
        .D = golden_extent(g, "D"),
        .Dv = golden_extent(g, "Dv"),
        .key_width = golden_extent(g, "key_width"),
        .value_width = golden_extent(g, "value_width"),
        .output_width = golden_extent(g, "output_width"),
        .norm = (mha_norm)golden_extent(g, "norm"),
        .rope = {.pairs = (mha_rope_pairs)golden_extent(g, "rope"),
                 .width = golden_extent(g, "rope_width"),
                 .base = golden_number(g, "rope_base"),
                 .frequencies = golden_data(g, "frequencies")},
    };
}

static mha_matrix matrix_of(const golden *g, const char *name)
{
    const golden_entry *const e = golden_find(g, name);
    if (!e)
        return (mha_matrix){0};
    return golden_extent(g, "conv") ? mha_matrix_in_out(e->data, MHA_F32, e->extents[1])
                                    : mha_matrix_out_in(e->data, MHA_F32, e->extents[1]);
}

static mha_vector vector_of(const golden *g, const char *name)
{
    return (mha_vector){golden_data(g, name), MHA_F32};
}

static mha_vector vector_from(mha_vector vector, ptrdiff_t first)
{
    if (vector.data)
        vector.data = (const float *)vector.data + first;
    return vector;
}

static mha_layer_weights weights_of(const golden *g)
{
    const mha_layer_config config = config_of(g), full = layer_defaults(&config);
    const ptrdiff_t k = full.H * full.D, v = k + full.G * full.D;
    mha_layer_weights w = {
        .size = sizeof w,
        .q = matrix_of(g, "q_weight"),
        .k = matrix_of(g, "k_weight"),
        .v = matrix_of(g, "v_weight"),
        .o = matrix_of(g, "o_weight"),
        .q_bias = vector_of(g, "q_bias"),
        .k_bias = vector_of(g, "k_bias"),
        .v_bias = vector_of(g, "v_bias"),
        .o_bias = vector_of(g, "o_bias"),
        .extra_key = vector_of(g, "extra_key"),
        .extra_value = vector_of(g, "extra_value"),
        .q_norm = vector_of(g, "q_norm"),
        .k_norm = vector_of(g, "k_norm"),
        .q_norm_bias = vector_of(g, "q_norm_bias"),
        .k_norm_bias = vector_of(g, "k_norm_bias"),
    };
    if (golden_find(g, "in_weight")) {
        w.q = matrix_of(g, "in_weight");
        w.k = mha_matrix_from(w.q, k);
        w.v = mha_matrix_from(w.q, v);
    }
    if (golden_find(g, "in_bias")) {
        w.q_bias = vector_of(g, "in_bias");
        w.k_bias = vector_from(w.q_bias, k);
        w.v_bias = vector_from(w.q_bias, v);
    }
    return w;
}

mha_view layer_golden_rows(const golden *g, const char *name, ptrdiff_t rows, ptrdiff_t width)
{
    const void *const data = golden_data(g, name);
    if (!data)
        return (mha_view){0};
    return golden_extent(g, "sequence_first") ? mha_view_lbe(data, golden_extent(g, "B"), width)
                                              : mha_view_ble(data, rows, width);
}

static mha_options options_of(const golden *g)
{
    mha_options o = {
        .size = sizeof o,
        .flags = golden_extent(g, "causal") ? MHA_CAUSAL : 0,
        .scale = (float)golden_number(g, "scale"),
        .softcap = (float)golden_number(g, "softcap"),
        .attend_mask = golden_mask(g, "attend_mask"),
        .ignore_mask = golden_mask(g, "ignore_mask"),
        .add_mask = golden_mask(g, "add_mask"),
        .alibi_slopes = golden_data(g, "alibi"),
        .sinks = golden_data(g, "sinks"),
    };
    if (golden_extent(g, "window_left") || golden_extent(g, "window_right")) {
        o.flags |= MHA_WINDOW;
        o.window_left = golden_extent(g, "window_left") - 1;
        o.window_right = golden_extent(g, "window_right") - 1;
    }
    o.flags |= golden_extent(g, "average") ? (unsigned)MHA_AVERAGE_WEIGHTS : 0u;
    return o;
}

layer_problem layer_golden_problem(const golden *g, mha_options *options)
{
    layer_problem p = {.config = config_of(g), .weights = weights_of(g)};
    const mha_layer_config full = layer_defaults(&p.config);
    *options = options_of(g);
    p.call = (mha_layer_call){
        .size = sizeof p.call,
        .B = golden_extent(g, "B"),
        .L = golden_extent(g, "L"),
        .S = golden_extent(g, "S"),
        .query = layer_golden_rows(g, "query", golden_extent(g, "L"), full.E),
        .key = layer_golden_rows(g, "key", golden_extent(g, "S"), full.key_width),
        .value = layer_golden_rows(g, "value", golden_extent(g, "S"), full.value_width),
        .q_positions = golden_data(g, "q_positions"),
        .k_positions = golden_data(g, "k_positions"),
        .options = options,
    };
    return p;
}
