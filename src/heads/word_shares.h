/* SPDX-License-Identifier: MIT */
/*
 * What the logit of one word is the sum of (direct logit attribution): the residual stream of a row
 * is the sum of the embedding and of what every part adds, and the output matrix is linear, so the
 * logit falls into a share for each head, each feed-forward, the embedding and the biases.
 *
 *      logit(w) = u_w . N(x),   x = e + sum of W_O o_h + sum of b_O + sum of feed-forwards
 *      share of a head = G (W_O o_h),   G = the derivative of u_w . N with all deviations held
 *
 * N are the norms on the way: the last one of a model whose norms come before its parts, or those
 * after every part. A norm divides by a deviation that depends on all shares. It is held at its
 * value in this run, so the shares add up to the logit exactly (to rounding), but taking a part
 * away would also change the deviations, and what later parts compute: that effect is measured by
 * disabling the head. The logit of a word is its own minus the mean of all words; that does not
 * change what the softmax says.
 */
#ifndef HEADS_WORD_SHARES_H
#define HEADS_WORD_SHARES_H

#include "heads/subject.h"

typedef struct word_shares {
    int row, word;
    double logit;                    /* the model's */
    double sum;                      /* of all shares: the logit, but for rounding and a soft cap */
    double embedded;                 /* the embedding with its position */
    double norms;                    /* biases of norms */
    double output;                   /* the bias of the output matrix */
    int layers, heads_per_layer;     /* of the decoder */
    double *heads[ATTENTION_KINDS];  /* [layers][heads]; NULL: the kind is not part of the stream */
    double *biases[ATTENTION_KINDS]; /* [layers] of b_O */
    double *feed_forward;            /* [layers] */
} word_shares;

/* Takes a word apart; `run` has its vectors and its stream. MHA_ERR_FLAG: the logits of the model
 * are not the output matrix times its stream; MHA_ERR_DTYPE: its matrices cannot be read;
 * MHA_ERR_MEMORY. word_shares_free() either way. */
mha_status word_shares_make(word_shares *shares, const subject *model, const capture *run, int row,
                            int word);
void word_shares_free(word_shares *shares);

#endif
