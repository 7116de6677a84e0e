/* SPDX-License-Identifier: MIT */
/* Counts matching n-grams of words sentence by sentence; the score is computed from their sums. */
#include "translator/bleu.h"

#include <math.h>
#include <stdlib.h>

struct bleu {
    ngram_trie trie;
    metric_text text;
    metric_words words;
    int64_t sentences, length, reference_length;
    int64_t matches[BLEU_ORDER], totals[BLEU_ORDER];
};

bleu *bleu_new(metric_words words)
{
    bleu *const sum = calloc(1, sizeof *sum);
    if (sum != NULL)
        sum->words = words;
    return sum;
}

void bleu_free(bleu *sum)
{
    if (sum == NULL)
        return;
    ngram_trie_free(&sum->trie);
    metric_text_free(&sum->text);
    free(sum);
}

/* Of two reference lengths the one closer to the hypothesis; the shorter of two equally close. */
static int64_t closer(int64_t length, int64_t a, int64_t b)
{
    const int64_t to_a = llabs(length - a), to_b = llabs(length - b);
    return to_a < to_b || (to_a == to_b && a < b) ? a : b;
}

mha_status bleu_add(bleu *sum, const char *hypothesis, const char *const *references, int count)
{
    int64_t matches[BLEU_ORDER] = {0}, alone[BLEU_ORDER] = {0}, closest = -1;
    mha_status status = count > 0 ? ngram_trie_begin(&sum->trie) : MHA_ERR_LENGTH;
    if (status == MHA_OK)
        status = metric_text_say_words(&sum->text, sum->words, hypothesis, &sum->trie);
    const size_t words = sum->text.count;
    if (status == MHA_OK)
        status = ngram_trie_say(&sum->trie, sum->text.symbols, words, BLEU_ORDER);
    for (int n = 0; n < count && status == MHA_OK; n++) {
        status = metric_text_find_words(&sum->text, sum->words, references[n], &sum->trie);
        const int64_t length = (int64_t)sum->text.count;
        if (status == MHA_OK)
            ngram_trie_match(&sum->trie, sum->text.symbols, sum->text.count, BLEU_ORDER, n + 1,
                             alone, matches);
        closest = n == 0 ? length : closer((int64_t)words, closest, length);
    }
    if (status != MHA_OK)
        return status;
    sum->sentences++;
    sum->length += (int64_t)words;
    sum->reference_length += closest;
    for (int n = 0; n < BLEU_ORDER; n++) {
        sum->matches[n] += matches[n];
        sum->totals[n] += ngram_count(words, n + 1);
    }
    return MHA_OK;
}

/* Each order without a match counts half as much as the one before it. */
static void find_precisions(const bleu *sum, double precisions[BLEU_ORDER])
{
    double smooth = 1;
    for (int n = 0; n < BLEU_ORDER && sum->totals[n] > 0; n++) {
        if (sum->matches[n] == 0)
            smooth *= 2;
        precisions[n] = sum->matches[n] == 0
                            ? 100. / (smooth * (double)sum->totals[n])
                            : 100. * (double)sum->matches[n] / (double)sum->totals[n];
    }
}

static double find_brevity(const bleu *sum)
{
    if (sum->length >= sum->reference_length)
        return 1;
    return sum->length > 0 ? exp(1 - (double)sum->reference_length / (double)sum->length) : 0;
}

bleu_score bleu_read(const bleu *sum)
{
    bleu_score result = {.sentences = sum->sentences,
                         .length = sum->length,
                         .reference_length = sum->reference_length,
                         .brevity = find_brevity(sum)};
    if (sum->reference_length > 0)
        result.ratio = (double)sum->length / (double)sum->reference_length;
    int64_t matches = 0;
    for (int n = 0; n < BLEU_ORDER; n++) {
        matches += result.matches[n] = sum->matches[n];
        result.totals[n] = sum->totals[n];
    }
    if (matches == 0)
        return result;
    find_precisions(sum, result.precisions);
    double logs = 0;
    for (int n = 0; n < BLEU_ORDER; n++)
        logs += log(result.precisions[n]); /* -infinity for an order without n-grams */
    result.score = result.brevity * exp(logs / BLEU_ORDER);
    return result;
}
