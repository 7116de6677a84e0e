/* SPDX-License-Identifier: MIT */
/*
 * Training of a translator, or of a model of pictures. One training is one object: parameters,
 * the optimizer's moments, and the number of steps done. The configuration determines everything:
 * the same configuration gives the same bits for any number of threads, and whether or not the
 * training was stopped and resumed.
 *
 *      training_config   all settings, also by name                    training_config.c
 *      training_data     pairs, from the grammar or files; pictures    training_data.h
 *      training_step()   the pairs of a step -> packed batch           batch.c
 *                        forward and backward                          network*.c
 *                        sum over micro-batches                        gradient_sum.c
 *                        clip, AdamW                                   optimizer.c
 *      training_save()   all of it to a file, and back                 training_file.c
 */
#ifndef TRANSLATOR_TRAINING_H
#define TRANSLATOR_TRAINING_H

#include "corpus/corpus.h"
#include "translator/box.h"
#include "translator/transformer.h"

typedef struct training_data training_data; /* training_data.h */

/* ------------------------------------------------------- configuration ----- */

/* After the warm-up: half a cosine down to 1 %, or in proportion to 1/sqrt(step). */
typedef enum training_schedule {
    SCHEDULE_COSINE,
    SCHEDULE_INVERSE_SQRT,
    SCHEDULES
} training_schedule;

/* Of attention_dropout, which files from before there was a choice do not name. */
#define TRAINING_AS_DROPOUT (-1.0)

typedef struct training_config {
    transformer_config model;
    uint64_t seed;              /* of corpus, parameters and dropout */
    int64_t steps;              /* length of the schedule */
    int batch;                  /* sentence pairs per step; laboratory. Pictures per step */
    int batch_tokens;           /* target tokens per step at most, without marks; files */
    int micro_batches;          /* parts of a step, computed one after another, or by several
                                 * processes; their gradients are added along one tree */
    int64_t sentences;          /* different training sentences, which repeat; 0: always new ones */
    int64_t warm_up;            /* steps of rising learning rate, then it falls */
    double learning_rate;       /* its maximum */
    training_schedule schedule; /* how it falls */
    double beta1, beta2, epsilon, weight_decay; /* AdamW; decay on matrices, not on norms, biases,
                                                 * embeddings */
    double clip;                                /* largest norm of the gradient; 0: no limit */
    double attention_gain;    /* of the first values of queries', keys' and values' matrices */
    double dropout;           /* on outputs of parts, embeddings */
    double attention_dropout; /* on attention weights; TRAINING_AS_DROPOUT: the same */
    double head_dropout;      /* of whole heads, per sentence */
    double bpe_dropout;       /* of merges, so that words have more than one division; files */
    double copy;              /* share of pairs in which a name or number is replaced; files */
    double numbers;           /* share of these names that become numbers; files */
    double join;              /* share of pairs that are joined with another one; files */
    double bare;              /* share of pairs without their final marks; files */
    double label_smoothing;   /* share of the target that is spread over all words */
    double ema;               /* decay of the moving average of parameters; 0: none */
    int average;              /* the mean of this many points at the end is the result; 0: none */
    int64_t average_every;    /* steps between these points */
    int patience;   /* validations without a lower loss until training ends; 0: no limit */
    double unknown; /* share of sentences in which one word and its translation become
                     * WORD_UNKNOWN */
    int crop;       /* pictures: pixels by which they are moved at most, in both directions */
    double flip;    /* pictures: share that is mirrored left to right */
    double erase;   /* pictures: share of which a rectangle is replaced by noise */
    double mix_up;  /* pictures: two are mixed by shares of the distribution Beta(x, x); 0: none */
    detection_weights detection; /* detectors: parts of the loss */
    mha_arithmetic arithmetic; /* of products with matrices, forward and backward: exact, or native
                                * in bf16; parameters, moments and sums are f32 */
} training_config;

/* The settings of the shipped laboratory; words and positions are those of the corpus. And those
 * for files of pairs; the words are those of their tokenizer. */
training_config training_defaults(void);
training_config training_text_defaults(void);
/* Those for pictures: Fashion-MNIST. */
training_config training_vision_defaults(void);
/* Those for captions; words and positions are those of the data. And for detectors; classes are
 * those of the data. */
training_config training_caption_defaults(void);
training_config training_detection_defaults(void);

/* Returns false, with the reason in `message`, for an invalid configuration. */
bool training_config_check(const training_config *config, char message[TRANSFORMER_MESSAGE_MAX]);

/* The settings by number, [0, TRAINING_SETTINGS): "width", "heads", "lr" and so on, with values as
 * text from which the same bits can be read. */
enum { TRAINING_SETTINGS = 53, TRAINING_TEXT_MAX = 32 };
const char *training_setting_name(int number);
int training_setting_find(const char *name); /* -1: there is none */
void training_setting_text(const training_config *config, int number, char text[TRAINING_TEXT_MAX]);
/* Returns false, and leaves `config` unchanged, if the text is not a number of the right kind. */
bool training_setting_read(training_config *config, int number, const char *text);
/* Whether files name this setting: all are, except for those of pictures and of detectors where
 * there are none, positions of detectors, which have queries, exact arithmetic, one micro-batch, a
 * gain of 1, one dropout for all, and no numbers for names, joined or bare pairs, which files from
 * before there was a choice do not name either. */
bool training_setting_is_recorded(const training_config *config, int number);

/* ------------------------------------------------------------ training ----- */

typedef struct training training;

/* `data` must stay valid until training_free(); NULL: the grammar of the laboratory. Returns NULL,
 * with the reason in `message`, for an invalid configuration or if out of memory. */
training *training_create(const training_config *config, training_data *data, mha_pool *pool,
                          char message[TRANSFORMER_MESSAGE_MAX]);
/* The same, but the parameters begin with these values, in the order of the map, instead of random
 * ones. They are copied. */
training *training_create_from(const training_config *config, const float *values,
                               training_data *data, mha_pool *pool,
                               char message[TRANSFORMER_MESSAGE_MAX]);
void training_free(training *training);

const training_config *training_get_config(const training *training);
/* The parameters of the result so far, in the order of the map: averaged, if that is configured and
 * has begun. */
const float *training_values(const training *training);
int64_t training_steps_done(const training *training);

typedef struct training_result {
    double loss;          /* mean negative log-likelihood per target word in nats, without label
                           * smoothing */
    double gradient_norm; /* before clipping */
    double learning_rate;
    int64_t tokens; /* of both sides; pictures: of the patches and marks */
    int64_t items;  /* sentence pairs or pictures */
} training_result;

/* Makes one step. An error leaves the training unchanged. If the gradient is not finite, no
 * parameter changes, but the step counts. */
mha_status training_step(training *training, training_result *result);

/*
 * Processes that train together. Each has the same training, computes some micro-batches of every
 * step, and gets the sum of all gradients; so all have the same bits as one process alone.
 *
 *      add      takes a copy of the gradients of micro-batch `leaf` of `leaves`
 *      finish   called by all at the end of a step: what one process refuses (`mine`), all refuse,
 *               with one code; else `total` is the sum, in the order of gradient_sum.h
 *      agree    called by all: *number, from 0 on, becomes that of the process of lowest rank that
 *               has another than 0; MHA_ERR_AGREE if `same` is not the same everywhere
 */
typedef struct training_team {
    int rank, ranks;
    void *context; /* the first argument of the functions */
    mha_status (*add)(void *context, int leaf, int leaves, const float *data, size_t count);
    mha_status (*finish)(void *context, mha_status mine, int leaves, float *total, size_t count);
    mha_status (*agree)(void *context, int *number, uint64_t same);
} training_team;

/* From now on steps are made with others; all processes call it, and must have the same settings,
 * pairs, parameters and number of steps done: MHA_ERR_AGREE. `team` must stay valid. */
mha_status training_join(training *training, const training_team *team);

/* Loss and share of right words (each predicted from the true words before it) of training_values()
 * on sentences [0, count) of a split, without dropout; and the share of sentences of which all
 * words are right, which a greedy search then says. Of a detector both shares are what the data
 * says of it, its average precision. MHA_ERR_LENGTH if count is 0. */
typedef struct training_score {
    double loss, words_right, whole_right;
    int64_t words;
} training_score;
mha_status training_evaluate(training *training, corpus_split split, int64_t count,
                             training_score *score);

/* ------------------------------------------------------------- history ----- */

/* training_evaluate() on the validation split, of which at most `count` sentences are used; the
 * result is added to the history. */
mha_status training_validate(training *training, int64_t count, training_score *score);

typedef struct training_mark {
    int64_t step; /* steps done at that time */
    double loss, words_right;
    double bleu, chrf; /* of translations; NaN: not measured */
} training_mark;

/* Adds BLEU and chrF, from 0 to 100, to the last validation. */
void training_mark_translations(training *training, double bleu, double chrf);

/* Whether the last validation has the lowest loss of all. */
bool training_is_best(const training *training);
/* Whether `patience` validations in a row were not better than the best one before them. */
bool training_is_exhausted(const training *training);

/* Losses and validations so far; they are part of the checkpoint. Valid until the next step or
 * validation. */
typedef struct training_history {
    const float *losses; /* [steps done] */
    const training_mark *marks;
    size_t mark_count;
} training_history;
training_history training_get_history(const training *training);

/* ---------------------------------------------------------------- file ----- */

/* Saves the complete state, so that a resumed training gives the same bits; the file is safetensors
 * and replaced atomically. training_load() returns NULL, with a message, for a file that is damaged
 * or of another kind. */
#define TRAINING_FORMAT "mha training 2" /* its "format" */
mha_status training_save(const training *training, const char *path,
                         char message[TRANSFORMER_MESSAGE_MAX]);
training *training_load(const char *path, training_data *data, mha_pool *pool,
                        char message[TRANSFORMER_MESSAGE_MAX]);

/* The instruction set on which the bits of this training depend: mha_isa_base(), or mha_isa_name()
 * in native arithmetic. And the one with which the loaded checkpoint was made: with another one the
 * training continues with different bits. "" if the training was not loaded. */
const char *training_isa(const training *training);
const char *training_loaded_isa(const training *training);

#endif
