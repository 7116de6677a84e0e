/* SPDX-License-Identifier: MIT */
/*
 * Losses, importance and mean outputs of heads over many sentences.
 *
 *      pairs --batch_pack()--> batches --network_forward()--> scores of words --> loss per sentence
 *                                      --network_backward()--> d loss / d gate --> importance
 *      pairs --capture_create()--> outputs of heads --> means
 *
 * For importance each sentence of a batch has gates of its own, so one backward pass gives the
 * gradients of all sentences.
 */
#include "heads/head_eval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "translator/translator.h"

enum { BATCH_SENTENCES = 128 };

struct head_eval {
    const translator *model;
    network *network;
    int sentences, batch_count;
    batch **batches; /* [batch_count] of BATCH_SENTENCES each, the last one of the rest */
    int64_t words;   /* of the targets, ends included */
};

/* -------------------------------------------------------------- memory ----- */

/* Copies the pairs into batches. */
static bool make_batches(head_eval *e, const head_pair *pairs)
{
    numbered_pair *const words = malloc(BATCH_SENTENCES * sizeof *words);
    bool fine = words != NULL && e->batches != NULL;
    for (int n = 0; n < e->batch_count && fine; n++) {
        const int first = n * BATCH_SENTENCES;
        const int count =
            e->sentences - first < BATCH_SENTENCES ? e->sentences - first : BATCH_SENTENCES;
        for (int k = 0; k < count; k++)
            words[k] = pairs[first + k].words;
        batch *const b = e->batches[n] = batch_pack(words, count);
        fine = b != NULL;
        if (fine)
            e->words += b->rows[TRANSFORMER_TARGET];
    }
    free(words);
    return fine;
}

head_eval *head_eval_create(const translator *model, const head_pair *pairs, int count,
                            mha_pool *pool)
{
    head_eval *const e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->model = model;
    e->sentences = count;
    e->batch_count = (count + BATCH_SENTENCES - 1) / BATCH_SENTENCES;
    e->batches = calloc((size_t)e->batch_count + 1, sizeof(batch *));
    e->network =
        network_create(translator_config(model), translator_values(model), MHA_EXACT, pool);
    if (e->network && make_batches(e, pairs))
        return e;
    head_eval_free(e);
    return NULL;
}

void head_eval_free(head_eval *e)
{
    if (!e)
        return;
    for (int n = 0; e->batches && n < e->batch_count; n++)
        batch_free(e->batches[n]);
    free(e->batches);
    network_free(e->network);
    free(e);
}

int head_eval_sentences(const head_eval *e)
{
    return e->sentences;
}

int64_t head_eval_words(const head_eval *e)
{
    return e->words;
}

/* -------------------------------------------------------------- losses ----- */

/* Adds up the scores that the network has left of a batch: each[pairs of the batch]. */
static void take_scores(const head_eval *e, const batch *b, head_loss *each)
{
    const row_score *const scores = network_scores(e->network);
    for (int n = 0; n < b->pairs; n++) {
        each[n] = (head_loss){0};
        for (int64_t row = b->starts[TRANSFORMER_TARGET][n];
             row < b->starts[TRANSFORMER_TARGET][n + 1]; row++) {
            each[n].loss += scores[row].loss;
            each[n].right += scores[row].right;
            each[n].words++;
        }
    }
}

mha_status head_eval_run(head_eval *e, const head_settings *settings, head_loss *each,
                         float *logits)
{
    for (int n = 0; n < e->batch_count; n++) {
        const batch *const b = e->batches[n];
        const network_mode mode = {.heads = settings, .logits = logits};
        network_loss loss;
        const mha_status status = network_forward(e->network, b, &mode, &loss);
        if (status != MHA_OK)
            return status;
        take_scores(e, b, each + n * BATCH_SENTENCES);
        if (logits)
            logits += b->rows[TRANSFORMER_TARGET];
    }
    return MHA_OK;
}

head_total head_total_of(const head_loss *each, int count)
{
    head_total total = {.sentences = count};
    for (int n = 0; n < count; n++) {
        total.loss += each[n].loss;
        total.words += each[n].words;
        total.right += each[n].right;
        total.exact += each[n].right == each[n].words;
    }
    if (total.words > 0)
        total.loss /= (double)total.words;
    return total;
}

/* ---------------------------------------------------------- importance ----- */

/* Sets the gates that are 0 in `from` to 0 in all sentences of `to`. */
static void copy_gates(const head_settings *from, head_settings *to)
{
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        for (int n = 0; n < from->layers[kind] * from->heads; n++)
            if (from->gates[kind][n] == 0.0f)
                head_settings_change(to, (attention_kind)kind, n / from->heads, n % from->heads,
                                     HEAD_ZERO);
}

/* raw[head] += the sum of |d loss / d gate| over the sentences of a batch. gradients: room for
 * those of all parameters, which the backward pass wants. */
static mha_status add_importance(head_eval *e, const batch *b, const head_settings *disabled,
                                 float *gradients, double *raw)
{
    head_settings *const s = head_settings_create(translator_config(e->model), b->pairs);
    if (!s)
        return MHA_ERR_MEMORY;
    if (disabled)
        copy_gates(disabled, s);
    const network_mode mode = {.training = true, .heads = s};
    network_loss loss;
    mha_status status = network_forward(e->network, b, &mode, &loss);
    if (status == MHA_OK)
        status = network_backward(e->network, gradients);
    for (int head = 0;
         status == MHA_OK && head < head_count(head_shape_of(translator_config(e->model)));
         head++) {
        const head_name name = head_at(head_shape_of(translator_config(e->model)), head);
        const float *const d = head_settings_gradients(s, name.kind, name.layer) + name.head;
        /* The network's loss is a mean over the words of the batch; times their number it is the
         * sum, whose derivative by the gates of a sentence is that of the sentence's loss. */
        for (int n = 0; n < b->pairs; n++)
            raw[head] += fabs((double)d[n * s->heads]) * (double)loss.words;
    }
    head_settings_free(s);
    return status;
}

/* Divides by the Euclidean norm of each layer; a layer of zeros stays 0. */
static void normalise(const transformer_config *config, const double *raw, double *normal)
{
    const int heads = config->heads;
    for (int first = 0; first < head_count(head_shape_of(config)); first += heads) {
        double squares = 0.0;
        for (int h = 0; h < heads; h++)
            squares += raw[first + h] * raw[first + h];
        for (int h = 0; h < heads; h++)
            normal[first + h] = squares > 0.0 ? raw[first + h] / sqrt(squares) : 0.0;
    }
}

mha_status head_eval_importance(head_eval *e, const head_settings *disabled, double *raw,
                                double *normal)
{
    const transformer_config *const config = translator_config(e->model);
    float *const gradients = malloc(translator_map(e->model)->count * sizeof *gradients);
    mha_status status = gradients ? MHA_OK : MHA_ERR_MEMORY;
    memset(raw, 0, (size_t)head_count(head_shape_of(config)) * sizeof *raw);
    for (int n = 0; n < e->batch_count && status == MHA_OK; n++)
        status = add_importance(e, e->batches[n], disabled, gradients, raw);
    for (int head = 0; head < head_count(head_shape_of(config)); head++)
        raw[head] /= e->sentences;
    normalise(config, raw, normal);
    free(gradients);
    return status;
}

/* --------------------------------------------------------------- means ----- */

/* settings->means[kind][layers][heads][width] += the sum of the outputs over the rows. */
static void add_outputs(const capture *c, head_settings *settings)
{
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        const capture_heads *const h = &c->kind[kind];
        const ptrdiff_t D = h->width;
        for (ptrdiff_t n = 0; n < (ptrdiff_t)h->layers * h->heads; n++)
            for (ptrdiff_t k = 0; k < h->rows * D; k++)
                settings->means[kind][n * D + k % D] += h->outputs[n * h->rows * D + k];
    }
}

mha_status head_means_fill(const translator *model, const head_pair *pairs, int count,
                           mha_pool *pool, head_settings *settings)
{
    static const capture_options options = {.vectors = true};
    int64_t rows[ATTENTION_KINDS] = {0};
    for (int n = 0; n < count; n++) {
        capture *const c = head_capture(model, &pairs[n], &options, pool);
        if (!c)
            return MHA_ERR_MEMORY;
        add_outputs(c, settings);
        for (int kind = 0; kind < ATTENTION_KINDS; kind++)
            rows[kind] += c->kind[kind].rows;
        capture_free(c);
    }
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        for (int n = 0; n < settings->layers[kind] * settings->heads * settings->width; n++)
            settings->means[kind][n] /= (float)rows[kind];
    return MHA_OK;
}
