/* SPDX-License-Identifier: MIT */
/*
 * Where the sentence pairs of a training come from: the grammar of the laboratory (grammar_data.c),
 * files of real pairs (text_data.c), or pictures, which belong to another room. Which pairs a step
 * sees follows from the configuration and the number of the step alone.
 */
#ifndef TRANSLATOR_TRAINING_DATA_H
#define TRANSLATOR_TRAINING_DATA_H

#include "translator/batch.h"
#include "translator/training.h"

struct training_data {
    /* The batch of a step, for batch_free(). Returns NULL if out of memory. */
    batch *(*step)(training_data *data, const training_config *config, int64_t step);
    /* Pairs [first, first + count) of a split. NULL as above. */
    batch *(*some)(training_data *data, const training_config *config, corpus_split split,
                   int64_t first, int count);
    /* Detectors: how good what all queries of pictures [0, count) of a split say is, from 0 to 1,
     * outputs[count * queries][transformer_outputs()]. */
    mha_status (*judge)(training_data *data, const training_config *config, corpus_split split,
                        int64_t count, const float *outputs, double *share);
    int64_t valid; /* pairs of the validation split; 0: as many as are requested */
    transformer_form form;
    uint64_t hash; /* of the vocabulary and of the pairs: a checkpoint belongs to these */
};

/* The sentences of the grammar: every step has new ones, unless the configuration limits them. */
typedef struct grammar_data {
    training_data base;
    word_numbers numbers;
} grammar_data;
void grammar_data_init(grammar_data *data);

#endif
