/* SPDX-License-Identifier: MIT */
/* Real sentence pairs as the data of a training: all pairs as token ids, and the order in which the
 * training sees them (pair_order.h). */
#ifndef TRANSLATOR_TEXT_DATA_H
#define TRANSLATOR_TEXT_DATA_H

#include <mha/mha_model.h>

#include "translator/pair_file.h"
#include "translator/training_data.h"

/* What became of the pairs of a file. */
typedef struct text_counts {
    int64_t pairs, too_long; /* used; with more tokens than the model has positions */
    int64_t tokens[TRANSFORMER_SIDES];
} text_counts;

typedef struct text_data text_data;

/*
 * Converts the pairs of both files to ids of the tokenizer. A side may have up to `positions` - 1
 * tokens; longer pairs are left out and counted. Returns MHA_ERR_LENGTH if no pair of a file is
 * left; *data is then NULL. counts[0] is for training, counts[1] for validation. The training file
 * and the tokenizer must stay valid as long as the data: with BPE-dropout or replaced words a pair
 * has other tokens in every epoch.
 */
mha_status text_data_create(text_data **data, const pair_file *train, const pair_file *valid,
                            const mha_tokenizer *tokenizer, int positions, mha_pool *pool,
                            text_counts counts[2]);
void text_data_free(text_data *data);

/* The data as a training uses it. */
training_data *text_data_base(text_data *data);

#endif
