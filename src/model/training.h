/* SPDX-License-Identifier: MIT */
/*
 * A translator learns. One training is one object: parameters, the optimizer's moments, and the
 * number of the step. Everything it does follows from its configuration: the same configuration
 * gives the same bits for any number of threads, and whether it was stopped and resumed or not.
 *
 *      training_config   what decides, and by which names              training_config.c
 *      training_step()   sentences step*batch ... -> packed batch      batch.c
 *                        forward and backward                          network*.c
 *                        clip, AdamW                                   optimizer.c
 *      training_save()   all of it to a file, and back                 training_file.c
 */
#ifndef MODEL_TRAINING_H
#define MODEL_TRAINING_H

#include "corpus/corpus.h"
#include "model/transformer.h"

/* ------------------------------------------------------- configuration ----- */

typedef struct training_config {
    transformer_config model;
    uint64_t seed;        /* of corpus, parameters and dropout */
    int64_t steps;        /* length of the schedule */
    int batch;            /* sentence pairs a step */
    int64_t pairs;        /* different training sentences, then the same again; 0: ever new ones */
    int64_t warm_up;      /* steps of rising learning rate, then it falls as a cosine to 1 % */
    double learning_rate; /* at its highest */
    double beta1, beta2, epsilon, weight_decay; /* AdamW; decay on matrices, not on norms, biases,
                                                 * embeddings */
    double clip;                                /* largest norm of the gradient; 0: no limit */
    double dropout;         /* on attention weights, on what parts add, on embeddings */
    double label_smoothing; /* share of the target that is spread over all words */
    double unknown;         /* share of sentences in which one word and its translation become
                             * WORD_UNKNOWN */
} training_config;

/* The settings that make the translator we ship; words and positions are the corpus's. */
training_config training_defaults(void);

/* False, with a sentence that says what is wrong. */
bool training_config_check(const training_config *config, char message[TRANSFORMER_MESSAGE_MAX]);

/* The settings by number, [0, TRAINING_SETTINGS): "width", "heads", "lr" and so on, with values as
 * text that gives back the same bits. */
enum { TRAINING_SETTINGS = 22, TRAINING_TEXT_MAX = 32 };
const char *training_setting_name(int number);
int training_setting_find(const char *name); /* -1: there is none */
void training_setting_text(const training_config *config, int number, char text[TRAINING_TEXT_MAX]);
/* False for a text that is no number of the setting's kind; `config` is then as it was. */
bool training_setting_read(training_config *config, int number, const char *text);

/* ------------------------------------------------------------ training ----- */

typedef struct training training;

/* NULL on bad configuration or without memory, with a sentence in `message`. */
training *training_create(const training_config *config, mha_pool *pool,
                          char message[TRANSFORMER_MESSAGE_MAX]);
void training_free(training *training);

const training_config *training_get_config(const training *training);
const float *training_values(const training *training); /* parameters, as the map says */
int64_t training_steps_done(const training *training);

typedef struct training_result {
    double loss;          /* mean negative log-likelihood of a target word, nats, label smoothing
                           * left out */
    double gradient_norm; /* before clipping */
    double learning_rate;
    int64_t tokens; /* of both sides */
} training_result;

/* One step. An error leaves the training as it was. A gradient that is not finite changes no
 * parameter; the step counts nevertheless. */
mha_status training_step(training *training, training_result *result);

/* Loss and share of words right (each after the true ones before it) on sentences [0, count) of a
 * split, no dropout. */
typedef struct training_score {
    double loss, words_right;
    int64_t words;
} training_score;
mha_status training_evaluate(training *training, corpus_split split, int64_t count,
                             training_score *score);

/* ------------------------------------------------------------- history ----- */

/* training_evaluate() on the validation split, remembered. */
mha_status training_validate(training *training, int64_t count, training_score *score);

typedef struct training_mark {
    int64_t step; /* steps done then */
    double loss, words_right;
} training_mark;

/* How it went so far; goes with the training into its file. Valid until the next step or
 * validation. */
typedef struct training_history {
    const float *losses; /* [steps done] */
    const training_mark *marks;
    size_t mark_count;
} training_history;
training_history training_get_history(const training *training);

/* ---------------------------------------------------------------- file ----- */

/* Everything, so that a resumed training goes on to the bit; safetensors, replaced in one go.
 * Loading gives NULL and a sentence for a file that is damaged or of another kind. */
#define TRAINING_FORMAT "mha training 1" /* its "format" */
mha_status training_save(const training *training, const char *path,
                         char message[TRANSFORMER_MESSAGE_MAX]);
training *training_load(const char *path, mha_pool *pool, char message[TRANSFORMER_MESSAGE_MAX]);

/* The instruction set that made the file a training was loaded from, as mha_isa_name() has it: on
 * another one it goes on with other bits. "" for one that was not loaded. */
const char *training_loaded_isa(const training *training);

#endif
