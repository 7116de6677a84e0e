/* SPDX-License-Identifier: MIT */
/*
 * What a network of pictures has instead of words: patches of all pictures become rows by one
 * product, a token of the class may come before them, positions are added, and at the end one row
 * per picture is left for the classifier, or all of them for a decoder. And the backward passes of
 * these.
 */
#include <string.h>

#include "translator/network_parts.h"

mha_status network_vision_check(const network *net, const batch *b)
{
    const vision_shape *const v = &net->config.vision;
    const size_t floats = (size_t)v->channels * (size_t)v->side * (size_t)v->side;
    if (!network_reads_pictures(net) || !b->pixels || b->pairs < 1 || b->picture_floats != floats ||
        b->longest[TRANSFORMER_SOURCE] != network_tokens(net) ||
        b->rows[TRANSFORMER_SOURCE] != b->pairs * network_tokens(net) ||
        (b->shares != NULL) != network_classifies(net))
        return MHA_ERR_SHAPE;
    for (int n = 0; n < b->pairs && b->shares; n++)
        if (b->others[n] < 0 || b->others[n] >= net->config.words[TRANSFORMER_TARGET])
            return MHA_ERR_INDEX;
    return MHA_OK;
}

/* --------------------------------------------------------------- patches ----- */

/* The patches of one picture, row by row; each channel by channel, line by line. */
static void cut_task(void *arg, int worker, ptrdiff_t number)
{
    (void)worker;
    const network *const net = arg;
    const vision_shape *const v = &net->config.vision;
    const ptrdiff_t across = vision_across(v), side = v->side, patch = v->patch;
    const float *const pixels = net->batch->pixels + number * v->channels * side * side;
    float *to = net->patch_rows + number * across * across * network_patch_inputs(net);
    for (ptrdiff_t n = 0; n < across * across; n++) {
        const ptrdiff_t top = n / across * v->stride, left = n % across * v->stride;
        for (ptrdiff_t c = 0; c < v->channels; c++)
            for (ptrdiff_t y = 0; y < patch; y++, to += patch)
                memcpy(to, pixels + (c * side + top + y) * side + left, (size_t)patch * sizeof *to);
    }
}

mha_status network_vision_embed(const network *net)
{
    const ptrdiff_t inputs = network_patch_inputs(net), width = net->config.width;
    const ptrdiff_t pictures = net->batch->pairs;
    mha_pool_run(net->pool, pictures, cut_task, (void *)net);
    return mha_linear_run(net->patches, pictures * network_patches(net), net->patch_rows, MHA_F32,
                          inputs, net->added, MHA_F32, width, net->work.base, net->work.size,
                          net->pool);
}

void network_vision_row(const network *net, ptrdiff_t row, float *x)
{
    const ptrdiff_t tokens = network_tokens(net), width = net->config.width;
    const ptrdiff_t marks = tokens - network_patches(net);
    const ptrdiff_t picture = row / tokens, token = row % tokens;
    const float *const from =
        token < marks ? net->values + net->map.vision.mark
                      : net->added + (picture * (tokens - marks) + token - marks) * width;
    const float *const places =
        net->place_codes ? net->place_codes : net->values + net->map.vision.places;
    memcpy(x, from, (size_t)width * sizeof *x);
    row_add(places + token * width, (int)width, x);
}

/* --------------------------------------------------------------- pooling ----- */

/* The row of the class, or the mean of all, of one picture. */
static void pool_task(void *arg, int worker, ptrdiff_t number)
{
    (void)worker;
    const network *const net = arg;
    const tower *const side = &net->sides[TRANSFORMER_SOURCE];
    const ptrdiff_t tokens = network_tokens(net), width = net->config.width;
    const float *const rows = side->parts[side->end].normed + number * tokens * width;
    float *const to = net->pooled + number * width;
    memcpy(to, rows, (size_t)width * sizeof *to);
    if (net->config.vision.pooling == VISION_CLASS)
        return;
    for (ptrdiff_t n = 1; n < tokens; n++)
        row_add(rows + n * width, (int)width, to);
    for (ptrdiff_t c = 0; c < width; c++)
        to[c] /= (float)tokens;
}

void network_vision_pool(const network *net)
{
    mha_pool_run(net->pool, net->batch->pairs, pool_task, (void *)net);
}

static void pool_back_task(void *arg, int worker, ptrdiff_t number)
{
    (void)worker;
    const network *const net = arg;
    const ptrdiff_t tokens = network_tokens(net), width = net->config.width;
    const bool mean = net->config.vision.pooling == VISION_MEAN;
    const float *const from = net->d_last + number * width;
    float *const to = net->d_normed + number * tokens * width;
    memcpy(to, from, (size_t)width * sizeof *to);
    for (ptrdiff_t c = 0; c < width && mean; c++)
        to[c] /= (float)tokens;
    if (!mean)
        memset(to + width, 0, (size_t)((tokens - 1) * width) * sizeof *to);
    for (ptrdiff_t n = 1; n < tokens && mean; n++)
        memcpy(to + n * width, to, (size_t)width * sizeof *to);
}

void network_vision_pool_backward(const network *net)
{
    mha_pool_run(net->pool, net->batch->pairs, pool_back_task, (void *)net);
}

/* ------------------------------------------------------------- embedding ----- */

typedef struct embed_back_pass {
    const network *net;
    float *gradients;
} embed_back_pass;

/* The gradient of one token's position, and of the token of the class: a sum over the pictures in
 * their order. */
static void token_task(void *arg, int worker, ptrdiff_t token)
{
    (void)worker;
    const embed_back_pass *const pass = arg;
    const network *const net = pass->net;
    const ptrdiff_t tokens = network_tokens(net), width = net->config.width;
    const size_t bytes = (size_t)width * sizeof(float);
    const bool marks = token < vision_marks(&net->config.vision);
    const bool learned = net->config.vision.places == VISION_LEARNED;
    float *const mark = pass->gradients + net->map.vision.mark;
    float *const place = pass->gradients + net->map.vision.places + token * width;
    float *const to = learned ? place : mark;
    if (!learned && !marks)
        return;
    memset(to, 0, bytes);
    for (ptrdiff_t n = 0; n < net->batch->pairs; n++)
        row_add(net->added + (n * tokens + token) * width, (int)width, to);
    if (learned && marks)
        memcpy(mark, place, bytes);
}

/* The rows of the patches alone, where there are others: net->d_normed. */
static void gather_task(void *arg, int worker, ptrdiff_t number)
{
    (void)worker;
    const network *const net = ((const embed_back_pass *)arg)->net;
    const ptrdiff_t tokens = network_tokens(net), width = net->config.width;
    const ptrdiff_t patches = network_patches(net), marks = tokens - patches;
    memcpy(net->d_normed + number * patches * width, net->added + (number * tokens + marks) * width,
           (size_t)(patches * width) * sizeof *net->added);
}

mha_status network_vision_embed_backward(const network *net, float *gradients)
{
    const ptrdiff_t inputs = network_patch_inputs(net), width = net->config.width;
    const bool marks = vision_marks(&net->config.vision) > 0;
    embed_back_pass pass = {net, gradients};
    mha_pool_run(net->pool, network_tokens(net), token_task, &pass);
    if (marks)
        mha_pool_run(net->pool, net->batch->pairs, gather_task, &pass);
    const mha_linear_gradients to = {
        .size = sizeof to,
        .d_y = marks ? net->d_normed : net->added,
        .d_y_stride = width,
        .d_weight = {gradients + net->map.vision.patches.weight, inputs, 1},
        .d_bias = gradients + net->map.vision.patches.bias};
    return mha_linear_backward(net->patches, net->batch->pairs * network_patches(net),
                               net->patch_rows, MHA_F32, inputs, &to, net->work.base,
                               net->work.size, net->pool);
}
