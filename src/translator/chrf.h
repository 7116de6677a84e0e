/* SPDX-License-Identifier: MIT */
/*
 * chrF2 of a corpus, the number that sacrebleu computes by default: character n-grams up to 6
 * without white space, recall weighted twice (beta = 2), no n-grams of words. Of several
 * references, each sentence is compared with the one that gives it the best score.
 */
#ifndef TRANSLATOR_CHRF_H
#define TRANSLATOR_CHRF_H

#include <stdint.h>

#include <mha/mha.h>

enum { CHRF_ORDER = 6 };

typedef struct chrf chrf;

/* NULL if out of memory. chrf_free() accepts NULL. */
chrf *chrf_new(void);
void chrf_free(chrf *sum);

/* Adds a sentence; time and errors as of bleu_add(). */
mha_status chrf_add(chrf *sum, const char *hypothesis, const char *const *references, int count);

/* The score of the sentences so far, from 0 to 100. */
double chrf_read(const chrf *sum);

#endif
