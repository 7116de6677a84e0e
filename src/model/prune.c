/* SPDX-License-Identifier: MIT */
/*
 * A model without some heads. Pruned attentions are new; everything else stays with the parent,
 * which lives as long as one of its pruned models.
 */
#include "model/model_parts.h"

#include <stdlib.h>
#include <string.h>

static ptrdiff_t count_kept(const uint8_t *keep, ptrdiff_t heads)
{
    ptrdiff_t kept = 0;
    for (ptrdiff_t h = 0; h < heads; h++)
        kept += keep[h] != 0;
    return kept;
}

/* The numbers that the remaining heads have in the model as it was opened. */
static mha_status list_kept(model_builder *builder, model_attention *attention, const uint8_t *keep)
{
    int32_t *const kept = build_array(builder, (size_t)attention->heads, sizeof *kept);
    ptrdiff_t count = 0;
    if (!kept)
        return model_fail(builder->message, builder->message_size, MHA_ERR_MEMORY,
                          "no memory for the list of heads");
    for (ptrdiff_t h = 0; h < attention->heads; h++)
        if (keep[h])
            kept[count++] = attention->kept ? attention->kept[h] : (int32_t)h;
    attention->kept = kept;
    return MHA_OK;
}

/* Weights that W_Q, W_K, W_V and W_O have together. */
static int64_t weights_of(const mha_layer *layer)
{
    const mha_layer_config c = mha_layer_get_config(layer);
    return c.E * c.H * c.D + c.key_width * c.G * c.D + c.value_width * c.G * c.Dv +
           c.H * c.Dv * c.output_width;
}

static mha_status prune_attention(model_builder *builder, mha_attention_kind kind, int layer,
                                  const uint8_t *keep)
{
    mha_model *const model = builder->model;
    model_attention *const attention = model_attention_at(model, kind, layer);
    if (!attention)
        return MHA_OK;
    keep += attention->heads_before;
    for (ptrdiff_t h = 0; h < attention->heads; h++)
        builder->hash = (builder->hash ^ (keep[h] ? 3u : 5u)) * 0x100000001b3u;
    const ptrdiff_t kept = count_kept(keep, attention->heads);
    if (kept == attention->heads)
        return MHA_OK;
    if (kept == 0)
        return model_fail(builder->message, builder->message_size, MHA_ERR_SHAPE,
                          "keep[%d] leaves no head in layer %d; at least one must stay", (int)kind,
                          layer);
    const mha_layer *const old = attention->layer;
    mha_status status = list_kept(builder, attention, keep);
    if (!status)
        status = mha_layer_prune_in(model->arena, &attention->layer, old, keep, builder->message,
                                    builder->message_size);
    if (status)
        return status;
    attention->owned = true;
    model->parameters += weights_of(attention->layer) - weights_of(old);
    model->memory_bytes -= mha_layer_bytes(old);
    return MHA_OK;
}

/* All weights belong to the parent, until they are replaced. */
static mha_status share_layers(model_builder *builder, int s)
{
    model_stack *const stack = &builder->model->stack[s];
    const model_layer *const old = stack->layer;
    const int layers = stack->layers;
    if (layers == 0)
        return MHA_OK;
    stack->layers = 0;
    stack->layer = build_array(builder, (size_t)layers, sizeof *stack->layer);
    if (!stack->layer)
        return model_fail(builder->message, builder->message_size, MHA_ERR_MEMORY,
                          "no memory for %d layers", layers);
    memcpy(stack->layer, old, (size_t)layers * sizeof *old);
    stack->layers = layers;
    for (int n = 0; n < layers; n++)
        stack->layer[n].self.owned = stack->layer[n].cross.owned = stack->layer[n].ff_owned = false;
    return MHA_OK;
}

static mha_status prune_all(model_builder *builder, const uint8_t *const *keep)
{
    mha_status status = MHA_OK;
    for (int kind = 0; kind < MHA_ATTENTION_KINDS; kind++) {
        const int layers = builder->model->stack[attention_stack((mha_attention_kind)kind)].layers;
        for (int n = 0; keep[kind] && n < layers && !status; n++)
            status = prune_attention(builder, (mha_attention_kind)kind, n, keep[kind]);
    }
    return status;
}

mha_status mha_model_prune(mha_model **pruned, const mha_model *model,
                           const uint8_t *const keep[MHA_ATTENTION_KINDS], char *message,
                           size_t message_size)
{
    if (!pruned)
        return MHA_ERR_NULL;
    *pruned = NULL;
    if (!model || !keep)
        return model_fail(message, message_size, MHA_ERR_NULL, "%s is NULL",
                          model ? "keep" : "model");
    mha_model *const made = malloc(sizeof *made);
    if (!made)
        return model_fail(message, message_size, MHA_ERR_MEMORY, "no memory for the model");
    memcpy(made, model, sizeof *made);
    model_builder builder = {made, message, message_size, model->fingerprint};
    made->parent = (mha_model *)model; /* of which only the number of references changes */
    atomic_fetch_add(&made->parent->references, 1);
    atomic_init(&made->references, 1);
    atomic_init(&made->memory, NULL);
    made->arrays = NULL;
    made->array_count = made->array_room = 0;
    mha_status status = mha_arena_create(&made->arena);
    if (status)
        status =
            model_fail(message, message_size, status, "no memory for the weights of the model");
    for (int s = 0; s < STACKS; s++) { /* both, so that no part of the parent is freed */
        const mha_status shared = share_layers(&builder, s);
        status = status ? status : shared;
    }
    status = status ? status : prune_all(&builder, keep);
    if (status) {
        mha_model_free(made);
        return status;
    }
    model_count(made);
    made->fingerprint = builder.hash;
    *pruned = made;
    return MHA_OK;
}
