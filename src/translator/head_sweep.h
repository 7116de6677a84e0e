/* SPDX-License-Identifier: MIT */
/*
 * The number of heads as a hyper-parameter: trainings that differ in nothing else. One training of
 * the laboratory is measured by its losses on held-out and on training sentences, by the sentences
 * it translates exactly, and by its learning curve.
 *
 *      head_sweep.c     one training and its measurements
 *      sweep_table.c    the results of many, as a CSV file and back
 *      sweep_summary.c  means over seeds, and differences between numbers of heads
 *
 * Trainings with the same seed and data begin with the same parameters and see the same sentences
 * in the same order, whatever their heads are: their difference is that of the heads.
 */
#ifndef TRANSLATOR_HEAD_SWEEP_H
#define TRANSLATOR_HEAD_SWEEP_H

#include "translator/training.h"

enum { SWEEP_POINTS_MAX = 200 };

/* What all trainings have in common. */
typedef struct sweep_settings {
    training_config config; /* but for heads, seed and sentences */
    int64_t evaluate;       /* sentences of every measurement */
    int points;             /* validations of a training, at most its steps; the last at its end */
} sweep_settings;

/* Which training it is. */
typedef struct sweep_key {
    int64_t data; /* different sentence pairs; 0: always new ones */
    int heads;
    uint64_t seed;
} sweep_key;

typedef struct sweep_result {
    sweep_key key;
    double train_loss;              /* on training sentences, without dropout */
    double words_right;             /* share of the words of held-out sentences */
    double exact;                   /* share of held-out sentences that are translated exactly */
    double valid[SWEEP_POINTS_MAX]; /* losses on held-out sentences, at sweep_step() */
} sweep_result;

/* The number of steps done at validation `point` of [0, points). */
int64_t sweep_step(const sweep_settings *settings, int point);

/* The configuration of one training. */
training_config sweep_config(const sweep_settings *settings, const sweep_key *key);

/* Called after every step with the steps done; false ends the training. May be NULL. */
typedef struct sweep_watch {
    bool (*step)(void *context, int64_t done);
    void *context;
} sweep_watch;

typedef enum sweep_end { SWEEP_DONE, SWEEP_STOPPED, SWEEP_FAILED } sweep_end;

/* Trains and measures. SWEEP_STOPPED: the watch ended it. SWEEP_FAILED: the reason is in `message`;
 * a loss that is not finite is one. The same bits for any number of threads. */
sweep_end sweep_train(const sweep_settings *settings, const sweep_key *key, mha_pool *pool,
                      const sweep_watch *watch, sweep_result *result,
                      char message[TRANSFORMER_MESSAGE_MAX]);

#endif
