/* SPDX-License-Identifier: MIT */
/* The sentences of the grammar as the data of a training. */
#include <stdlib.h>

#include "translator/training_data.h"

static batch *grammar_step(training_data *data, const training_config *c, int64_t step)
{
    const grammar_data *const grammar = (const grammar_data *)data;
    uint64_t *const indices = calloc((size_t)c->batch, sizeof *indices);
    if (!indices)
        return NULL;
    for (int n = 0; n < c->batch; n++) {
        const uint64_t index = (uint64_t)step * (uint64_t)c->batch + (uint64_t)n;
        indices[n] = c->sentences > 0 ? index % (uint64_t)c->sentences : index;
    }
    batch *const made =
        batch_create(&grammar->numbers, c->seed, CORPUS_TRAIN, indices, c->batch, c->unknown);
    free(indices);
    return made;
}

static batch *grammar_some(training_data *data, const training_config *c, corpus_split split,
                           int64_t first, int count)
{
    const grammar_data *const grammar = (const grammar_data *)data;
    uint64_t *const indices = calloc((size_t)count, sizeof *indices);
    if (!indices)
        return NULL;
    for (int n = 0; n < count; n++)
        indices[n] = (uint64_t)(first + n);
    batch *const made = batch_create(&grammar->numbers, c->seed, split, indices, count, 0.0);
    free(indices);
    return made;
}

static uint64_t hash_words(const word_numbers *numbers)
{
    uint64_t hash = 0;
    for (int side = 0; side < CORPUS_SIDES; side++)
        for (int n = 0; n < numbers->side[side].count; n++)
            hash = corpus_hash(hash, numbers->side[side].words[n]);
    return hash;
}

void grammar_data_init(grammar_data *data)
{
    data->base = (training_data){.step = grammar_step, .some = grammar_some};
    word_numbers_fill(&data->numbers);
    data->base.hash = hash_words(&data->numbers);
}
