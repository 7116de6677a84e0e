/* SPDX-License-Identifier: MIT */
/*
 * The layers of a stack: norms, attentions with the options that they always have, feed-forward.
 * Layers that share their weights (ALBERT) are packed once and listed many times.
 */
#include "model/model_parts.h"

#include <math.h>

typedef struct layer_place {
    int stack, layer;
    const char *part;
} layer_place;

static mha_status fail_layer(const model_builder *builder, layer_place place, mha_status status,
                             const char *reason)
{
    return model_fail(builder->message, builder->message_size, status, "%s layer %d, %s: %s",
                      place.stack == STACK_ENCODER ? "encoder" : "decoder", place.layer, place.part,
                      reason[0] ? reason : mha_status_string(status));
}

static mha_status build_norms(model_builder *builder, const bound_norms *bound, model_norms *to)
{
    mha_status status = build_norm(builder, &bound->before, &to->before);
    status = status ? status : build_norm(builder, &bound->inside, &to->inside);
    return status ? status : build_norm(builder, &bound->after, &to->after);
}

/* --------------------------------------------------------------- attention ----- */

mha_rope model_rope(const stack_description *stack, int layer)
{
    const attention_description *const a = &stack->attention;
    if (stack->embedding.position != POSITION_ROTARY)
        return (mha_rope){.pairs = MHA_ROPE_NONE};
    const bool local = attention_window(a, layer) > 0 && a->rope_local_base > 0.0;
    return (mha_rope){.pairs = a->rope_pairs,
                      .width = a->rope_width,
                      .base = local ? a->rope_local_base : a->rope_base,
                      .frequencies = local ? NULL : a->rope_frequencies};
}

/* Options that do not change from call to call. */
static void fill_options(model_attention *to, const stack_description *stack, int layer, bool cross)
{
    const attention_description *const a = &stack->attention;
    const int window = cross ? 0 : attention_window(a, layer);
    to->softcap = a->softcap;
    to->scale = a->scale != 0.0f ? a->scale : (float)(1.0 / sqrt(a->head_width));
    if (a->scale_by_layer)
        to->scale /= (float)(layer + 1);
    if (stack->causal && !cross)
        to->flags |= MHA_CAUSAL;
    if (window > 0) {
        to->flags |= MHA_WINDOW;
        to->window_left = stack->causal ? window - 1 : window / 2;
        to->window_right = stack->causal ? 0 : window / 2;
    }
}

static mha_status pack_attention(model_builder *builder, layer_place place,
                                 const bound_attention *bound, bool cross, model_attention *to)
{
    const model_description *const d = &builder->model->files.description;
    const stack_description *const stack = &d->stack[place.stack];
    const bound_linear *const linears[] = {&bound->q, &bound->k, &bound->v, &bound->o};
    const float *q_norm, *k_norm;
    mha_status status = build_vector(builder, &bound->q_norm, d->norm_add, &q_norm);
    if (status || (status = build_vector(builder, &bound->k_norm, d->norm_add, &k_norm)))
        return status;
    char reason[256] = "";
    const mha_layer_config config = {
        .size = sizeof config,
        .norm_eps = d->norm_eps,
        .E = d->width,
        .H = bound->q.weight.outputs / stack->attention.head_width,
        .G = bound->k.weight.outputs / stack->attention.head_width,
        .D = stack->attention.head_width,
        .stored = build_type(builder->model, linears, 4),
        .norm = q_norm || k_norm ? stack->attention.qk_norm : MHA_NORM_NONE,
        .rope = cross ? (mha_rope){.pairs = MHA_ROPE_NONE} : model_rope(stack, place.layer),
        .message = reason,
        .message_size = sizeof reason,
        .arena = builder->model->arena,
        .arithmetic = builder->model->arithmetic};
    const mha_layer_weights weights = {.size = sizeof weights,
                                       .q = build_matrix(&bound->q.weight),
                                       .k = build_matrix(&bound->k.weight),
                                       .v = build_matrix(&bound->v.weight),
                                       .o = build_matrix(&bound->o.weight),
                                       .q_bias = build_bias(&bound->q.bias),
                                       .k_bias = build_bias(&bound->k.bias),
                                       .v_bias = build_bias(&bound->v.bias),
                                       .o_bias = build_bias(&bound->o.bias),
                                       .q_norm = {q_norm, MHA_F32},
                                       .k_norm = {k_norm, MHA_F32}};
    status = mha_layer_create(&to->layer, &config, &weights);
    if (status)
        return fail_layer(builder, place, status, reason);
    to->owned = true;
    for (int n = 0; n < 4; n++)
        build_done(builder, linears[n]);
    return MHA_OK;
}

/* The numbers of the heads of a layer that has lost some before the files were written. */
static mha_status list_kept(model_builder *builder, layer_place place, bool cross,
                            model_attention *to)
{
    const model_description *const d = &builder->model->files.description;
    const mha_attention_kind kind = cross                          ? MHA_ATTENTION_CROSS
                                    : place.stack == STACK_ENCODER ? MHA_ATTENTION_ENCODER
                                                                   : MHA_ATTENTION_DECODER;
    const int heads = d->stack[place.stack].attention.heads;
    const int left = description_heads(d, kind, place.layer);
    if (left == heads)
        return MHA_OK;
    int32_t *const kept = build_array(builder, (size_t)left, sizeof *kept);
    if (!kept)
        return fail_layer(builder, place, MHA_ERR_MEMORY, "no memory for the list of heads");
    for (int h = 0, n = 0; h < heads && n < left; h++)
        if (!description_is_pruned(d, kind, place.layer, h))
            kept[n++] = h;
    to->kept = kept;
    return MHA_OK;
}

static mha_status build_attention(model_builder *builder, layer_place place,
                                  const bound_attention *bound, bool cross, model_attention *to)
{
    if (!bound->q.weight.data)
        return MHA_OK;
    mha_status status = build_norms(builder, &bound->norms, &to->norms);
    if (!status)
        status = list_kept(builder, place, cross, to);
    if (!status)
        status = pack_attention(builder, place, bound, cross, to);
    return status;
}

/* ------------------------------------------------------------ feed-forward ----- */

static mha_status build_feed_forward(model_builder *builder, layer_place place,
                                     const bound_feed_forward *bound, model_layer *to)
{
    const model_description *const d = &builder->model->files.description;
    mha_status status = build_norms(builder, &bound->norms, &to->ff_norms);
    if (status)
        return status;
    const bound_linear *const linears[] = {&bound->up, &bound->down, &bound->gate};
    const int count = d->gated ? 3 : 2;
    char reason[256] = "";
    mha_feed_forward_config config = {.size = sizeof config,
                                      .inputs = d->width,
                                      .inner = d->stack[place.stack].inner,
                                      .activation = d->activation,
                                      .gated = d->gated,
                                      .up = build_matrix(&bound->up.weight),
                                      .down = build_matrix(&bound->down.weight),
                                      .up_bias = build_bias(&bound->up.bias),
                                      .down_bias = build_bias(&bound->down.bias),
                                      .stored = build_type(builder->model, linears, count),
                                      .message = reason,
                                      .message_size = sizeof reason,
                                      .arena = builder->model->arena,
                                      .arithmetic = builder->model->arithmetic};
    if (d->gated) {
        config.gate = build_matrix(&bound->gate.weight);
        config.gate_bias = build_bias(&bound->gate.bias);
    }
    status = mha_feed_forward_create(&to->ff, &config);
    if (status)
        return fail_layer(builder, place, status, reason);
    to->ff_owned = true;
    for (int n = 0; n < count; n++)
        build_done(builder, linears[n]);
    return MHA_OK;
}

/* ------------------------------------------------------------------ layers ----- */

static mha_status build_layer(model_builder *builder, int stack, int n, const bound_layer *bound,
                              model_layer *to)
{
    const layer_place self = {stack, n, "self-attention"}, cross = {stack, n, "cross-attention"},
                      ff = {stack, n, "feed-forward"};
    mha_status status = build_attention(builder, self, &bound->self, false, &to->self);
    status = status ? status : build_attention(builder, cross, &bound->cross, true, &to->cross);
    return status ? status : build_feed_forward(builder, ff, &bound->ff, to);
}

mha_status build_layers(model_builder *builder, int stack)
{
    mha_model *const model = builder->model;
    const stack_description *const d = &model->files.description.stack[stack];
    const bound_stack *const bound = &model->files.binding.stack[stack];
    model_stack *const to = &model->stack[stack];
    to->layer = build_array(builder, (size_t)d->layers, sizeof *to->layer);
    if (!to->layer)
        return model_fail(builder->message, builder->message_size, MHA_ERR_MEMORY,
                          "no memory for %d layers", d->layers);
    to->layers = d->layers;
    for (int n = 0; n < d->layers; n++) {
        model_layer *const layer = &to->layer[n];
        if (n > 0 && d->shared) {
            *layer = to->layer[0];
            layer->self.owned = layer->cross.owned = layer->ff_owned = false;
        } else {
            const mha_status status = build_layer(builder, stack, n, &bound->layers[n], layer);
            if (status)
                return status;
        }
        if (model->files.source) /* the pages of vectors, too */
            weight_source_release_all(model->files.source);
        layer->self.flags = layer->cross.flags = 0;
        fill_options(&layer->self, d, n, false);
        fill_options(&layer->cross, d, n, true);
    }
    return MHA_OK;
}
