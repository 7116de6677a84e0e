/* SPDX-License-Identifier: MIT */
/*
 * BLEU of a corpus, the number that sacrebleu computes by default: words of the tokenizer 13a,
 * n-grams up to 4, exponential smoothing, brevity penalty with the closest reference length. A
 * sentence may have any number of references, and another number than its neighbours. For texts
 * that are tokenized already, words may be what white space separates, as by sacrebleu --tokenize
 * none.
 */
#ifndef TRANSLATOR_BLEU_H
#define TRANSLATOR_BLEU_H

#include <stdint.h>

#include <mha/mha.h>

#include "translator/metric_text.h"

enum { BLEU_ORDER = 4 };

typedef struct bleu bleu;

/* NULL if out of memory. bleu_free() accepts NULL. */
bleu *bleu_new(metric_words words);
void bleu_free(bleu *sum);

/*
 * Adds a sentence, in time proportional to its length and that of its references. After an error
 * (MHA_ERR_MEMORY; MHA_ERR_LENGTH without a reference or with a text beyond METRIC_TEXT_MAX bytes)
 * nothing was added.
 */
mha_status bleu_add(bleu *sum, const char *hypothesis, const char *const *references, int count);

typedef struct bleu_score {
    double score;                  /* from 0 to 100 */
    double precisions[BLEU_ORDER]; /* of n-grams of 1 to 4 words, in percent, smoothed */
    double brevity;                /* the brevity penalty, at most 1 */
    double ratio;                  /* length / reference_length; 0 if the latter is 0 */
    int64_t sentences;
    int64_t length, reference_length; /* in words */
    int64_t matches[BLEU_ORDER], totals[BLEU_ORDER];
} bleu_score;

/* The score of the sentences so far. */
bleu_score bleu_read(const bleu *sum);

#endif
