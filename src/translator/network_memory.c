/* SPDX-License-Identifier: MIT */
/*
 * What one pass over a batch needs: the calls of its layers, and memory. The memory is three blocks
 * (activations, tapes of the layers, workspace), which grow with the largest batch and are kept.
 * The arrays are laid out twice: once to count the bytes, and again when the block is large enough.
 */
#include "translator/network_parts.h"

#include <stdlib.h>

#include "base/rng.h"

/* --------------------------------------------------------------- calls ----- */

row_dropout network_dropout(const network *net, int side, int number)
{
    rng r = rng_for(net->mode.dropout_seed, (uint64_t)side * (PARTS_MAX + 1) + (uint64_t)number);
    return row_dropout_make(net->mode.dropout, rng_next(&r));
}

attention_kind network_attention_kind(int side, const network_part *p)
{
    if (p->kind == PART_CROSS)
        return ATTENTION_CROSS;
    return side == TRANSFORMER_SOURCE ? ATTENTION_ENCODER : ATTENTION_DECODER;
}

int network_layer(int side, int number)
{
    return number / (side == TRANSFORMER_SOURCE ? 2 : 3);
}

/* Where the weights of a layer's cross-attention go. */
static mha_out cross_weights(const network *net, int layer)
{
    const ptrdiff_t L = net->batch->longest[TRANSFORMER_TARGET];
    const ptrdiff_t S = net->batch->longest[TRANSFORMER_SOURCE], heads = net->config.heads;
    return (mha_out){net->mode.cross + layer * net->batch->pairs * heads * L * S, heads * L * S,
                     L * S, S};
}

void network_fill_call(const network *net, int side, int number, attention_call *out)
{
    const network_part *const p = &net->sides[side].parts[number];
    const batch *const b = net->batch;
    const int keys = p->kind == PART_CROSS ? TRANSFORMER_SOURCE : side;
    const ptrdiff_t width = net->config.width;
    const bool causal = p->kind == PART_SELF && side == TRANSFORMER_TARGET && !network_detects(net);
    /* A different random series than that of network_dropout(). */
    rng r = rng_for(~net->mode.dropout_seed, (uint64_t)side * (PARTS_MAX + 1) + (uint64_t)number);
    out->options = (mha_options){.size = sizeof out->options,
                                 .flags = (causal ? (uint32_t)MHA_CAUSAL : 0u) |
                                          (net->mode.training ? (uint32_t)MHA_TRAINING : 0u),
                                 .q_starts = b->starts[side],
                                 .k_starts = b->starts[keys],
                                 .dropout = (float)net->mode.attention_dropout,
                                 .dropout_seed = rng_next(&r)};
    out->call = (mha_layer_call){.size = sizeof out->call,
                                 .B = b->pairs,
                                 .L = b->longest[side],
                                 .S = b->longest[keys],
                                 .query = {p->normed, 0, 0, width},
                                 .output = {net->added, 0, 0, width},
                                 .options = &out->options,
                                 .tape = p->tape,
                                 .tape_size = p->tape_size};
    if (net->mode.heads)
        head_settings_fill(net->mode.heads, network_attention_kind(side, p),
                           network_layer(side, number), &out->options);
    if (p->kind == PART_CROSS) {
        const tower *const source = &net->sides[TRANSFORMER_SOURCE];
        out->call.key = (mha_view){source->parts[source->end].normed, 0, 0, width};
        if (net->mode.cross)
            out->options.weights = cross_weights(net, network_layer(side, number));
    }
}

/* -------------------------------------------------------------- blocks ----- */

enum { BLOCK_ALIGN = 64 };

/* Takes bytes from a block. Returns NULL if it is too small; then this only counts. */
static void *take(block *b, size_t bytes)
{
    void *const at = b->base && b->used + bytes <= b->size ? b->base + b->used : NULL;
    b->used += (bytes + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
    return at;
}

static float *take_floats(block *b, ptrdiff_t rows, ptrdiff_t columns)
{
    return take(b, (size_t)rows * (size_t)columns * sizeof(float));
}

/* Makes the block large enough for `used` bytes, with an eighth to spare, since batches differ a
 * little. Its content is lost. */
static mha_status reserve(block *b)
{
    if (b->used > b->size) {
        free(b->base);
        b->size = (b->used + b->used / 8 + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
        b->base = aligned_alloc(BLOCK_ALIGN, b->size);
        if (!b->base)
            b->size = 0;
    }
    b->used = 0;
    return b->base ? MHA_OK : MHA_ERR_MEMORY;
}

/* -------------------------------------------------------------- arrays ----- */

static void lay_out_side(network *net, int side)
{
    const ptrdiff_t rows = net->batch->rows[side], width = net->config.width;
    for (int n = 0; n <= net->sides[side].end; n++) {
        network_part *const p = &net->sides[side].parts[n];
        p->x = take_floats(&net->arrays, rows, width);
        p->normed = take_floats(&net->arrays, rows, width);
        p->stats = take_floats(&net->arrays, rows, 2);
        if (p->kind == PART_FF)
            p->inside = take_floats(&net->arrays, rows, net->config.ff_width);
    }
}

static void lay_out_gradients(network *net, ptrdiff_t rows)
{
    const ptrdiff_t width = net->config.width, source = net->batch->rows[TRANSFORMER_SOURCE];
    net->d_unembed = take_floats(&net->arrays, transformer_outputs(&net->config), width);
    net->d_last = take_floats(&net->arrays, net->batch->rows[TRANSFORMER_TARGET], width);
    net->d_x = take_floats(&net->arrays, rows, width);
    net->d_normed = take_floats(&net->arrays, rows, width);
    net->d_inside = take_floats(&net->arrays, rows, net->config.ff_width);
    if (network_has_classifier(net))
        net->d_unembed_bias = take_floats(&net->arrays, 1, transformer_outputs(&net->config));
    if (!network_classifies(net)) {
        net->d_memory = take_floats(&net->arrays, source, width);
        net->d_key = take_floats(&net->arrays, source, width);
    }
    net->norm_sums = take_floats(&net->arrays, task_count(rows), 2 * width);
}

static ptrdiff_t most_rows(const batch *b)
{
    const ptrdiff_t source = b->rows[TRANSFORMER_SOURCE], target = b->rows[TRANSFORMER_TARGET];
    return source > target ? source : target;
}

static void lay_out(network *net)
{
    const ptrdiff_t target = net->batch->rows[TRANSFORMER_TARGET], rows = most_rows(net->batch);
    for (int side = 0; side < network_sides(net); side++)
        lay_out_side(net, side);
    if (network_reads_pictures(net))
        net->patch_rows = take_floats(&net->arrays, net->batch->pairs * network_patches(net),
                                      network_patch_inputs(net));
    if (network_classifies(net))
        net->pooled = take_floats(&net->arrays, target, net->config.width);
    net->logit_stride = (transformer_outputs(&net->config) + 15) / 16 * 16;
    net->added = take_floats(&net->arrays, rows, net->config.width);
    net->logits =
        take_floats(&net->arrays, target < LOSS_ROWS ? target : LOSS_ROWS, net->logit_stride);
    net->scores = take(&net->arrays, (size_t)target * sizeof *net->scores);
    if (net->mode.training)
        lay_out_gradients(net, rows);
}

static mha_status prepare_arrays(network *net)
{
    net->arrays.used = 0;
    lay_out(net);
    const mha_status status = reserve(&net->arrays);
    if (status == MHA_OK)
        lay_out(net);
    return status;
}

/* ----------------------------------------------------- tapes, workspace ----- */

static void lay_out_tapes(network *net)
{
    for (int side = 0; side < network_sides(net); side++)
        for (int n = 0; n < net->sides[side].end; n++) {
            network_part *const p = &net->sides[side].parts[n];
            if (p->kind != PART_FF)
                p->tape = take(&net->tapes, p->tape_size);
        }
}

static mha_status prepare_tapes(network *net)
{
    for (int side = 0; side < network_sides(net); side++)
        for (int n = 0; n < net->sides[side].end; n++) {
            network_part *const p = &net->sides[side].parts[n];
            attention_call a;
            p->tape = NULL;
            p->tape_size = 0;
            if (p->kind == PART_FF || !net->mode.training)
                continue;
            network_fill_call(net, side, n, &a);
            p->tape_size = mha_layer_tape_size(p->layer, &a.call);
        }
    if (!net->mode.training)
        return MHA_OK;
    net->tapes.used = 0;
    lay_out_tapes(net);
    const mha_status status = reserve(&net->tapes);
    if (status == MHA_OK)
        lay_out_tapes(net);
    return status;
}

static void grow_to(size_t *most, size_t size)
{
    if (size > *most)
        *most = size;
}

static void grow_for_linear(const network *net, const mha_linear *linear, ptrdiff_t rows,
                            size_t *most)
{
    const int threads = mha_pool_threads(net->pool);
    grow_to(most, mha_linear_work_size(linear, rows, threads));
    if (net->mode.training)
        grow_to(most, mha_linear_backward_work_size(linear, rows, threads));
}

static void grow_for_part(const network *net, int side, int number, size_t *most)
{
    const int threads = mha_pool_threads(net->pool);
    const network_part *const p = &net->sides[side].parts[number];
    if (p->kind == PART_FF) {
        grow_for_linear(net, p->in, net->batch->rows[side], most);
        grow_for_linear(net, p->out, net->batch->rows[side], most);
        return;
    }
    attention_call a;
    network_fill_call(net, side, number, &a);
    grow_to(most, mha_layer_work_size(p->layer, &a.call, threads));
    if (net->mode.training)
        grow_to(most, mha_layer_backward_work_size(p->layer, &a.call, threads));
}

static mha_status prepare_work(network *net)
{
    size_t most = 1;
    for (int side = 0; side < network_sides(net); side++)
        for (int n = 0; n < net->sides[side].end; n++)
            grow_for_part(net, side, n, &most);
    const ptrdiff_t target = net->batch->rows[TRANSFORMER_TARGET];
    grow_for_linear(net, net->unembed, target < LOSS_ROWS ? target : LOSS_ROWS, &most);
    if (net->patches)
        grow_for_linear(net, net->patches, net->batch->pairs * network_patches(net), &most);
    net->work.used = most;
    return reserve(&net->work);
}

mha_status network_prepare(network *net)
{
    mha_status status = prepare_arrays(net);
    if (status == MHA_OK)
        status = prepare_tapes(net);
    if (status == MHA_OK)
        status = prepare_work(net);
    return status;
}
