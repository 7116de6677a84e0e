/* SPDX-License-Identifier: MIT */
/* Creates a training, runs its steps, and evaluates it. A step is a batch of the corpus, forward
 * and backward pass (network.h), and the update of the parameters (optimizer.h). */
#include "translator/training.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/rng.h"
#include "translator/training_parts.h"

enum { EVALUATED_AT_ONCE = 64 }; /* sentences; fixed, so that scores are reproducible */

/* ------------------------------------------------------------ creation ----- */

training *training_allocate(const training_config *config, mha_pool *pool)
{
    training *const t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->config = *config;
    t->pool = pool;
    word_numbers_fill(&t->numbers);
    if (optimizer_init(&t->optimizer, &config->model)) {
        t->count = t->optimizer.count;
        t->values = calloc(t->count, sizeof *t->values);
        t->gradients = calloc(t->count, sizeof *t->gradients);
    }
    if (t->values && t->gradients)
        return t;
    training_free(t);
    return NULL;
}

bool training_start(training *t)
{
    t->network = network_create(&t->config.model, t->values, t->pool);
    return t->network != NULL;
}

training *training_create(const training_config *config, mha_pool *pool,
                          char message[TRANSFORMER_MESSAGE_MAX])
{
    if (!training_config_check(config, message))
        return NULL;
    training *const t = training_allocate(config, pool);
    if (t)
        transformer_init(&config->model, config->seed, t->values);
    if (t && training_start(t))
        return t;
    training_free(t);
    snprintf(message, TRANSFORMER_MESSAGE_MAX, "out of memory for this model");
    return NULL;
}

void training_free(training *t)
{
    if (!t)
        return;
    network_free(t->network);
    optimizer_free(&t->optimizer);
    free(t->values);
    free(t->gradients);
    free(t->losses);
    free(t->marks);
    free(t);
}

const training_config *training_get_config(const training *t)
{
    return &t->config;
}

const float *training_values(const training *t)
{
    return t->values;
}

int64_t training_steps_done(const training *t)
{
    return t->step;
}

const char *training_loaded_isa(const training *t)
{
    return t->isa;
}

training_history training_get_history(const training *t)
{
    return (training_history){t->losses, t->marks, t->mark_count};
}

bool training_reserve(training *t, size_t losses, size_t marks)
{
    float *const more_losses = mhai_array_grow(t->losses, &t->loss_room, losses, sizeof *t->losses);
    if (losses && !more_losses)
        return false;
    t->losses = more_losses;
    training_mark *const more_marks =
        mhai_array_grow(t->marks, &t->mark_room, marks, sizeof *t->marks);
    if (marks && !more_marks)
        return false;
    t->marks = more_marks;
    return true;
}

/* ---------------------------------------------------------------- step ----- */

/* Updates the network if the values have changed. After an error the next call tries again. */
static mha_status update_network(training *t)
{
    const mha_status status = t->network_stale ? network_update(t->network, t->values) : MHA_OK;
    t->network_stale = status != MHA_OK;
    return status;
}

/* The batch of this step: the next sentences of the training split. */
static batch *next_batch(const training *t)
{
    const training_config *const c = &t->config;
    uint64_t *const indices = calloc((size_t)c->batch, sizeof *indices);
    if (!indices)
        return NULL;
    for (int n = 0; n < c->batch; n++) {
        const uint64_t index = (uint64_t)t->step * (uint64_t)c->batch + (uint64_t)n;
        indices[n] = c->pairs > 0 ? index % (uint64_t)c->pairs : index;
    }
    batch *const made =
        batch_create(&t->numbers, c->seed, CORPUS_TRAIN, indices, c->batch, c->unknown);
    free(indices);
    return made;
}

static network_mode training_mode(const training *t)
{
    /* The constant makes this series differ from those of the corpus and the parameters. */
    rng r = rng_for(t->config.seed + UINT64_C(0x5bf0363571c8e29d), (uint64_t)t->step);
    const network_mode mode = {
        .training = true,
        .dropout = t->config.dropout,
        .dropout_seed = rng_next(&r),
        .label_smoothing = t->config.label_smoothing,
    };
    return mode;
}

static mha_status find_gradients(training *t, const batch *pairs, network_loss *loss)
{
    const network_mode mode = training_mode(t);
    mha_status status = update_network(t);
    if (status == MHA_OK)
        status = network_forward(t->network, pairs, &mode, loss);
    if (status == MHA_OK)
        status = network_backward(t->network, t->gradients);
    return status;
}

/* Memory for the loss is reserved first, so that no error can occur after the parameters have
 * changed. */
mha_status training_step(training *t, training_result *result)
{
    if (!training_reserve(t, (size_t)t->step + 1, t->mark_count))
        return MHA_ERR_MEMORY;
    batch *const pairs = next_batch(t);
    if (!pairs)
        return MHA_ERR_MEMORY;
    network_loss loss;
    const mha_status status = find_gradients(t, pairs, &loss);
    if (status == MHA_OK) {
        *result = (training_result){
            .loss = loss.sum / (double)loss.words,
            .gradient_norm = optimizer_step(&t->optimizer, &t->config, t->step, t->gradients,
                                            t->values, t->pool),
            .learning_rate = optimizer_rate(&t->config, t->step),
            .tokens = pairs->rows[TRANSFORMER_SOURCE] + pairs->rows[TRANSFORMER_TARGET],
        };
        t->losses[t->step++] = (float)result->loss;
        t->network_stale = true;
    }
    batch_free(pairs);
    return status;
}

/* ------------------------------------------------------------ evaluate ----- */

/* Adds loss and right words of sentences [first, first + count) to `all`. */
static mha_status evaluate_some(training *t, corpus_split split, int64_t first, int count,
                                network_loss *all)
{
    static const network_mode plain = {.training = false};
    uint64_t indices[EVALUATED_AT_ONCE];
    network_loss loss;
    for (int n = 0; n < count; n++)
        indices[n] = (uint64_t)(first + n);
    batch *const pairs = batch_create(&t->numbers, t->config.seed, split, indices, count, 0.0);
    if (!pairs)
        return MHA_ERR_MEMORY;
    const mha_status status = network_forward(t->network, pairs, &plain, &loss);
    if (status == MHA_OK) {
        all->sum += loss.sum;
        all->words += loss.words;
        all->right += loss.right;
    }
    batch_free(pairs);
    return status;
}

mha_status training_evaluate(training *t, corpus_split split, int64_t count, training_score *score)
{
    network_loss all = {.words = 0};
    mha_status status = update_network(t);
    for (int64_t first = 0; first < count && status == MHA_OK; first += EVALUATED_AT_ONCE) {
        const int64_t left = count - first;
        status = evaluate_some(t, split, first,
                               (int)(left < EVALUATED_AT_ONCE ? left : EVALUATED_AT_ONCE), &all);
    }
    if (status == MHA_OK && all.words > 0)
        *score = (training_score){all.sum / (double)all.words,
                                  (double)all.right / (double)all.words, all.words};
    return status == MHA_OK && all.words == 0 ? MHA_ERR_LENGTH : status;
}

mha_status training_validate(training *t, int64_t count, training_score *score)
{
    if (!training_reserve(t, (size_t)t->step, t->mark_count + 1))
        return MHA_ERR_MEMORY;
    const mha_status status = training_evaluate(t, CORPUS_VALID, count, score);
    if (status == MHA_OK)
        t->marks[t->mark_count++] = (training_mark){t->step, score->loss, score->words_right};
    return status;
}
