/* SPDX-License-Identifier: MIT */
/* What a row of logits says: probabilities of words, and the likeliest of them. */
#ifndef HEADS_LIKELY_WORDS_H
#define HEADS_LIKELY_WORDS_H

typedef struct likely_word {
    int number;         /* -1: the vocabulary has no more words */
    double probability; /* 0 to 1 */
} likely_word;

/* ln of the sum of exp(logits), with which logits become log-probabilities. */
double logits_log_sum(const float *logits, int words);

/* to[count]: the likeliest words, the likeliest first; of equal ones the smaller number. */
void likely_words_find(const float *logits, int words, int count, likely_word *to);

#endif
