/* SPDX-License-Identifier: MIT */
/* Creates a training, runs its steps, and evaluates it. A step is a batch of the corpus, forward
 * and backward pass (network.h), and the update of the parameters (optimizer.h). */
#include "translator/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/rng.h"
#include "translator/training_parts.h"

enum { EVALUATED_AT_ONCE = 64 }; /* sentences; fixed, so that scores are reproducible */

/* ------------------------------------------------------------ creation ----- */

training *training_allocate(const training_config *config, training_data *data, mha_pool *pool)
{
    const bool averages = config->ema > 0.0 || config->average > 0;
    bool sums = false;
    training *const t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->config = *config;
    t->pool = pool;
    t->data = data ? data : &t->grammar.base;
    if (!data)
        grammar_data_init(&t->grammar);
    if (optimizer_init(&t->optimizer, &config->model)) {
        t->count = t->optimizer.count;
        t->values = calloc(t->count, sizeof *t->values);
        t->gradients = calloc(t->count + 1, sizeof *t->gradients);
        sums = gradient_sum_init(&t->sum, t->count + 1, config->micro_batches);
        t->average = averages ? calloc(t->count, sizeof *t->average) : NULL;
    }
    if (t->values && t->gradients && sums && (t->average || !averages))
        return t;
    training_free(t);
    return NULL;
}

bool training_start(training *t)
{
    t->network = network_create(&t->config.model, t->values, t->config.arithmetic, t->pool);
    t->network_values = t->values;
    return t->network != NULL;
}

training *training_create(const training_config *config, training_data *data, mha_pool *pool,
                          char message[TRANSFORMER_MESSAGE_MAX])
{
    return training_create_from(config, NULL, data, pool, message);
}

static void first_values(training *t)
{
    transformer_init(&t->config.model, t->config.seed, t->values);
    if (t->config.attention_gain != 1.0)
        transformer_scale_attention(&t->config.model, t->config.attention_gain, t->values);
}

training *training_create_from(const training_config *config, const float *values,
                               training_data *data, mha_pool *pool,
                               char message[TRANSFORMER_MESSAGE_MAX])
{
    if (!training_config_check(config, message))
        return NULL;
    training *const t = training_allocate(config, data, pool);
    if (t && values)
        memcpy(t->values, values, t->count * sizeof *values);
    else if (t)
        first_values(t);
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
    gradient_sum_free(&t->sum);
    free(t->average);
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
    return training_has_average(t) ? t->average : t->values;
}

int64_t training_steps_done(const training *t)
{
    return t->step;
}

const char *training_isa(const training *t)
{
    return t->config.arithmetic == MHA_NATIVE ? mha_isa_name() : mha_isa_base();
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

/* Gives the network these values, unless it has them. After an error the next call tries again. */
static mha_status update_network(training *t, const float *values)
{
    if (t->network_values == values)
        return MHA_OK;
    t->network_values = NULL;
    const mha_status status = network_update(t->network, values);
    if (status == MHA_OK)
        t->network_values = values;
    return status;
}

/* Random numbers of a step: one for each of its parts. */
static network_mode training_mode(const training *t, const batch *whole, int part)
{
    /* The constant makes this series differ from those of the corpus and the parameters. */
    rng r = rng_for(t->config.seed + UINT64_C(0x5bf0363571c8e29d), (uint64_t)t->step);
    for (int n = 0; n < part; n++)
        rng_next(&r);
    const network_mode mode = {
        .training = true,
        .dropout = t->config.dropout,
        .attention_dropout =
            t->config.attention_dropout < 0.0 ? t->config.dropout : t->config.attention_dropout,
        .dropout_seed = rng_next(&r),
        .label_smoothing = t->config.label_smoothing,
        .words = whole->rows[TRANSFORMER_TARGET],
        .detection = t->config.detection,
    };
    return mode;
}

/* Gates of 0 for the heads that are dropped, and larger ones for the others; NULL: out of memory.
 */
static head_settings *drop_heads(const training *t, int sentences, int part)
{
    const double rate = t->config.head_dropout;
    rng r = rng_for(t->config.seed + UINT64_C(0x94d1c3b7a650e8f2) + ((uint64_t)part << 32),
                    (uint64_t)t->step);
    head_settings *const heads = head_settings_create(&t->config.model, sentences);
    for (int kind = 0; heads && kind < ATTENTION_KINDS; kind++) {
        const int count = heads->layers[kind] * sentences * heads->heads;
        for (int n = 0; n < count; n++)
            heads->gates[kind][n] = rng_unit(&r) < rate ? 0.0f : (float)(1.0 / (1.0 - rate));
    }
    return heads;
}

/* Gradients and loss of one part of a step. */
static mha_status find_gradients(training *t, const batch *whole, const batch *pairs, int part)
{
    network_mode mode = training_mode(t, whole, part);
    network_loss loss;
    head_settings *heads = NULL;
    if (t->config.head_dropout > 0.0) {
        mode.heads = heads = drop_heads(t, pairs->pairs, part);
        if (!heads)
            return MHA_ERR_MEMORY;
    }
    mha_status status = network_forward(t->network, pairs, &mode, &loss);
    if (status == MHA_OK)
        status = network_backward(t->network, t->gradients);
    if (status == MHA_OK)
        t->gradients[t->count] = (float)(loss.sum / (double)mode.words);
    head_settings_free(heads);
    return status;
}

/* Part `leaf` of a step is computed and added to the sum. */
static mha_status add_part(training *t, const batch *whole, int leaf, int leaves)
{
    const int64_t pairs = whole->pairs;
    batch *const part =
        batch_part(whole, (int)(leaf * pairs / leaves), (int)((leaf + 1) * pairs / leaves));
    mha_status status = part ? find_gradients(t, whole, part, leaf) : MHA_ERR_MEMORY;
    if (status == MHA_OK && t->team)
        status = t->team->add(t->team->context, leaf, leaves, t->gradients, t->count + 1);
    else if (status == MHA_OK)
        gradient_sum_add(&t->sum, leaf, &t->gradients, t->pool);
    batch_free(part);
    return status;
}

/* The gradients of a step: the sum over its parts, of which a process of a team computes some. A
 * step with fewer pairs than micro-batches has fewer parts. */
static mha_status sum_gradients(training *t, const batch *whole)
{
    const int most = t->config.micro_batches;
    const int leaves = whole->pairs < most ? whole->pairs : most;
    const int rank = t->team ? t->team->rank : 0, ranks = t->team ? t->team->ranks : 1;
    mha_status status = update_network(t, t->values);
    if (leaves == 1 && !t->team)
        return status ? status : find_gradients(t, whole, whole, 0);
    gradient_sum_begin(&t->sum);
    for (int n = (int)((int64_t)rank * leaves / ranks);
         n < (int)((int64_t)(rank + 1) * leaves / ranks) && status == MHA_OK; n++)
        status = add_part(t, whole, n, leaves);
    if (t->team)
        return t->team->finish(t->team->context, status, leaves, t->gradients, t->count + 1);
    if (status == MHA_OK)
        gradient_sum_finish(&t->sum, &t->gradients, t->pool);
    return status;
}

/* The batch of the next step, and memory for its loss: nothing can fail after the parameters have
 * changed. */
static mha_status prepare_step(training *t, batch **pairs)
{
    *pairs = NULL;
    if (training_reserve(t, (size_t)t->step + 1, t->mark_count))
        *pairs = t->data->step(t->data, &t->config, t->step);
    return *pairs ? MHA_OK : MHA_ERR_MEMORY;
}

mha_status training_step(training *t, training_result *result)
{
    batch *pairs;
    mha_status status = prepare_step(t, &pairs);
    if (status == MHA_OK)
        status = sum_gradients(t, pairs);
    else if (t->team)
        status = t->team->finish(t->team->context, status, 1, t->gradients, t->count + 1);
    if (status == MHA_OK) {
        *result = (training_result){
            .loss = (double)t->gradients[t->count],
            .gradient_norm = optimizer_step(&t->optimizer, &t->config, t->step, t->gradients,
                                            t->values, t->pool),
            .learning_rate = optimizer_rate(&t->config, t->step),
            .tokens = pairs->rows[TRANSFORMER_SOURCE] + pairs->rows[TRANSFORMER_TARGET],
            .items = pairs->pairs,
        };
        t->losses[t->step++] = (float)result->loss;
        t->network_values = NULL;
        training_update_average(t);
    }
    batch_free(pairs);
    return status;
}

/* FNV-1a over what must be the same in all processes. */
static uint64_t identity(const training *t)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ t->data->hash ^ (uint64_t)t->step << 32;
    char text[TRAINING_TEXT_MAX];
    for (int n = 0; n < TRAINING_SETTINGS; n++) {
        training_setting_text(&t->config, n, text);
        for (const char *at = text; *at; at++)
            hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    }
    for (size_t n = 0; n < t->count; n++) {
        uint32_t bits;
        memcpy(&bits, &t->values[n], sizeof bits);
        hash = (hash ^ bits) * UINT64_C(0x100000001b3);
    }
    return hash;
}

mha_status training_join(training *t, const training_team *team)
{
    int nothing = 0;
    t->team = team;
    return team->agree(team->context, &nothing, identity(t));
}

/* ------------------------------------------------------------ evaluate ----- */

/* Adds loss and right words of sentences [first, first + count) to `all`; `outputs`, or NULL,
 * receives what the queries of a detector say. */
static mha_status evaluate_some(training *t, corpus_split split, int64_t first, int count,
                                float *outputs, network_loss *all)
{
    const network_mode plain = {.detection = t->config.detection, .outputs = outputs};
    network_loss loss;
    batch *const pairs = t->data->some(t->data, &t->config, split, first, count);
    if (!pairs)
        return MHA_ERR_MEMORY;
    const mha_status status = network_forward(t->network, pairs, &plain, &loss);
    if (status == MHA_OK) {
        all->sum += loss.sum;
        all->words += loss.words;
        all->right += loss.right;
        all->whole += loss.whole;
    }
    batch_free(pairs);
    return status;
}

/* All sentences [0, count); `outputs` as above, of all of them. */
static mha_status evaluate_all(training *t, corpus_split split, int64_t count, float *outputs,
                               network_loss *all)
{
    const int64_t queries = t->config.model.positions;
    mha_status status = update_network(t, training_values(t));
    for (int64_t first = 0; first < count && status == MHA_OK; first += EVALUATED_AT_ONCE) {
        const int64_t left = count - first;
        status = evaluate_some(
            t, split, first, (int)(left < EVALUATED_AT_ONCE ? left : EVALUATED_AT_ONCE),
            outputs ? outputs + first * queries * transformer_outputs(&t->config.model) : NULL,
            all);
    }
    return status;
}

/* The loss of a detector, and the judgement of the data. */
static mha_status evaluate_detector(training *t, corpus_split split, int64_t count,
                                    training_score *score)
{
    const size_t queries = (size_t)count * (size_t)t->config.model.positions;
    network_loss all = {.words = 0};
    float *const outputs =
        malloc(queries * (size_t)transformer_outputs(&t->config.model) * sizeof *outputs);
    double share = 0.0;
    mha_status status = outputs ? evaluate_all(t, split, count, outputs, &all) : MHA_ERR_MEMORY;
    if (status == MHA_OK)
        status = t->data->judge(t->data, &t->config, split, count, outputs, &share);
    if (status == MHA_OK)
        *score = (training_score){all.sum / (double)all.words, share, share, all.words};
    free(outputs);
    return status;
}

mha_status training_evaluate(training *t, corpus_split split, int64_t count, training_score *score)
{
    network_loss all = {.words = 0};
    if (t->config.model.form == FORM_DETECTION && count > 0)
        return evaluate_detector(t, split, count, score);
    const mha_status status = evaluate_all(t, split, count, NULL, &all);
    if (status == MHA_OK && all.words > 0)
        *score =
            (training_score){all.sum / (double)all.words, (double)all.right / (double)all.words,
                             (double)all.whole / (double)count, all.words};
    return status == MHA_OK && all.words == 0 ? MHA_ERR_LENGTH : status;
}

mha_status training_validate(training *t, int64_t count, training_score *score)
{
    const int64_t most = t->data->valid;
    if (!training_reserve(t, (size_t)t->step, t->mark_count + 1))
        return MHA_ERR_MEMORY;
    const mha_status status =
        training_evaluate(t, CORPUS_VALID, most > 0 && count > most ? most : count, score);
    if (status == MHA_OK)
        t->marks[t->mark_count++] =
            (training_mark){t->step, score->loss, score->words_right, NAN, NAN};
    return status;
}

void training_mark_translations(training *t, double bleu, double chrf)
{
    if (t->mark_count > 0) {
        t->marks[t->mark_count - 1].bleu = bleu;
        t->marks[t->mark_count - 1].chrf = chrf;
    }
}

/* The number of the validation with the lowest loss; the first of equals. */
static size_t best_mark(const training *t)
{
    size_t best = 0;
    for (size_t n = 1; n < t->mark_count; n++)
        if (t->marks[n].loss < t->marks[best].loss)
            best = n;
    return best;
}

bool training_is_best(const training *t)
{
    return t->mark_count > 0 && best_mark(t) == t->mark_count - 1;
}

bool training_is_exhausted(const training *t)
{
    return t->config.patience > 0 && t->mark_count > 0 &&
           t->mark_count - 1 - best_mark(t) >= (size_t)t->config.patience;
}
