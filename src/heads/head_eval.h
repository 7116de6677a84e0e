/* SPDX-License-Identifier: MIT */
/*
 * The loss of a model on sentences, with all heads or with some of them changed.
 *
 * The decoder reads the right words and predicts the next one. A sentence is exact if all words are
 * right, its end included: a greedy search then finds the same translation, since all its prefixes
 * are right.
 */
#ifndef HEADS_HEAD_EVAL_H
#define HEADS_HEAD_EVAL_H

#include "heads/head_pairs.h"
#include "translator/network.h"

typedef struct head_eval head_eval;

/* Prepares the evaluation of a model on these pairs. The model must outlive the result, the pairs
 * are copied. NULL: out of memory, or sentences that the model cannot read. */
head_eval *head_eval_create(const translator *model, const head_pair *pairs, int count,
                            mha_pool *pool);
void head_eval_free(head_eval *eval);

/* The result of one sentence. */
typedef struct head_loss {
    double loss; /* sum of the negative log-likelihoods of its words, in nats */
    int words, right;
} head_loss;

/* Evaluates all sentences; each: [head_eval_sentences()]. settings: those of all sentences, with
 * gates of one; NULL: the whole model. logits: [head_eval_words()] as in network_mode, or NULL. */
mha_status head_eval_run(head_eval *eval, const head_settings *settings, head_loss *each,
                         float *logits);

/* The result of all sentences. */
typedef struct head_total {
    double loss; /* per word */
    int64_t words, right;
    int sentences, exact;
} head_total;
head_total head_total_of(const head_loss *each, int count);

int head_eval_sentences(const head_eval *eval);
int64_t head_eval_words(const head_eval *eval);

/*
 * The importance of every head, raw[head_count()]: the mean over sentences of |d loss / d gate|,
 * where the loss is that of a sentence (Michel et al. 2019). `disabled`, with gates of one
 * sentence, has the gates that are 0; NULL: none. normal[head_count()] is raw divided by the
 * Euclidean norm of the heads of its layer.
 */
mha_status head_eval_importance(head_eval *eval, const head_settings *disabled, double *raw,
                                double *normal);

/* Fills settings->means with the mean outputs of all heads over all rows of these pairs. The means
 * must be 0 before. */
mha_status head_means_fill(const translator *model, const head_pair *pairs, int count,
                           mha_pool *pool, head_settings *settings);

#endif
