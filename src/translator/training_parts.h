/* SPDX-License-Identifier: MIT */
/* Private: the training object, for the files training*.c. */
#ifndef TRANSLATOR_TRAINING_PARTS_H
#define TRANSLATOR_TRAINING_PARTS_H

#include "translator/gradient_sum.h"
#include "translator/network.h"
#include "translator/optimizer.h"
#include "translator/training_data.h"

struct training {
    training_config config;
    char isa[TRAINING_TEXT_MAX]; /* of the file it was loaded from */
    mha_pool *pool;
    training_data *data;
    grammar_data grammar; /* the data, if no other is given */
    int64_t step;         /* steps done */
    size_t count;         /* parameters */
    float *values;
    float *gradients; /* [count + 1]; the last is the loss, which is summed as they are */
    gradient_sum sum;
    const training_team *team; /* NULL: alone */
    float *average;            /* of the values over time; NULL: not configured */
    optimizer optimizer;
    network *network;
    const float *network_values; /* those of the last network_update(); NULL: changed since then */
    float *losses;               /* [step] */
    size_t loss_room;
    training_mark *marks;
    size_t mark_count, mark_room;
};

/* Allocates a training of a checked configuration, with parameters and moments of 0 and without a
 * network. Returns NULL if out of memory. */
training *training_allocate(const training_config *config, training_data *data, mha_pool *pool);

/* Creates the network, after the values have been set. Returns false if out of memory. */
bool training_start(training *training);

/* Adds the values to the average after a step, if it is due. */
void training_update_average(training *training);
/* Whether the average has begun. */
bool training_has_average(const training *training);

/* Makes room for the given numbers of losses and marks. Returns false if out of memory. */
bool training_reserve(training *training, size_t losses, size_t marks);

#endif
