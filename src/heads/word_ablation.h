/* SPDX-License-Identifier: MIT */
/*
 * What the words of a source matter: one of them is hidden at a time, so that no token attends to
 * it, neither in the encoder nor in cross-attention, while all others keep their positions. What
 * each word of the target then loses in log-likelihood is how much the model needed the hidden one.
 */
#ifndef HEADS_WORD_ABLATION_H
#define HEADS_WORD_ABLATION_H

#include "corpus/part_of_speech.h"
#include "heads/head_join.h"
#include "heads/head_study.h"
#include "heads/whole_words.h"

/* Whole words; pieces of a source word are hidden together, log-likelihoods of the pieces of a
 * target word are added up. */
typedef struct word_losses {
    int sources, targets;
    const char **source_words; /* [sources] without marks */
    const char **target_words; /* [targets] with the end mark, if it is expected */
    double *plain;             /* [targets] log-likelihoods with all words */
    double *lost;              /* [targets][sources] nats; negative: likelier without the word */
    whole_words whole;
    word_pieces source_pieces, said_pieces; /* of tokens, and of rows of the target */
} word_losses;

/* The text must outlive the result. False: out of memory. word_losses_free() either way. `watch` is
 * called after each word; it may be NULL. */
bool word_losses_measure(word_losses *losses, const subject *model, const subject_text *text,
                         mha_pool *pool, void (*watch)(int done, int count));
void word_losses_free(word_losses *losses);

/* ------------------------------------------------------ parts of speech ----- */

/* What hiding one English word of a part of speech costs, in sentences of the laboratory. */
typedef struct part_loss {
    int words;              /* that were hidden */
    double lost;            /* nats of the whole translation per hidden word */
    head_interval interval; /* of `lost`, 95 %, by resampling sentences */
    double own;             /* the part of `lost` that its own translations lose, the French words
                             * that are aligned with it */
    double wrong;           /* French words, and ends, that become wrong per hidden word */
} part_loss;

/* parts[PART_COUNT]. */
mha_status part_losses_measure(const translator *model, const head_pair *pairs, int count,
                               mha_pool *pool, part_loss *parts,
                               void (*watch)(int done, int count));

#endif
