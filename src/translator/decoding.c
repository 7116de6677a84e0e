/* SPDX-License-Identifier: MIT */
/*
 * Runs source sentences through the encoder, and hypotheses through the decoder step by step.
 *
 *      sources, packed --encoder--> memory [sentences][longest][width]
 *                                        |  W_K, W_V of every decoder layer, once
 *                                        v
 *      last words --self (cache)--cross (recall)--ff--> logits
 *
 * Without caches the same layers get all words of every hypothesis and a copy of the memory for
 * each.
 */
#include "translator/translator_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "translator/row_math.h"

/* -------------------------------------------------------------- memory ----- */

static size_t largest(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The largest number of rows that are computed at once. */
static size_t count_rows(const decoding *d)
{
    const size_t steps = d->cached ? 1 : (size_t)translator_longest(d->model);
    size_t source = 0;
    for (int s = 0; s < d->sentences; s++)
        source += (size_t)d->lengths[s];
    return largest(source, (size_t)d->sentences * (size_t)d->beam * steps);
}

static bool make_buffers(decoding *d)
{
    const size_t width = (size_t)d->model->config.width, rows = count_rows(d);
    const size_t memory = (size_t)d->sentences * (size_t)d->longest * width;
    const size_t sequences = (size_t)d->sentences * (size_t)d->beam;
    d->memory = calloc(memory, sizeof *d->memory);
    d->x = malloc(rows * width * sizeof *d->x);
    d->y = malloc(rows * width * sizeof *d->y);
    d->z = malloc(rows * width * sizeof *d->z);
    d->inside = malloc(rows * (size_t)d->model->config.ff_width * sizeof *d->inside);
    d->words = malloc(rows * sizeof *d->words);
    d->positions = malloc(rows * sizeof *d->positions);
    d->key_rows = malloc(sequences * sizeof *d->key_rows);
    d->memory_of = malloc(sequences * sizeof *d->memory_of);
    if (!d->cached)
        d->keys = malloc((size_t)d->beam * memory * sizeof *d->keys);
    return d->memory && d->x && d->y && d->z && d->inside && d->words && d->positions &&
           d->key_rows && d->memory_of && (d->cached || d->keys);
}

static mha_status make_caches(decoding *d)
{
    const transformer_config *const config = &d->model->config;
    mha_cache_config cache = {
        .size = sizeof cache, .G = config->heads, .D = config->width / config->heads};
    for (int n = 0; n < config->layers[TRANSFORMER_TARGET]; n++) {
        cache.sequences = (ptrdiff_t)d->sentences * d->beam;
        cache.capacity = translator_longest(d->model);
        mha_status status = mha_cache_create(&d->self[n], &cache);
        cache.sequences = d->sentences;
        cache.capacity = d->longest;
        if (!status)
            status = mha_cache_create(&d->cross[n], &cache);
        if (status)
            return status;
    }
    return MHA_OK;
}

void decoding_end(decoding *d)
{
    for (int n = 0; n < TRANSFORMER_LAYERS_MAX; n++) {
        mha_cache_free(d->self[n]);
        mha_cache_free(d->cross[n]);
    }
    void *const blocks[] = {d->lengths, d->memory,    d->x,        d->y,         d->z,    d->inside,
                            d->words,   d->positions, d->key_rows, d->memory_of, d->keys, d->work};
    for (size_t n = 0; n < sizeof blocks / sizeof blocks[0]; n++)
        free(blocks[n]);
}

/* --------------------------------------------------------------- parts ----- */

/* Makes the workspace at least this large. */
static bool have_work(decoding *d, size_t size)
{
    if (size <= d->work_size)
        return true;
    free(d->work);
    d->work = malloc(size);
    d->work_size = d->work ? size : 0;
    return d->work;
}

static mha_status attend(decoding *d, const mha_layer *layer, const mha_layer_call *call)
{
    if (!have_work(d, mha_layer_work_size(layer, call, mha_pool_threads(d->pool))))
        return MHA_ERR_MEMORY;
    return mha_layer_run(layer, call, d->work, d->work_size, d->pool);
}

/* y[rows][outputs] = x[rows][inputs] W^T + bias. */
static mha_status multiply(decoding *d, const mha_linear *linear, ptrdiff_t rows, const float *x,
                           int inputs, float *y, int outputs)
{
    if (!have_work(d, mha_linear_work_size(linear, rows, mha_pool_threads(d->pool))))
        return MHA_ERR_MEMORY;
    return mha_linear_run(linear, rows, x, MHA_F32, inputs, y, MHA_F32, outputs, d->work,
                          d->work_size, d->pool);
}

/* y = norm(x). */
static void normalise(const decoding *d, ptrdiff_t rows, const float *x, const weight_at *at,
                      float *y)
{
    const float *const values = d->model->values;
    transformer_norm(x, rows, d->model->config.width, values + at->weight, values + at->bias, y,
                     NULL, d->pool);
}

/* x += z. */
static void add_part(decoding *d, ptrdiff_t rows)
{
    const int width = d->model->config.width;
    for (ptrdiff_t row = 0; row < rows; row++)
        row_add(d->z + row * width, width, d->x + row * width);
}

static mha_status feed_forward(decoding *d, ptrdiff_t rows, const coder_layer *layer,
                               const feed_forward_at *at)
{
    const int width = d->model->config.width, inside = d->model->config.ff_width;
    normalise(d, rows, d->x, &at->norm, d->y);
    mha_status status = multiply(d, layer->in, rows, d->y, width, d->inside, inside);
    if (status)
        return status;
    for (ptrdiff_t row = 0; row < rows; row++)
        row_relu(d->inside + row * inside, inside);
    status = multiply(d, layer->out, rows, d->inside, inside, d->z, width);
    if (!status)
        add_part(d, rows);
    return status;
}

/* As transformer_embed(), with position codes from a table. */
static void embed(decoding *d, int side, ptrdiff_t rows)
{
    const int width = d->model->config.width;
    const float *const embedding = d->model->values + d->model->map.embedding[side];
    for (ptrdiff_t row = 0; row < rows; row++)
        row_embed(embedding + (ptrdiff_t)d->words[row] * width, sqrtf((float)width),
                  d->model->codes + (ptrdiff_t)d->positions[row] * width, width,
                  d->x + row * width);
}

/* ------------------------------------------------------------- encoder ----- */

/* Packs the words of all sentences one after another, each with WORD_END; starts[sentences + 1]. */
static void pack(decoding *d, const int *const *sources, int64_t *starts)
{
    int row = 0;
    for (int s = 0; s < d->sentences; s++) {
        const int length = (int)d->lengths[s] - 1;
        starts[s] = row;
        for (int n = 0; n <= length; n++, row++) {
            d->words[row] = n < length ? sources[s][n] : WORD_END;
            d->positions[row] = n;
        }
    }
    starts[d->sentences] = row;
}

static mha_status encode_rows(decoding *d, const int64_t *starts)
{
    const ptrdiff_t width = d->model->config.width, rows = (ptrdiff_t)starts[d->sentences];
    const mha_options options = {.size = sizeof options, .q_starts = starts, .k_starts = starts};
    const mha_layer_call call = {.size = sizeof call,
                                 .B = d->sentences,
                                 .L = d->longest,
                                 .query = mha_view_ble(d->y, d->longest, width),
                                 .output = mha_out_ble(d->z, d->longest, width),
                                 .options = &options};
    embed(d, TRANSFORMER_SOURCE, rows);
    for (int n = 0; n < d->model->config.layers[TRANSFORMER_SOURCE]; n++) {
        const layer_at *const at = &d->model->map.layers[TRANSFORMER_SOURCE][n];
        const coder_layer *const layer = &d->model->layers[TRANSFORMER_SOURCE][n];
        normalise(d, rows, d->x, &at->self.norm, d->y);
        mha_status status = attend(d, layer->self, &call);
        if (status)
            return status;
        add_part(d, rows);
        if ((status = feed_forward(d, rows, layer, &at->ff)))
            return status;
    }
    for (int s = 0; s < d->sentences; s++)
        normalise(d, (ptrdiff_t)(starts[s + 1] - starts[s]), d->x + starts[s] * width,
                  &d->model->map.norm[TRANSFORMER_SOURCE], d->memory + s * d->longest * width);
    return MHA_OK;
}

static mha_status encode(decoding *d, const int *const *sources)
{
    int64_t *const starts = malloc((size_t)(d->sentences + 1) * sizeof *starts);
    if (!starts)
        return MHA_ERR_MEMORY;
    pack(d, sources, starts);
    const mha_status status = encode_rows(d, starts);
    free(starts);
    return status;
}

/* Computes keys and values of the memory for the cross-attention of every decoder layer, once. */
static mha_status store_memory(decoding *d)
{
    const mha_options options = {.size = sizeof options, .k_lengths = d->lengths};
    mha_layer_call call = {.size = sizeof call,
                           .B = d->sentences,
                           .S = d->longest,
                           .key = mha_view_ble(d->memory, d->longest, d->model->config.width),
                           .cache_use = MHA_CACHE_STORE,
                           .options = &options};
    for (int n = 0; n < d->model->config.layers[TRANSFORMER_TARGET]; n++) {
        call.cache = d->cross[n];
        const mha_status status = attend(d, d->model->layers[TRANSFORMER_TARGET][n].cross, &call);
        if (status)
            return status;
    }
    return MHA_OK;
}

mha_status decoding_begin(decoding *d, const int *const *sources, const int *lengths)
{
    d->lengths = malloc((size_t)d->sentences * sizeof *d->lengths);
    if (!d->lengths)
        return MHA_ERR_MEMORY;
    for (int s = 0; s < d->sentences; s++) {
        d->lengths[s] = lengths[s] + 1;
        d->longest = lengths[s] + 1 > d->longest ? lengths[s] + 1 : d->longest;
    }
    if (!make_buffers(d))
        return MHA_ERR_MEMORY;
    mha_status status = encode(d, sources);
    if (!status && d->cached)
        status = make_caches(d);
    if (!status && d->cached)
        status = store_memory(d);
    return status;
}

/* ------------------------------------------------------------- decoder ----- */

/* The input of this step: the last `L` words of every hypothesis. */
static void read_words(decoding *d, const decoding_step *step, int L)
{
    const int first = step->length - L;
    for (int b = 0; b < step->rows; b++)
        for (int i = 0; i < L; i++) {
            d->words[b * L + i] = step->words[b * step->length + first + i];
            d->positions[b * L + i] = first + i;
        }
}

/* Finds the memory of every hypothesis. Those of a sentence share it in the caches; without caches
 * each gets a copy. */
static void find_memory(decoding *d, const decoding_step *step)
{
    const ptrdiff_t size = (ptrdiff_t)d->longest * d->model->config.width;
    for (int b = 0; b < step->rows; b++) {
        const int64_t sentence = step->sequences[b] / d->beam;
        d->memory_of[b] = sentence;
        d->key_rows[b] = d->lengths[sentence];
        if (!d->cached)
            memcpy(d->keys + b * size, d->memory + sentence * size, (size_t)size * sizeof(float));
    }
}

static mha_layer_call plain_call(const decoding *d, const decoding_step *step, int L,
                                 const mha_options *options)
{
    const ptrdiff_t width = d->model->config.width;
    return (mha_layer_call){.size = sizeof(mha_layer_call),
                            .B = step->rows,
                            .L = L,
                            .query = mha_view_ble(d->y, L, width),
                            .output = mha_out_ble(d->z, L, width),
                            .options = options};
}

static mha_status attend_self(decoding *d, const decoding_step *step, int L, int n)
{
    const mha_options options = {.size = sizeof options, .flags = MHA_CAUSAL};
    mha_layer_call call = plain_call(d, step, L, &options);
    if (d->cached) {
        call.cache = d->self[n];
        call.cache_use = MHA_CACHE_STEP;
        call.sequences = step->sequences;
    }
    return attend(d, d->model->layers[TRANSFORMER_TARGET][n].self, &call);
}

/* The weights of the last row only are returned, since that is the new word. */
static mha_status attend_cross(decoding *d, const decoding_step *step, int L, int n)
{
    const ptrdiff_t heads = d->model->config.heads, map = heads * d->longest;
    const int64_t last_row = L - 1;
    mha_options options = {.size = sizeof options};
    mha_layer_call call = plain_call(d, step, L, &options);
    call.S = d->longest;
    if (step->weights) {
        options.weights =
            (mha_out){step->weights + n * step->rows * map, map, d->longest, d->longest};
        options.weights_rows = &last_row;
        options.weights_row_count = 1;
    }
    if (d->cached) {
        call.cache = d->cross[n];
        call.cache_use = MHA_CACHE_RECALL;
        call.sequences = d->memory_of;
    } else {
        call.key = mha_view_ble(d->keys, d->longest, d->model->config.width);
        options.k_lengths = d->key_rows;
    }
    return attend(d, d->model->layers[TRANSFORMER_TARGET][n].cross, &call);
}

static mha_status decode_layer(decoding *d, const decoding_step *step, int L, int n)
{
    const layer_at *const at = &d->model->map.layers[TRANSFORMER_TARGET][n];
    const ptrdiff_t rows = (ptrdiff_t)step->rows * L;
    normalise(d, rows, d->x, &at->self.norm, d->y);
    mha_status status = attend_self(d, step, L, n);
    if (status)
        return status;
    add_part(d, rows);
    normalise(d, rows, d->x, &at->cross.norm, d->y);
    if ((status = attend_cross(d, step, L, n)))
        return status;
    add_part(d, rows);
    return feed_forward(d, rows, &d->model->layers[TRANSFORMER_TARGET][n], &at->ff);
}

mha_status decoding_run(decoding *d, const decoding_step *step)
{
    const transformer_config *const config = &d->model->config;
    const ptrdiff_t width = config->width;
    const int L = d->cached ? 1 : step->length;
    read_words(d, step, L);
    find_memory(d, step);
    embed(d, TRANSFORMER_TARGET, (ptrdiff_t)step->rows * L);
    for (int n = 0; n < config->layers[TRANSFORMER_TARGET]; n++) {
        const mha_status status = decode_layer(d, step, L, n);
        if (status)
            return status;
    }
    for (ptrdiff_t b = 0; b < step->rows; b++)
        memcpy(d->z + b * width, d->x + ((b + 1) * L - 1) * width, (size_t)width * sizeof *d->z);
    normalise(d, step->rows, d->z, &d->model->map.norm[TRANSFORMER_TARGET], d->y);
    return multiply(d, d->model->logits, step->rows, d->y, config->width, step->logits,
                    config->words[TRANSFORMER_TARGET]);
}

mha_status decoding_reorder(decoding *d, const int64_t *parents)
{
    for (int n = 0; d->cached && n < d->model->config.layers[TRANSFORMER_TARGET]; n++) {
        const mha_status status = mha_cache_reorder(d->self[n], parents);
        if (status)
            return status;
    }
    return MHA_OK;
}
