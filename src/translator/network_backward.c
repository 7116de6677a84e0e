/* SPDX-License-Identifier: MIT */
/*
 * The backward pass, from the gradient of the last rows of the decoder, which the forward pass has
 * left in d_last, to the gradients of all parameters. Parts are visited in reverse order; d_x
 * carries the gradient of the residual stream, and `added` that of the output of the current part.
 */
#include <math.h>
#include <string.h>

#include "translator/network_parts.h"

typedef struct backward_pass {
    const network *net;
    float *gradients;
    int side;
    bool memory_begun; /* d_memory already has the gradient of a layer, so others are added */
} backward_pass;

/* ---------------------------------------------------------------- norm ----- */

typedef struct add_norm_back_pass {
    const network *net;
    int side, number;
    const float *d_normed;
    row_dropout dropout;
} add_norm_back_pass;

/* d_x of a row: adds the gradient through the norm to that of the residual connection, or sends the
 * sum of both through the norm if it comes after. Adds to the sums of the norm's gradients. */
static void norm_back_row(const add_norm_back_pass *pass, const network_part *p, ptrdiff_t row,
                          float *sums)
{
    const network *const net = pass->net;
    const int width = net->config.width;
    float *const d_x = net->d_x + row * width;
    const float *d_normed = pass->d_normed + row * width;
    if (network_norm_is_after(net)) {
        float *const whole = net->added + row * width; /* free until row_drop() writes to it */
        row_add(d_normed, width, d_x);
        if (!p->norm)
            return;
        memcpy(whole, d_x, (size_t)width * sizeof *whole);
        memset(d_x, 0, (size_t)width * sizeof *d_x);
        d_normed = whole;
    }
    row_norm_backward(p->x + row * width, p->stats + 2 * row, net->values + p->norm->weight,
                      d_normed, width, d_x, sums, sums + width);
}

/*
 * The backward pass of add_and_norm() for TASK_ROWS rows: d_x, and the gradient of the output of
 * the part before in `added`. The gradients of the norm are summed over these rows only; the caller
 * adds up the tasks in order.
 */
static void add_norm_back_task(void *arg, int worker, ptrdiff_t number)
{
    (void)worker;
    const add_norm_back_pass *const pass = arg;
    const network *const net = pass->net;
    const ptrdiff_t width = net->config.width;
    const network_part *const p = &net->sides[pass->side].parts[pass->number];
    const ptrdiff_t first = number * TASK_ROWS;
    const ptrdiff_t end = task_end(number, net->batch->rows[pass->side]);
    float *const sums = net->norm_sums + number * 2 * width;
    memset(sums, 0, (size_t)(2 * width) * sizeof *sums);
    if (p->kind == PART_END)
        memset(net->d_x + first * width, 0, (size_t)((end - first) * width) * sizeof *net->d_x);
    for (ptrdiff_t row = first; row < end; row++) {
        norm_back_row(pass, p, row, sums);
        row_drop(&pass->dropout, row, net->d_x + row * width, (int)width, net->added + row * width);
    }
}

static void add_and_norm_backward(const backward_pass *pass, int number, const float *d_normed)
{
    const network *const net = pass->net;
    const int width = net->config.width;
    const weight_at *const norm = net->sides[pass->side].parts[number].norm;
    const ptrdiff_t tasks = task_count(net->batch->rows[pass->side]);
    add_norm_back_pass norm_pass = {net, pass->side, number, d_normed,
                                    network_dropout(net, pass->side, number)};
    mha_pool_run(net->pool, tasks, add_norm_back_task, &norm_pass);
    if (!norm)
        return;
    float *const d_weight = pass->gradients + norm->weight;
    float *const d_bias = pass->gradients + norm->bias;
    memset(d_weight, 0, (size_t)width * sizeof *d_weight);
    memset(d_bias, 0, (size_t)width * sizeof *d_bias);
    for (ptrdiff_t n = 0; n < tasks; n++) {
        row_add(net->norm_sums + 2 * n * width, width, d_weight);
        row_add(net->norm_sums + (2 * n + 1) * width, width, d_bias);
    }
}

/* --------------------------------------------------------------- parts ----- */

static mha_status linear_backward(const backward_pass *pass, const mha_linear *linear,
                                  const weight_at *at, const float *x, ptrdiff_t inputs,
                                  const float *d_y, ptrdiff_t outputs, float *d_x)
{
    const network *const net = pass->net;
    const mha_linear_gradients gradients = {.size = sizeof gradients,
                                            .d_y = d_y,
                                            .d_y_stride = outputs,
                                            .d_x = d_x,
                                            .d_x_stride = inputs,
                                            .d_weight = {pass->gradients + at->weight, inputs, 1},
                                            .d_bias = pass->gradients + at->bias};
    return mha_linear_backward(linear, net->batch->rows[pass->side], x, MHA_F32, inputs, &gradients,
                               net->work.base, net->work.size, net->pool);
}

typedef struct relu_back_pass {
    const network *net;
    const network_part *part;
    ptrdiff_t rows;
} relu_back_pass;

static void relu_back_task(void *arg, int worker, ptrdiff_t number)
{
    (void)worker;
    const relu_back_pass *const pass = arg;
    const ptrdiff_t width = pass->net->config.ff_width;
    for (ptrdiff_t row = number * TASK_ROWS; row < task_end(number, pass->rows); row++)
        row_relu_backward(pass->part->inside + row * width, (int)width,
                          pass->net->d_inside + row * width);
}

static mha_status feed_forward_backward(const backward_pass *pass, const network_part *p)
{
    const network *const net = pass->net;
    const ptrdiff_t width = net->config.width, inside = net->config.ff_width;
    const ptrdiff_t rows = net->batch->rows[pass->side];
    const mha_status status = linear_backward(pass, p->out, &p->ff->out, p->inside, inside,
                                              net->added, width, net->d_inside);
    if (status != MHA_OK)
        return status;
    relu_back_pass relu = {net, p, rows};
    mha_pool_run(net->pool, task_count(rows), relu_back_task, &relu);
    return linear_backward(pass, p->in, &p->ff->in, p->normed, width, net->d_inside, inside,
                           net->d_normed);
}

/* d_memory += d_key for TASK_ROWS rows. */
static void memory_task(void *arg, int worker, ptrdiff_t number)
{
    (void)worker;
    const network *const net = ((const backward_pass *)arg)->net;
    const ptrdiff_t width = net->config.width, rows = net->batch->rows[TRANSFORMER_SOURCE];
    for (ptrdiff_t row = number * TASK_ROWS; row < task_end(number, rows); row++)
        row_add(net->d_key + row * width, (int)width, net->d_memory + row * width);
}

/* Writes d_normed, and for cross-attention adds to d_memory. */
static mha_status attention_backward(backward_pass *pass, int number)
{
    const network *const net = pass->net;
    const network_part *const p = &net->sides[pass->side].parts[number];
    const ptrdiff_t width = net->config.width;
    attention_call a;
    network_fill_call(net, pass->side, number, &a);
    mha_layer_gradients gradients =
        transformer_layer_gradients(&net->config, p->attention, pass->gradients);
    gradients.d_output = (mha_view){net->added, 0, 0, width};
    gradients.d_query = (mha_out){net->d_normed, 0, 0, width};
    if (p->kind == PART_CROSS)
        gradients.d_key = (mha_out){pass->memory_begun ? net->d_key : net->d_memory, 0, 0, width};
    if (net->mode.heads)
        gradients.d_gates =
            head_settings_gradients(net->mode.heads, network_attention_kind(pass->side, p),
                                    network_layer(pass->side, number));
    const mha_status status = mha_layer_backward(p->layer, &a.call, &gradients, net->work.base,
                                                 net->work.size, net->pool);
    if (status != MHA_OK || p->kind != PART_CROSS)
        return status;
    if (pass->memory_begun)
        mha_pool_run(net->pool, task_count(net->batch->rows[TRANSFORMER_SOURCE]), memory_task,
                     pass);
    pass->memory_begun = true;
    return MHA_OK;
}

/* ----------------------------------------------------------- embedding ----- */

/* A task is some columns of all embeddings, so that the rows of the batch are added in order. */
enum { EMBED_COLUMNS = 16 };

/* Whether the gradient of the embedding has begun: as unembedding, or as that of the other side. */
static bool has_gradients(const backward_pass *pass)
{
    return pass->side == TRANSFORMER_TARGET ? !network_detects(pass->net)
                                            : pass->net->config.form != FORM_LABORATORY;
}

static ptrdiff_t embeddings(const backward_pass *pass)
{
    const transformer_config *const config = &pass->net->config;
    return network_detects(pass->net) ? config->positions : config->words[pass->side];
}

static void embed_task(void *arg, int worker, ptrdiff_t number)
{
    (void)worker;
    const backward_pass *const pass = arg;
    const network *const net = pass->net;
    const ptrdiff_t width = net->config.width, first = number * EMBED_COLUMNS;
    const ptrdiff_t columns = width - first < EMBED_COLUMNS ? width - first : EMBED_COLUMNS;
    const float scale = sqrtf((float)width);
    float *const gradients = pass->gradients + net->map.embedding[pass->side] + first;
    if (!has_gradients(pass))
        for (ptrdiff_t word = 0; word < embeddings(pass); word++)
            memset(gradients + word * width, 0, (size_t)columns * sizeof *gradients);
    for (ptrdiff_t row = 0; row < net->batch->rows[pass->side]; row++) {
        float *const to = gradients + net->batch->words[pass->side][row] * width;
        const float *const from = net->added + row * width + first;
        for (ptrdiff_t c = 0; c < columns; c++)
            to[c] += from[c] * scale;
    }
}

/* The backward pass of a side, from the gradient `d_end` of the output of its last norm. */
static mha_status side_backward(backward_pass *pass, const float *d_end)
{
    const network *const net = pass->net;
    const tower *const side = &net->sides[pass->side];
    add_and_norm_backward(pass, side->end, d_end);
    for (int n = side->end - 1; n >= 0; n--) {
        const network_part *const p = &side->parts[n];
        const mha_status status =
            p->kind == PART_FF ? feed_forward_backward(pass, p) : attention_backward(pass, n);
        if (status != MHA_OK)
            return status;
        add_and_norm_backward(pass, n, net->d_normed);
    }
    if (pass->side == TRANSFORMER_SOURCE && network_reads_pictures(net))
        return network_vision_embed_backward(net, pass->gradients);
    mha_pool_run(net->pool, (net->config.width + EMBED_COLUMNS - 1) / EMBED_COLUMNS, embed_task,
                 pass);
    return MHA_OK;
}

/* Writes the gradient of the target embedding as unembedding, or of the classifier. embed_task()
 * later adds the gradient of the same matrix as embedding. */
static void unembed_backward(const network *net, float *gradients)
{
    const size_t outputs = (size_t)transformer_outputs(&net->config);
    const size_t at = network_has_classifier(net) ? net->map.vision.classifier.weight
                                                  : net->map.embedding[TRANSFORMER_TARGET];
    memcpy(gradients + at, net->d_unembed, outputs * (size_t)net->config.width * sizeof *gradients);
    if (network_has_classifier(net))
        memcpy(gradients + net->map.vision.classifier.bias, net->d_unembed_bias,
               outputs * sizeof *gradients);
}

mha_status network_backward(network *net, float *gradients)
{
    if (!net->batch || !net->mode.training)
        return MHA_ERR_FLAG;
    backward_pass target = {.net = net, .gradients = gradients, .side = TRANSFORMER_TARGET};
    backward_pass source = {.net = net, .gradients = gradients, .side = TRANSFORMER_SOURCE};
    unembed_backward(net, gradients);
    if (network_classifies(net)) {
        network_vision_pool_backward(net);
        return side_backward(&source, net->d_normed);
    }
    mha_status status = side_backward(&target, net->d_last);
    if (status == MHA_OK)
        status = side_backward(&source, net->d_memory);
    return status;
}
