/* SPDX-License-Identifier: MIT */
/* Creates a network of packed layers, and updates them when the parameters have changed. */
#include "translator/network.h"

#include <stdlib.h>

#include "translator/network_parts.h"

/* --------------------------------------------------------------- parts ----- */

/* Weights are packed in the type in which they are multiplied. */
static mha_dtype packed_type(const network *net)
{
    return net->arithmetic == MHA_NATIVE ? MHA_BF16 : MHA_F32;
}

static mha_linear *make_linear(const network *net, const weight_at *at, int outputs, int inputs)
{
    const mha_linear_config config = {
        .size = sizeof config,
        .inputs = inputs,
        .outputs = outputs,
        .weight = mha_matrix_out_in(net->values + at->weight, MHA_F32, inputs),
        .bias = {net->values + at->bias, MHA_F32},
        .stored = packed_type(net),
        .arithmetic = net->arithmetic};
    mha_linear *linear;
    return mha_linear_create(&linear, &config) == MHA_OK ? linear : NULL;
}

static mha_layer *make_layer(const network *net, const attention_at *at)
{
    const mha_layer_config config = {.size = sizeof config,
                                     .E = net->config.width,
                                     .H = net->config.heads,
                                     .stored = packed_type(net),
                                     .arithmetic = net->arithmetic};
    const mha_layer_weights weights = transformer_layer_weights(&net->config, at, net->values);
    mha_layer *layer;
    return mha_layer_create(&layer, &config, &weights) == MHA_OK ? layer : NULL;
}

static bool add_attention(network *net, tower *side, part_kind kind, const attention_at *at)
{
    network_part *const p = &side->parts[side->end++];
    *p = (network_part){.kind = kind, .norm = &at->norm, .attention = at};
    p->layer = make_layer(net, at);
    return p->layer != NULL;
}

static bool add_feed_forward(network *net, tower *side, const feed_forward_at *at)
{
    const int width = net->config.width, inside = net->config.ff_width;
    network_part *const p = &side->parts[side->end++];
    *p = (network_part){.kind = PART_FF, .norm = &at->norm, .ff = at};
    p->in = make_linear(net, &at->in, inside, width);
    p->out = make_linear(net, &at->out, width, inside);
    return p->in != NULL && p->out != NULL;
}

/* The norm that comes after a part is kept with the next one. */
static void shift_norms(tower *side)
{
    for (int n = side->end; n > 0; n--)
        side->parts[n].norm = side->parts[n - 1].norm;
    side->parts[0].norm = NULL;
}

/* Adds the parts of an encoder or decoder in the order in which they are computed. */
static bool add_side(network *net, int number)
{
    tower *const side = &net->sides[number];
    for (int n = 0; n < net->config.layers[number]; n++) {
        const layer_at *const at = &net->map.layers[number][n];
        if (!add_attention(net, side, PART_SELF, &at->self))
            return false;
        if (number == TRANSFORMER_TARGET && !add_attention(net, side, PART_CROSS, &at->cross))
            return false;
        if (!add_feed_forward(net, side, &at->ff))
            return false;
    }
    side->parts[side->end] = (network_part){.kind = PART_END, .norm = &net->map.norm[number]};
    if (network_norm_is_after(net))
        shift_norms(side);
    return true;
}

static mha_matrix unembed_weight(const network *net)
{
    const float *const at =
        net->values + (network_has_classifier(net) ? net->map.vision.classifier.weight
                                                   : net->map.embedding[TRANSFORMER_TARGET]);
    return mha_matrix_out_in(at, MHA_F32, net->config.width);
}

static mha_vector unembed_bias(const network *net)
{
    return (mha_vector){network_has_classifier(net) ? net->values + net->map.vision.classifier.bias
                                                    : NULL,
                        MHA_F32};
}

static bool add_unembed(network *net)
{
    const mha_linear_config config = {.size = sizeof config,
                                      .inputs = net->config.width,
                                      .outputs = transformer_outputs(&net->config),
                                      .weight = unembed_weight(net),
                                      .bias = unembed_bias(net),
                                      .stored = packed_type(net),
                                      .arithmetic = net->arithmetic};
    return mha_linear_create(&net->unembed, &config) == MHA_OK;
}

static bool add_patches(network *net)
{
    if (!network_reads_pictures(net))
        return true;
    net->patches = make_linear(net, &net->map.vision.patches, net->config.width,
                               (int)network_patch_inputs(net));
    return net->patches != NULL;
}

static bool add_codes(network *net)
{
    if (network_classifies(net))
        return true;
    const size_t count = (size_t)net->config.positions * (size_t)net->config.width;
    net->codes = calloc(count, sizeof *net->codes);
    if (net->codes && !network_detects(net))
        transformer_positions(&net->config, 0, net->config.positions, net->codes);
    return net->codes != NULL;
}

/* Positions that are parameters need no codes. */
static bool add_place_codes(network *net)
{
    const vision_shape *const v = &net->config.vision;
    if (!network_reads_pictures(net) || v->places == VISION_LEARNED)
        return true;
    const size_t count = (size_t)vision_tokens(v) * (size_t)net->config.width;
    net->place_codes = malloc(count * sizeof *net->place_codes);
    if (net->place_codes)
        transformer_vision_codes(&net->config, net->place_codes);
    return net->place_codes != NULL;
}

network *network_create(const transformer_config *config, const float *values,
                        mha_arithmetic arithmetic, mha_pool *pool)
{
    network *const net = calloc(1, sizeof *net);
    if (!net)
        return NULL;
    net->config = *config;
    net->values = values;
    net->arithmetic = arithmetic;
    net->pool = pool;
    transformer_map_fill(&net->map, config);
    bool fine = true;
    for (int side = 0; side < network_sides(net) && fine; side++)
        fine = add_side(net, side);
    if (fine && add_unembed(net) && add_patches(net) && add_codes(net) && add_place_codes(net))
        return net;
    network_free(net);
    return NULL;
}

void network_free(network *net)
{
    if (!net)
        return;
    for (int side = 0; side < TRANSFORMER_SIDES; side++)
        for (int n = 0; n < net->sides[side].end; n++) {
            mha_layer_free(net->sides[side].parts[n].layer);
            mha_linear_free(net->sides[side].parts[n].in);
            mha_linear_free(net->sides[side].parts[n].out);
        }
    mha_linear_free(net->unembed);
    mha_linear_free(net->patches);
    free(net->codes);
    free(net->place_codes);
    free(net->arrays.base);
    free(net->tapes.base);
    free(net->work.base);
    free(net);
}

/* -------------------------------------------------------------- update ----- */

static mha_status update_linear(mha_linear *linear, const float *values, const weight_at *at,
                                int inputs)
{
    return mha_linear_update(linear, mha_matrix_out_in(values + at->weight, MHA_F32, inputs),
                             (mha_vector){values + at->bias, MHA_F32});
}

/* Packs the weights of a part again. */
static mha_status update_part(const network *net, const network_part *p)
{
    if (p->kind != PART_FF) {
        const mha_layer_weights weights =
            transformer_layer_weights(&net->config, p->attention, net->values);
        return mha_layer_update(p->layer, &weights);
    }
    const mha_status status = update_linear(p->in, net->values, &p->ff->in, net->config.width);
    return status != MHA_OK ? status
                            : update_linear(p->out, net->values, &p->ff->out, net->config.ff_width);
}

typedef struct update_pass {
    const network *net;
    mha_status statuses[2 * PARTS_MAX + 2];
} update_pass;

/* Task numbers: the parts of the encoder, those of the decoder, the unembedding, the patches. */
static void update_task(void *arg, int worker, ptrdiff_t number)
{
    (void)worker;
    update_pass *const pass = arg;
    const network *const net = pass->net;
    const tower *const source = &net->sides[TRANSFORMER_SOURCE];
    const tower *const target = &net->sides[TRANSFORMER_TARGET];
    if (number < source->end)
        pass->statuses[number] = update_part(net, &source->parts[number]);
    else if (number < source->end + target->end)
        pass->statuses[number] = update_part(net, &target->parts[number - source->end]);
    else if (number == source->end + target->end)
        pass->statuses[number] =
            mha_linear_update(net->unembed, unembed_weight(net), unembed_bias(net));
    else
        pass->statuses[number] = update_linear(net->patches, net->values, &net->map.vision.patches,
                                               (int)network_patch_inputs(net));
}

/* Parts are updated in parallel; the first error in their order is returned. */
mha_status network_update(network *net, const float *values)
{
    net->values = values;
    net->batch = NULL;
    update_pass pass = {.net = net};
    const int count = net->sides[TRANSFORMER_SOURCE].end + net->sides[TRANSFORMER_TARGET].end + 1 +
                      (net->patches ? 1 : 0);
    mha_pool_run(net->pool, count, update_task, &pass);
    for (int n = 0; n < count; n++)
        if (pass.statuses[n] != MHA_OK)
            return pass.statuses[n];
    return MHA_OK;
}
