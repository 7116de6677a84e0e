/* SPDX-License-Identifier: MIT */
/*
 * One attention of a model on one text, step by step, with the feed-forward after it: every matrix
 * between the stream before the attention and the stream after the feed-forward. Queries, keys,
 * values, weights and outputs of its heads are in the capture of the same run (capture.h).
 *
 *      norm first:   input = norm(stream)      joined = stream + added
 *                    ff_input = norm(joined)   result = joined + ff_added
 *      norm after:   input = stream            joined = norm(stream + added)
 *                    ff_input = joined         result = norm(joined + ff_added)
 *
 * The decoder of a translator has no feed-forward after its self-attention: cross-attention comes
 * first.
 */
#ifndef HEADS_COMPUTATION_H
#define HEADS_COMPUTATION_H

#include "translator/head_settings.h"

/*
 * What is done with queries and keys after W_Q and W_K, in this order: the numbers of every head
 * are normed; pairs of them are rotated, pair n of the row at position p by p * angles[n]; and
 * queries get a factor, so that scores are q . k / sqrt(width of a head) in all models. All zero
 * but the factor 1: nothing.
 */
typedef struct head_turn {
    bool normed, neighbours; /* pairs are 2n and 2n + 1, else n and n + angle_count */
    double *angles;          /* [angle_count] in radians */
    int angle_count;
    double query_factor;
} head_turn;

/* Matrices that are not known, or that the model does not have, are NULL. [rows][width], if no
 * other shape is given. */
typedef struct computation {
    attention_kind kind; /* the caller sets kind and layer, which must exist */
    int layer;
    int rows, columns, width, inner; /* inner: of the feed-forward; 0: not known */
    bool norm_first;
    mha_norm norm; /* of the stream; its variances get norm_eps */
    float norm_eps;
    head_turn turn;
    float *words, *codes; /* of layer 0: embeddings and position codes, whose sum is the stream */
    float *stream;        /* before the attention */
    float *input;         /* what W_Q reads; in self-attention W_K and W_V, too */
    float *memory;        /* [columns][width] what W_K and W_V read in cross-attention */
    float *added;         /* what the attention computes */
    float *joined;        /* the stream after it */
    float *ff_input;
    float *inside; /* [rows][inner] after the activation */
    float *ff_added;
    float *result; /* the stream after the feed-forward */
} computation;

/* y = x W^T + bias. weight: [outputs][inputs]; NULL: it cannot be read. bias NULL: there is none.
 */
typedef struct linear_weights {
    int outputs, inputs;
    float *weight, *bias; /* of a norm, weight and bias have `outputs` elements */
} linear_weights;

/* The parameters of the same steps, which are those of any text. */
typedef struct computation_weights {
    attention_kind kind;
    int layer;
    linear_weights q, k, v, o, in, out, norm, ff_norm;
} computation_weights;

/* to[count] = a copy, for computation_free(). False: out of memory. */
bool computation_copy(float **to, const float *from, ptrdiff_t count);

void computation_free(computation *steps);
void computation_weights_free(computation_weights *weights);

#endif
