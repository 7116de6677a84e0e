/* SPDX-License-Identifier: MIT */
/*
 * What a model loses when heads are changed.
 *
 * The decoder reads the right words and is asked for the next. A sentence is exact if all words
 * are right, its end included: a greedy search then finds it, since every prefix is right.
 */
#ifndef HEADS_HEAD_EVAL_H
#define HEADS_HEAD_EVAL_H

#include "heads/head_pairs.h"
#include "model/network.h"

typedef struct head_eval head_eval;

/* NULL: no memory, or sentences that the model cannot read. The model must outlive it. */
head_eval *head_eval_create(const translator *model, const head_pair *pairs, int count,
                            mha_pool *pool);
void head_eval_free(head_eval *eval);

typedef struct head_loss {
    double loss; /* negative log-likelihood of the words, nats */
    int words, right;
} head_loss;

/* Of each sentence. settings: of one sentence that stands for all; NULL: plain. logits: [words in
 * all], as network_mode has them, or NULL. */
mha_status head_eval_run(head_eval *eval, const head_settings *settings, head_loss *each,
                         float *logits);

typedef struct head_total {
    double loss; /* a word */
    int64_t words, right;
    int sentences, exact;
} head_total;
head_total head_total_of(const head_loss *each, int count);

int head_eval_sentences(const head_eval *eval);
int64_t head_eval_words(const head_eval *eval);

/*
 * The importance of every head, [head_count()]: the mean over sentences of |d loss / d gate|, where
 * the loss is that of a sentence (Michel et al. 2019). `closed`, of one sentence, says which gates
 * are 0; NULL: none. `normal` is the same divided by the root of the sum of squares in its layer.
 */
mha_status head_eval_importance(head_eval *eval, const head_settings *closed, double *raw,
                                double *normal);

/* Fills the means of settings with the mean outputs of all heads on these pairs. */
mha_status head_means_fill(const translator *model, const head_pair *pairs, int count,
                           mha_pool *pool, head_settings *settings);

#endif
