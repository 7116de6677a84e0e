/* SPDX-License-Identifier: MIT */
/* Private: the training object, for training.c and training_file.c. */
#ifndef TRANSLATOR_TRAINING_PARTS_H
#define TRANSLATOR_TRAINING_PARTS_H

#include "translator/network.h"
#include "translator/optimizer.h"

struct training {
    training_config config;
    char isa[TRAINING_TEXT_MAX]; /* of the file it was loaded from */
    mha_pool *pool;
    word_numbers numbers;
    int64_t step; /* steps done */
    size_t count; /* parameters */
    float *values, *gradients;
    optimizer optimizer;
    network *network;
    bool network_stale; /* values have changed since the last network_update() */
    float *losses;      /* [step] */
    size_t loss_room;
    training_mark *marks;
    size_t mark_count, mark_room;
};

/* Allocates a training of a checked configuration, with parameters and moments of 0 and without a
 * network. Returns NULL if out of memory. */
training *training_allocate(const training_config *config, mha_pool *pool);

/* Creates the network, after the values have been set. Returns false if out of memory. */
bool training_start(training *training);

/* Makes room for the given numbers of losses and marks. Returns false if out of memory. */
bool training_reserve(training *training, size_t losses, size_t marks);

#endif
