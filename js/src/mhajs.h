/* SPDX-License-Identifier: MIT */
/*
 * What js/ calls of libmha.wasm, beside the functions of <mha/mha.h>. The structs of that header
 * have fields of several sizes; those here have 4 bytes each, in the order in which the script of
 * the same name writes them, so that no script depends on a layout. Strides count elements.
 */
#ifndef MHAJS_H
#define MHAJS_H

#include <mha/mha.h>

#define MHAJS_API __attribute__((used))

/* Written by js/attention.mjs. Tensors are contiguous f32, [B, heads, rows, width], or [B, rows,
 * heads, width] if `side_by_side` is not 0. NULL: not given, or not requested. */
typedef struct mhajs_options {
    uint32_t flags; /* MHA_CAUSAL, MHA_WINDOW */
    float scale, softcap;
    int32_t position, offset, window_left, window_right;
    const uint8_t *attend_mask; /* non-zero = attend; element (b,h,i,j), stride 0 broadcasts */
    int32_t attend_sb, attend_sh, attend_sl;
    const float *bias;
    int32_t bias_sb, bias_sh, bias_sl;
    const int64_t *key_lengths; /* [B] */
    const float *gates;         /* [H] */
    float *lse;                 /* [B, H, L] */
    float *weights;             /* [B, H, L, S] */
    char *message;
    int32_t message_size;
} mhajs_options;

typedef struct mhajs_attention_call {
    int32_t B, H, G, L, S, D, Dv, side_by_side;
    const float *q, *k, *v;
    float *o;
    mhajs_options options;
} mhajs_attention_call;

MHAJS_API mha_status mhajs_attention(const mhajs_attention_call *call);

/* Written by js/layer.mjs. Matrices are f32, [outputs, inputs] as PyTorch has them; biases may be
 * NULL. */
typedef struct mhajs_layer_config {
    int32_t E, H, G, D, key_width, value_width;
    int32_t stored, rope_pairs;
    float rope_base;
    const float *q, *k, *v, *o;
    const float *q_bias, *k_bias, *v_bias, *o_bias;
    char *message;
    int32_t message_size;
} mhajs_layer_config;

/* NULL after an error: *status and the message say which. */
MHAJS_API mha_layer *mhajs_layer_create(const mhajs_layer_config *config, int32_t *status);

typedef struct mhajs_layer_call {
    int32_t B, L, S;
    const float *query, *key, *value;
    float *output;
    mhajs_options options;
} mhajs_layer_call;

MHAJS_API mha_status mhajs_layer_run(const mha_layer *layer, const mhajs_layer_call *call);

/* Options of the library from those of a script, for a call of these extents. */
mha_options mhajs_options_read(const mhajs_options *options, ptrdiff_t H, ptrdiff_t L, ptrdiff_t S);

#endif
