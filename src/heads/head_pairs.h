/* SPDX-License-Identifier: MIT */
/* The sentence pairs on which the heads of a translator are measured. */
#ifndef HEADS_HEAD_PAIRS_H
#define HEADS_HEAD_PAIRS_H

#include "heads/capture.h"
#include "heads/head_metrics.h"
#include "heads/head_names.h"
#include "translator/batch.h"

typedef struct head_pair {
    numbered_pair words;
    bool known; /* the grammar has this pair: gold has its alignment and relations */
    corpus_pair gold;
} head_pair;

/* Sentences [0, count) of a split, for free(). NULL: out of memory. */
head_pair *head_pairs_of_corpus(const translator *model, uint64_t seed, corpus_split split,
                                int count);

/* Whether the model has positions for all of them. */
bool head_pairs_fit(const translator *model, const head_pair *pairs, int count);

/*
 * An English sentence with the translation that the model says, as on the page of "mha view";
 * `known` where the grammar translates it the same way. False, with a sentence in `message`, where
 * there is nothing to measure: no words, or too many.
 */
enum { HEAD_MESSAGE_MAX = 256 };
bool head_pair_of_text(const translator *model, const char *text, head_pair *pair, mha_pool *pool,
                       char message[HEAD_MESSAGE_MAX]);

/* Runs the model on a pair, see capture_create(). */
capture *head_capture(const translator *model, const head_pair *pair,
                      const capture_options *options, mha_pool *pool);

/* The weights of one head, which stay in the capture; it must have weights. */
head_matrix head_matrix_of(const capture *capture, head_name name);

#endif
