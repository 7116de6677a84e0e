/* SPDX-License-Identifier: MIT */
/*
 * A layer without some of its heads. The new layer is made with weights of 0, which gives it its
 * panels; then the numbers of the remaining heads are copied as they are stored:
 *
 *      W_Q, b_Q        outputs of the remaining heads
 *      W_K, W_V, ...   outputs of their key/value heads, some of them perhaps more than once
 *      W_O             inputs of the remaining heads; every output keeps its bias and i8 scale
 */
#include "core/layer.h"

#include <stdlib.h>
#include <string.h>

/* For each head of the new layer, the head of the old one. */
typedef struct choice {
    ptrdiff_t H, G;
    ptrdiff_t *heads;  /* [H] */
    ptrdiff_t *groups; /* [G] */
} choice;

static ptrdiff_t common_divisor(ptrdiff_t a, ptrdiff_t b)
{
    while (b != 0) {
        const ptrdiff_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Remaining query heads of group g. */
static ptrdiff_t count_kept(const mha_layer_config *c, const uint8_t *keep, ptrdiff_t g)
{
    const ptrdiff_t group = c->H / c->G;
    ptrdiff_t count = 0;
    for (ptrdiff_t h = g * group; h < (g + 1) * group; h++)
        count += keep[h] != 0;
    return count;
}

/* Every group of the new layer has the same size: the largest that divides all of the old ones.
 * `room` is for H + H heads. */
static choice choose(const mha_layer_config *c, const uint8_t *keep, ptrdiff_t *room)
{
    choice made = {.heads = room, .groups = room + c->H};
    ptrdiff_t size = 0;
    for (ptrdiff_t g = 0; g < c->G; g++)
        size = common_divisor(size, count_kept(c, keep, g));
    for (ptrdiff_t g = 0; g < c->G; g++)
        for (ptrdiff_t n = count_kept(c, keep, g); n > 0; n -= size)
            made.groups[made.G++] = g;
    for (ptrdiff_t h = 0; h < c->H; h++)
        if (keep[h])
            made.heads[made.H++] = h;
    return made;
}

/* Weights of `count` inputs to one output. */
static void copy_inputs(const mha_linear *to, ptrdiff_t to_column, ptrdiff_t to_input,
                        const mha_linear *from, ptrdiff_t from_column, ptrdiff_t from_input,
                        ptrdiff_t count)
{
    const mha_dtype type = from->stored;
    if (mhai_is_block(type)) {
        const ptrdiff_t length = mhai_block_length(type);
        for (ptrdiff_t n = 0; n < count / length; n++) {
            mhai_unit unit;
            mhai_linear_get_block(from, from_column, from_input / length + n, &unit);
            mhai_linear_put_block(to, to_column, to_input / length + n, &unit);
        }
        return;
    }
    for (ptrdiff_t c = 0; c < count; c++)
        mhai_copy_strided(
            type, mhai_out_at(to->weights, type, mhai_panel_index(to, to_column, to_input + c)), 1,
            mhai_at(from->weights, type, mhai_panel_index(from, from_column, from_input + c)), 1,
            1);
}

static void copy_ends(const mha_linear *to, ptrdiff_t to_column, const mha_linear *from,
                      ptrdiff_t from_column)
{
    to->bias[to_column] = from->bias[from_column];
    if (from->scales)
        to->scales[to_column] = from->scales[from_column];
}

/* A projection: head n of the new layer is heads[n] of the old one. */
static void copy_outputs(const mhai_projection *to, const mhai_projection *from,
                         const ptrdiff_t *heads, ptrdiff_t count, ptrdiff_t width)
{
    const ptrdiff_t to_first = to->first_panel * to->linear->kernels->nr;
    const ptrdiff_t from_first = from->first_panel * from->linear->kernels->nr;
    for (ptrdiff_t n = 0; n < count * width; n++) {
        const ptrdiff_t old = from_first + heads[n / width] * width + n % width;
        copy_inputs(to->linear, to_first + n, 0, from->linear, old, 0, from->linear->inputs);
        copy_ends(to->linear, to_first + n, from->linear, old);
    }
}

static void copy_weights(const mha_layer *to, const mha_layer *from, const choice *made)
{
    const ptrdiff_t D = from->config.D, Dv = from->config.Dv;
    copy_outputs(&to->in[MHAI_Q], &from->in[MHAI_Q], made->heads, made->H, D);
    copy_outputs(&to->in[MHAI_K], &from->in[MHAI_K], made->groups, made->G, D);
    copy_outputs(&to->in[MHAI_V], &from->in[MHAI_V], made->groups, made->G, Dv);
    for (ptrdiff_t n = 0; n < from->config.output_width; n++) {
        for (ptrdiff_t h = 0; h < made->H; h++)
            copy_inputs(to->out, n, h * Dv, from->out, n, made->heads[h] * Dv, Dv);
        copy_ends(to->out, n, from->out, n);
    }
    for (int p = 0; p < MHAI_PROJECTIONS; p++)
        mhai_linear_sum(to->in[p].linear);
    mhai_linear_sum(to->out);
}

/* Rows of the remaining groups, one after another; none for NULL. */
static mha_vector gather(const choice *made, const float *rows, ptrdiff_t width, float *to)
{
    for (ptrdiff_t n = 0; rows && n < made->G; n++)
        memcpy(to + n * width, rows + made->groups[n] * width, sizeof(float) * (size_t)width);
    return (mha_vector){rows ? to : NULL, MHA_F32};
}

/* Bytes of a row of a linear of a block type, as a file has it. */
static size_t block_bytes(const mha_linear *linear)
{
    return mhai_is_block(linear->stored) ? mha_row_bytes(linear->stored, linear->inputs) : 0;
}

static size_t longest_blocks(const mha_layer *layer)
{
    size_t longest = block_bytes(layer->out);
    for (int p = 0; p < MHAI_PROJECTIONS; p++)
        longest = mhai_larger(longest, block_bytes(layer->in[p].linear));
    return longest;
}

/* A matrix of zeros that is stored as those of a linear; `blocks` is a row of zeros. */
static mha_matrix zeros_for(const mha_linear *linear, const void *blocks)
{
    static const float zero = 0.0f;
    if (mhai_is_block(linear->stored))
        return (mha_matrix){blocks, linear->stored, 0, 1};
    return (mha_matrix){&zero, linear->stored == MHA_I8 ? MHA_F32 : linear->stored, 0, 0};
}

/* A layer of the requested size whose matrices are 0; everything else is final. `room` is for the
 * extra keys and values, `blocks` is a row of zeros. */
static mha_status make_empty(mha_layer **pruned, mha_arena *arena, const mha_layer *layer,
                             const choice *made, float *room, const void *blocks,
                             const mha_options *message)
{
    mha_layer_config config = layer->config;
    config.size = sizeof config;
    config.arena = arena;
    config.H = made->H;
    config.G = made->G;
    config.message = message->message;
    config.message_size = message->message_size;
    const mha_layer_weights weights = {
        .size = sizeof weights,
        .q = zeros_for(layer->in[MHAI_Q].linear, blocks),
        .k = zeros_for(layer->in[MHAI_K].linear, blocks),
        .v = zeros_for(layer->in[MHAI_V].linear, blocks),
        .o = zeros_for(layer->out, blocks),
        .extra_key = gather(made, layer->extra_key, config.D, room),
        .extra_value = gather(made, layer->extra_value, config.Dv, room + made->G * config.D),
        .q_norm = {layer->norm[MHAI_Q], MHA_F32},
        .k_norm = {layer->norm[MHAI_K], MHA_F32},
        .q_norm_bias = {layer->norm_bias[MHAI_Q], MHA_F32},
        .k_norm_bias = {layer->norm_bias[MHAI_K], MHA_F32},
    };
    return mha_layer_create(pruned, &config, &weights);
}

mha_status mha_layer_prune_in(mha_arena *arena, mha_layer **pruned, const mha_layer *layer,
                              const uint8_t *keep, char *message, size_t message_size)
{
    const mha_options to = {.message = message, .message_size = message_size};
    if (pruned)
        *pruned = NULL;
    if (!pruned || !layer || !keep)
        return mhai_fail(&to, MHA_ERR_NULL, "%s is NULL",
                         !pruned  ? "pruned"
                         : !layer ? "layer"
                                  : "keep");
    const mha_layer_config *const c = &layer->config;
    const mha_dtype o_type = layer->out->stored;
    if (c->Dv % mhai_block_length(o_type) != 0)
        return mhai_fail(&to, MHA_ERR_SHAPE,
                         "Dv = %td; heads can only be removed from weights in %s if Dv is a "
                         "multiple of %td",
                         c->Dv, mhai_dtype_name(o_type), mhai_block_length(o_type));
    const size_t lists = 2 * sizeof(ptrdiff_t) * (size_t)c->H;
    const size_t extras = sizeof(float) * (size_t)(c->H * (c->D + c->Dv));
    char *const room = mhai_memory_take(lists + extras + longest_blocks(layer));
    if (!room)
        return mhai_fail(&to, MHA_ERR_MEMORY, "no memory to choose heads in");
    memset(room + lists + extras, 0, longest_blocks(layer));
    const choice made = choose(c, keep, (ptrdiff_t *)(void *)room);
    const mha_status status =
        made.H > 0
            ? make_empty(pruned, arena, layer, &made, (float *)(void *)(room + lists),
                         room + lists + extras, &to)
            : mhai_fail(&to, MHA_ERR_SHAPE, "keep has no head that stays; a layer has at least 1");
    if (*pruned)
        copy_weights(*pruned, layer, &made);
    free(room);
    return status;
}

mha_status mha_layer_prune(mha_layer **pruned, const mha_layer *layer, const uint8_t *keep,
                           char *message, size_t message_size)
{
    return mha_layer_prune_in(NULL, pruned, layer, keep, message, message_size);
}
