/* SPDX-License-Identifier: MIT */
/* One training of a sweep and its measurements (head_sweep.h). */
#include "translator/head_sweep.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "translator/accuracy.h"

int64_t sweep_step(const sweep_settings *s, int point)
{
    return s->config.steps * (point + 1) / s->points;
}

training_config sweep_config(const sweep_settings *s, const sweep_key *key)
{
    training_config config = s->config;
    config.model.heads = key->heads;
    config.seed = key->seed;
    config.sentences = key->data;
    return config;
}

/* As many training sentences as validation sentences, unless the training saw fewer. */
static int64_t training_sentences(const sweep_settings *s, const sweep_key *key)
{
    const int64_t shown = s->config.steps * s->config.batch;
    const int64_t different = key->data > 0 && key->data < shown ? key->data : shown;
    return s->evaluate < different ? s->evaluate : different;
}

static sweep_end fail(char message[TRANSFORMER_MESSAGE_MAX], mha_status status)
{
    snprintf(message, TRANSFORMER_MESSAGE_MAX, "the training failed: %s",
             mha_status_string(status));
    return SWEEP_FAILED;
}

/* One step; a validation, if it is the step of one. */
static sweep_end advance(training *t, const sweep_settings *s, int *point, sweep_result *result,
                         char message[TRANSFORMER_MESSAGE_MAX])
{
    training_result step;
    training_score score;
    mha_status status = training_step(t, &step);
    if (status == MHA_OK && !isfinite(step.loss)) {
        snprintf(message, TRANSFORMER_MESSAGE_MAX,
                 "the training has diverged: the loss of step %" PRId64
                 " is not a number. Start again with a lower --lr (it was %g)",
                 training_steps_done(t), s->config.learning_rate);
        return SWEEP_FAILED;
    }
    if (status == MHA_OK && training_steps_done(t) == sweep_step(s, *point)) {
        status = training_evaluate(t, CORPUS_VALID, s->evaluate, &score);
        if (status == MHA_OK) {
            result->valid[(*point)++] = score.loss;
            result->words_right = score.words_right;
        }
    }
    return status == MHA_OK ? SWEEP_DONE : fail(message, status);
}

/* The share of held-out sentences that greedy search translates without an error. */
static mha_status measure_exact(training *t, const sweep_settings *s, mha_pool *pool,
                                sweep_result *result, char message[TRANSFORMER_MESSAGE_MAX])
{
    static const translation_options greedy = {.beam = 1};
    const training_config *const config = training_get_config(t);
    int64_t right = 0;
    translator *const made = translator_create(&config->model, training_values(t), message);
    if (made == NULL)
        return MHA_ERR_MEMORY;
    const mha_status status =
        accuracy_measure(made, config->seed, CORPUS_VALID, s->evaluate, &greedy, pool, &right);
    translator_free(made);
    result->exact = (double)right / (double)s->evaluate;
    return status;
}

static sweep_end measure_end(training *t, const sweep_settings *s, mha_pool *pool,
                             sweep_result *result, char message[TRANSFORMER_MESSAGE_MAX])
{
    training_score score;
    mha_status status =
        training_evaluate(t, CORPUS_TRAIN, training_sentences(s, &result->key), &score);
    if (status == MHA_OK) {
        result->train_loss = score.loss;
        status = measure_exact(t, s, pool, result, message);
    }
    return status == MHA_OK ? SWEEP_DONE : fail(message, status);
}

sweep_end sweep_train(const sweep_settings *s, const sweep_key *key, mha_pool *pool,
                      const sweep_watch *watch, sweep_result *result,
                      char message[TRANSFORMER_MESSAGE_MAX])
{
    const training_config config = sweep_config(s, key);
    training *const t = training_create(&config, NULL, pool, message);
    sweep_end end = t != NULL ? SWEEP_DONE : SWEEP_FAILED;
    int point = 0;
    *result = (sweep_result){.key = *key};
    for (int64_t done = 1; done <= config.steps && end == SWEEP_DONE; done++) {
        end = advance(t, s, &point, result, message);
        if (end == SWEEP_DONE && watch != NULL && !watch->step(watch->context, done))
            end = SWEEP_STOPPED;
    }
    if (end == SWEEP_DONE)
        end = measure_end(t, s, pool, result, message);
    training_free(t);
    return end;
}
