/* SPDX-License-Identifier: MIT */
/* Probabilities of words, and the likeliest of them (likely_words.h). */
#include "heads/likely_words.h"

#include <math.h>

double logits_log_sum(const float *logits, int words)
{
    double most = -INFINITY, sum = 0.0;
    for (int w = 0; w < words; w++)
        most = (double)logits[w] > most ? (double)logits[w] : most;
    for (int w = 0; w < words; w++)
        sum += exp((double)logits[w] - most);
    return most + log(sum);
}

/* Sorts a word in; probabilities are logits until all words are found. */
static void insert(likely_word *to, int count, int number, double logit)
{
    int at = count;
    while (at > 0 && (to[at - 1].number < 0 || logit > to[at - 1].probability))
        at--;
    if (at == count)
        return;
    for (int n = count - 1; n > at; n--)
        to[n] = to[n - 1];
    to[at] = (likely_word){number, logit};
}

void likely_words_find(const float *logits, int words, int count, likely_word *to)
{
    const double all = logits_log_sum(logits, words);
    for (int n = 0; n < count; n++)
        to[n] = (likely_word){-1, 0.0};
    for (int w = 0; w < words; w++)
        insert(to, count, w, (double)logits[w]);
    for (int n = 0; n < count && to[n].number >= 0; n++)
        to[n].probability = exp(to[n].probability - all);
}
