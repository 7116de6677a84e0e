/* SPDX-License-Identifier: MIT */
/*
 * The transformer of transformer.h, forward and backward on packed batches. Every sum has one
 * order: the same bits for any number of threads.
 *
 *      network.c            made and kept up to date: packed layers
 *      network_memory.c     memory for activations, calls of the layers
 *      network_forward.c    words -> loss; what backward needs stays in the network
 *      network_backward.c   the same way back -> gradients
 */
#ifndef MODEL_NETWORK_H
#define MODEL_NETWORK_H

#include "model/batch.h"
#include "model/head_settings.h"
#include "model/row_math.h"

typedef struct network network;

/* NULL: no memory. `values` are the parameters, as the map says: they stay the caller's, and are
 * read until network_free() or until others take their place. */
network *network_create(const transformer_config *config, const float *values, mha_pool *pool);
void network_free(network *network);

/* After the parameters have changed, or with others. After an error the network is of no use until
 * this has worked. */
mha_status network_update(network *network, const float *values);

typedef struct network_mode {
    bool training;          /* keep what backward needs, drop out */
    double dropout;         /* probability; on attention weights, parts' outputs, embeddings */
    uint64_t dropout_seed;  /* of this step: other places and layers derive theirs from it */
    double label_smoothing; /* of the gradient, not of the loss that is told */

    /* How the heads work, and where gradients of their gates go: of `pairs` sentences, or of one
     * that stands for all. Without modes in training. NULL: all plain. */
    const head_settings *heads;
    float *logits; /* [rows of the target]: of the expected word, less the mean of all; or NULL */
} network_mode;

typedef struct network_loss {
    double sum;    /* negative log-likelihood of all expected words, nats */
    int64_t words; /* expected words */
    int64_t right; /* those that are the most likely of all */
} network_loss;

/* The batch is read again by network_backward(). MHA_ERR_SHAPE for one without sentences or with
 * one that is too long for the model, MHA_ERR_INDEX for a word the model does not have. */
mha_status network_forward(network *network, const batch *pairs, const network_mode *mode,
                           network_loss *loss);

/* Of every row of the target in the last forward pass. */
const row_score *network_scores(const network *network);

/* Gradients of the mean loss a word (label smoothing included) of the last forward pass, which was
 * one in training (else MHA_ERR_FLAG), to all parameters; written, not added to. */
mha_status network_backward(network *network, float *gradients);

#endif
