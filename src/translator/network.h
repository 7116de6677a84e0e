/* SPDX-License-Identifier: MIT */
/*
 * The transformer of transformer.h for training: forward and backward passes over packed batches.
 * Every sum has a fixed order, so the bits are the same for any number of threads.
 *
 *      network.c            creation, and update of the packed layers
 *      network_memory.c     memory for activations, calls of the layers
 *      network_forward.c    words -> loss; keeps what the backward pass needs
 *      network_backward.c   gradient of the loss -> gradients of all parameters
 *      network_vision.c     what only pictures need: patches, the token of the class, the mean
 *      network_detection.c  what only detectors need: matching, and the loss of boxes
 */
#ifndef TRANSLATOR_NETWORK_H
#define TRANSLATOR_NETWORK_H

#include "translator/batch.h"
#include "translator/head_settings.h"
#include "translator/row_math.h"

typedef struct network network;

/* Returns NULL if out of memory. `values` are the parameters in the order of the map; they
 * belong to the caller and are read until network_free() or network_update(). `pool` may be NULL.
 *
 * With MHA_NATIVE all products with matrices, forward and backward, are those of bf16: both factors
 * are rounded to it, sums are f32, and so is everything else. The values stay as they are. */
network *network_create(const transformer_config *config, const float *values,
                        mha_arithmetic arithmetic, mha_pool *pool);
void network_free(network *network);

/* Must be called after the parameters have changed, or to use others. After an error the network
 * must not be used until a call succeeds. */
mha_status network_update(network *network, const float *values);

typedef struct network_mode {
    bool training;            /* apply dropout, and keep what the backward pass needs */
    double dropout;           /* probability; on outputs of parts, embeddings */
    double attention_dropout; /* on attention weights */
    uint64_t dropout_seed;    /* of this step; every layer derives its own seed from it */
    double label_smoothing;   /* affects the gradient, not the reported loss */
    ptrdiff_t words;          /* whose mean the loss is, where the batch is a part of them; 0: the
                                 expected words of the batch */

    /* Gates and modes of the heads, and where the gradients of the gates go: for each sentence of
     * the batch, or one for all. In training there must be no modes. NULL: all heads unchanged. */
    const head_settings *heads;
    float *logits; /* [rows of the target] receives the logit of the expected word minus the mean
                      of all logits; or NULL */
    int *said;     /* [rows of the target] receives the most likely word, the first of equals; or
                      NULL */
    float *cross;  /* [decoder layers][pairs][heads][longest of the target][longest of the source]
                      receives the weights of cross-attention, not in training; or NULL */
    detection_weights detection; /* FORM_DETECTION */
    float *outputs;              /* FORM_DETECTION: [rows of the target][transformer_outputs()]
                                    receives what each query says; or NULL */
} network_mode;

typedef struct network_loss {
    double sum;    /* negative log-likelihood of all expected words, in nats; where pictures are
                      mixed, of both classes by their shares; of a detector, the loss of all
                      queries (network_detection.c) */
    int64_t words; /* expected words, or queries */
    int64_t right; /* expected words that are the most likely ones, or right classes of queries */
    int64_t whole; /* pairs of which all words are: what a greedy search says is the same */
} network_loss;

/* Runs the forward pass. The batch must stay valid until network_backward(). MHA_ERR_SHAPE: the
 * batch is empty or a sentence is too long for the model. MHA_ERR_INDEX: a word is not in the
 * model's vocabulary. */
mha_status network_forward(network *network, const batch *pairs, const network_mode *mode,
                           network_loss *loss);

/* The score of every row of the target in the last forward pass. */
const row_score *network_scores(const network *network);

/* Writes the gradients of the mean loss per word (label smoothing included; mode.words) of the last
 * forward pass, in the order of the map. MHA_ERR_FLAG if that pass was not in training mode. */
mha_status network_backward(network *network, float *gradients);

#endif
