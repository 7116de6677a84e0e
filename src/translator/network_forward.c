/* SPDX-License-Identifier: MIT */
/*
 * The forward pass, from words to the loss. Per part, add_and_norm() forms x from the output of the
 * part before it and normalises it; run_part() computes the output. In training the logits are
 * replaced by the gradient of the loss, where the backward pass starts: that of the unembedding is
 * done here, some rows at a time, so that logits of all rows never exist at the same time.
 */
#include <math.h>
#include <string.h>

#include "translator/network_parts.h"

/* --------------------------------------------------------------- check ----- */

static mha_status check_side(const network *net, const batch *b, int side)
{
    if (b->longest[side] > net->config.positions || b->rows[side] < 1)
        return MHA_ERR_SHAPE;
    for (ptrdiff_t row = 0; row < b->rows[side]; row++)
        if (b->words[side][row] < 0 || b->words[side][row] >= net->config.words[side])
            return MHA_ERR_INDEX;
    return MHA_OK;
}

static mha_status check(const network *net, const batch *b, const network_mode *mode)
{
    if (!(mode->dropout >= 0.0 && mode->dropout < 1.0) ||
        !(mode->attention_dropout >= 0.0 && mode->attention_dropout < 1.0))
        return MHA_ERR_DROPOUT;
    if (mode->heads && mode->heads->sentences != 1 && mode->heads->sentences != b->pairs)
        return MHA_ERR_SHAPE;
    if (mode->training && mode->cross)
        return MHA_ERR_FLAG;
    if (network_reads_pictures(net) || b->pixels) {
        const mha_status status = network_vision_check(net, b);
        if (status != MHA_OK)
            return status;
    }
    if (network_detects(net) || b->things)
        return network_detection_check(net, b);
    for (int side = 0; side < TRANSFORMER_SIDES && !network_classifies(net); side++) {
        const bool pictures = side == TRANSFORMER_SOURCE && network_reads_pictures(net);
        const mha_status status = pictures ? MHA_OK : check_side(net, b, side);
        if (status != MHA_OK)
            return status;
    }
    for (ptrdiff_t row = 0; row < b->rows[TRANSFORMER_TARGET]; row++)
        if (b->expected[row] < 0 || b->expected[row] >= net->config.words[TRANSFORMER_TARGET])
            return MHA_ERR_INDEX;
    return MHA_OK;
}

/* --------------------------------------------------------------- parts ----- */

typedef struct add_norm_pass {
    const network *net;
    int side, number;
    float scale; /* of embeddings */
    row_dropout dropout;
} add_norm_pass;

/* What the output of the part before p is added to. */
static const float *residual(const network *net, const network_part *p)
{
    return network_norm_is_after(net) ? p[-1].normed : p[-1].x;
}

static void norm_row(const network *net, const network_part *p, ptrdiff_t row)
{
    const int width = net->config.width;
    const float *const x = p->x + row * width;
    float *const normed = p->normed + row * width;
    if (p->norm)
        row_norm(x, width, net->values + p->norm->weight, net->values + p->norm->bias, normed,
                 p->stats + 2 * row);
    else
        memcpy(normed, x, (size_t)width * sizeof *normed);
}

static void embed_row(const add_norm_pass *pass, ptrdiff_t row, float *x)
{
    const network *const net = pass->net;
    const ptrdiff_t width = net->config.width;
    const float *const embeddings = net->values + net->map.embedding[pass->side];
    if (pass->side == TRANSFORMER_SOURCE && network_reads_pictures(net))
        network_vision_row(net, row, x);
    else
        row_embed(embeddings + net->batch->words[pass->side][row] * width, pass->scale,
                  net->codes + net->batch->positions[pass->side][row] * width, (int)width, x);
    row_drop(&pass->dropout, row, x, (int)width, x);
}

/* x and normed of a part for TASK_ROWS rows: x = residual + dropped out output of the part before.
 */
static void add_norm_task(void *arg, int worker, ptrdiff_t number)
{
    (void)worker;
    const add_norm_pass *const pass = arg;
    const network *const net = pass->net;
    const int width = net->config.width;
    const network_part *const p = &net->sides[pass->side].parts[pass->number];
    const ptrdiff_t end = task_end(number, net->batch->rows[pass->side]);
    for (ptrdiff_t row = number * TASK_ROWS; row < end; row++) {
        float *const x = p->x + row * width;
        if (pass->number == 0)
            embed_row(pass, row, x);
        else {
            row_drop(&pass->dropout, row, net->added + row * width, width, x);
            row_add(residual(net, p) + row * width, width, x);
        }
        norm_row(net, p, row);
    }
}

static void add_and_norm(const network *net, int side, int number)
{
    add_norm_pass pass = {.net = net,
                          .side = side,
                          .number = number,
                          .scale = sqrtf((float)net->config.width),
                          .dropout = network_dropout(net, side, number)};
    mha_pool_run(net->pool, task_count(net->batch->rows[side]), add_norm_task, &pass);
}

typedef struct relu_pass {
    const network *net;
    float *x;
    ptrdiff_t rows;
} relu_pass;

static void relu_task(void *arg, int worker, ptrdiff_t number)
{
    (void)worker;
    const relu_pass *const pass = arg;
    const ptrdiff_t first = number * TASK_ROWS, width = pass->net->config.ff_width;
    for (ptrdiff_t row = first; row < task_end(number, pass->rows); row++)
        row_relu(pass->x + row * width, (int)width);
}

static mha_status run_feed_forward(const network *net, int side, const network_part *p)
{
    const ptrdiff_t rows = net->batch->rows[side], width = net->config.width;
    const ptrdiff_t inside = net->config.ff_width;
    const mha_status status =
        mha_linear_run(p->in, rows, p->normed, MHA_F32, width, p->inside, MHA_F32, inside,
                       net->work.base, net->work.size, net->pool);
    if (status != MHA_OK)
        return status;
    relu_pass pass = {net, p->inside, rows};
    mha_pool_run(net->pool, task_count(rows), relu_task, &pass);
    return mha_linear_run(p->out, rows, p->inside, MHA_F32, inside, net->added, MHA_F32, width,
                          net->work.base, net->work.size, net->pool);
}

/* From p->normed to net->added, the output of the part. */
static mha_status run_part(const network *net, int side, int number)
{
    const network_part *const p = &net->sides[side].parts[number];
    if (p->kind == PART_FF)
        return run_feed_forward(net, side, p);
    attention_call a;
    network_fill_call(net, side, number, &a);
    return mha_layer_run(p->layer, &a.call, net->work.base, net->work.size, net->pool);
}

static mha_status run_side(const network *net, int side)
{
    for (int n = 0; n < net->sides[side].end; n++) {
        add_and_norm(net, side, n);
        const mha_status status = run_part(net, side, n);
        if (status != MHA_OK)
            return status;
    }
    add_and_norm(net, side, net->sides[side].end);
    return MHA_OK;
}

/* ---------------------------------------------------------------- loss ----- */

/* The logit of the expected word minus the mean of all. */
static float centred(const float *logits, int words, int expected)
{
    double sum = 0.0;
    for (int w = 0; w < words; w++)
        sum += (double)logits[w];
    return (float)((double)logits[expected] - sum / words);
}

/* The most likely word, the first of equals. */
static int most_likely(const float *logits, int words)
{
    int best = 0;
    for (int w = 1; w < words; w++)
        best = logits[w] > logits[best] ? w : best;
    return best;
}

/* The score of a row, and in its logits what row_softmax() leaves; of a mixed picture the loss is
 * that of both classes. */
static row_score score_row(const network *net, ptrdiff_t row, float *logits, int words, float *sum)
{
    const batch *const b = net->batch;
    const int expected = b->expected[row];
    const double apart =
        b->shares ? (double)logits[expected] - (double)logits[b->others[row]] : 0.0;
    row_score score = row_softmax(logits, words, expected, sum);
    if (b->shares)
        score.loss += (double)b->shares[row] * apart;
    return score;
}

/* Moves the share of a mixed picture from its own class to the other one. */
static void mix_gradient(const batch *b, ptrdiff_t row, float share, float *logits)
{
    const float moved = b->shares ? share * b->shares[row] : 0.0f;
    if (moved == 0.0f)
        return;
    logits[b->expected[row]] += moved;
    logits[b->others[row]] -= moved;
}

/* Loss and, in training, gradient of the logits for TASK_ROWS rows. */
static void score_task(void *arg, int worker, ptrdiff_t number)
{
    (void)worker;
    const loss_pass *const pass = arg;
    const network *const net = pass->net;
    const int words = net->config.words[TRANSFORMER_TARGET];
    const float share = (float)network_share(net);
    for (ptrdiff_t n = number * TASK_ROWS; n < task_end(number, pass->rows); n++) {
        const ptrdiff_t row = pass->first + n;
        float *const logits = net->logits + n * net->logit_stride;
        const int expected = net->batch->expected[row];
        float sum;
        if (net->mode.logits)
            net->mode.logits[row] = centred(logits, words, expected);
        if (net->mode.said)
            net->mode.said[row] = most_likely(logits, words);
        net->scores[row] = score_row(net, row, logits, words, &sum);
        if (net->mode.training) {
            const float smoothing = (float)net->mode.label_smoothing;
            row_softmax_backward(logits, words, expected, sum, smoothing, share);
            mix_gradient(net->batch, row, share * (1.0f - smoothing), logits);
        }
    }
}

/* The gradients of the unembedding and of its input, from those of the logits. */
static mha_status run_unembed_backward(const loss_pass *pass, const float *normed)
{
    const network *const net = pass->net;
    const ptrdiff_t width = net->config.width;
    const mha_linear_gradients gradients = {.size = sizeof gradients,
                                            .d_y = net->logits,
                                            .d_y_stride = net->logit_stride,
                                            .d_x = net->d_last + pass->first * width,
                                            .d_x_stride = width,
                                            .d_weight = {net->d_unembed, width, 1},
                                            .d_bias = net->d_unembed_bias,
                                            .accumulate = pass->first > 0};
    return mha_linear_backward(net->unembed, pass->rows, normed, MHA_F32, width, &gradients,
                               net->work.base, net->work.size, net->pool);
}

static mha_status run_loss_of(loss_pass *pass)
{
    const network *const net = pass->net;
    const tower *const target = &net->sides[TRANSFORMER_TARGET];
    const ptrdiff_t width = net->config.width;
    const float *const last =
        network_classifies(net) ? net->pooled : target->parts[target->end].normed;
    const float *const normed = last + pass->first * width;
    const mha_status status =
        mha_linear_run(net->unembed, pass->rows, normed, MHA_F32, width, net->logits, MHA_F32,
                       net->logit_stride, net->work.base, net->work.size, net->pool);
    if (status != MHA_OK)
        return status;
    if (network_detects(net))
        mha_pool_run(net->pool, pass->rows / net->config.positions, network_detection_task, pass);
    else
        mha_pool_run(net->pool, task_count(pass->rows), score_task, pass);
    return net->mode.training ? run_unembed_backward(pass, normed) : MHA_OK;
}

/* Whether all words of a pair are right. */
static bool all_right(const network *net, int pair)
{
    const int64_t *const starts = net->batch->starts[TRANSFORMER_TARGET];
    bool right = true;
    for (int64_t row = starts[pair]; row < starts[pair + 1]; row++)
        right = right && net->scores[row].right;
    return right;
}

/* Loss, LOSS_ROWS rows at a time. In training, the backward pass of the unembedding belongs to it:
 * the logits are gone afterwards. */
static mha_status run_loss(const network *net, network_loss *loss)
{
    const ptrdiff_t rows = net->batch->rows[TRANSFORMER_TARGET];
    const ptrdiff_t together = network_detects(net) ? network_detection_rows(net) : LOSS_ROWS;
    for (ptrdiff_t first = 0; first < rows; first += together) {
        loss_pass pass = {net, first, rows - first < together ? rows - first : together};
        const mha_status status = run_loss_of(&pass);
        if (status != MHA_OK)
            return status;
    }
    *loss = (network_loss){.words = rows};
    for (ptrdiff_t row = 0; row < rows; row++) {
        loss->sum += net->scores[row].loss;
        loss->right += net->scores[row].right;
    }
    for (int n = 0; n < net->batch->pairs; n++)
        loss->whole += all_right(net, n);
    return MHA_OK;
}

mha_status network_forward(network *net, const batch *pairs, const network_mode *mode,
                           network_loss *loss)
{
    net->batch = NULL;
    mha_status status = check(net, pairs, mode);
    if (status != MHA_OK)
        return status;
    net->batch = pairs;
    net->mode = *mode;
    if (!mode->training)
        net->mode.dropout = net->mode.attention_dropout = 0.0;
    status = network_prepare(net);
    if (status == MHA_OK && network_reads_pictures(net))
        status = network_vision_embed(net);
    for (int side = 0; side < network_sides(net) && status == MHA_OK; side++)
        status = run_side(net, side);
    if (status == MHA_OK && network_classifies(net))
        network_vision_pool(net);
    if (status == MHA_OK)
        status = run_loss(net, loss);
    if (status != MHA_OK)
        net->batch = NULL;
    return status;
}

const row_score *network_scores(const network *net)
{
    return net->scores;
}
