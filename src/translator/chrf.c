/* SPDX-License-Identifier: MIT */
/* Counts matching n-grams of characters sentence by sentence; the score is computed from their
 * sums, and for every reference alone to find the best one. */
#include "translator/chrf.h"

#include <stdlib.h>

#include "translator/metric_text.h"

/* N-grams of one order: of the hypothesis, of the reference, of both. */
typedef struct chrf_counts {
    int64_t said, wanted, both;
} chrf_counts;

struct chrf {
    ngram_trie trie;
    metric_text text;
    chrf_counts counts[CHRF_ORDER];
};

chrf *chrf_new(void)
{
    return calloc(1, sizeof(chrf));
}

void chrf_free(chrf *sum)
{
    if (sum == NULL)
        return;
    ngram_trie_free(&sum->trie);
    metric_text_free(&sum->text);
    free(sum);
}

/* The F score of mean precision and mean recall, over the orders that both sides have. */
static double f_score(const chrf_counts counts[CHRF_ORDER])
{
    const double factor = 4; /* beta squared */
    double precision = 0, recall = 0;
    int orders = 0;
    for (int n = 0; n < CHRF_ORDER; n++)
        if (counts[n].said > 0 && counts[n].wanted > 0) {
            precision += (double)counts[n].both / (double)counts[n].said;
            recall += (double)counts[n].both / (double)counts[n].wanted;
            orders++;
        }
    if (precision + recall <= 0)
        return 0;
    precision /= orders;
    recall /= orders;
    return 100 * ((1 + factor) * precision * recall / (factor * precision + recall));
}

/* Compares the hypothesis in the trie, of `said` characters, with reference number `n`. */
static mha_status compare(chrf *sum, size_t said, const char *reference, int n,
                          chrf_counts counts[CHRF_ORDER])
{
    int64_t alone[CHRF_ORDER] = {0}, together[CHRF_ORDER] = {0};
    const mha_status status = metric_text_characters(&sum->text, reference);
    if (status != MHA_OK)
        return status;
    ngram_trie_match(&sum->trie, sum->text.symbols, sum->text.count, CHRF_ORDER, n + 1, alone,
                     together);
    for (int order = 0; order < CHRF_ORDER; order++) {
        const int64_t wanted = ngram_count(sum->text.count, order + 1);
        /* What is said counts only where the reference has n-grams of this order. */
        counts[order] =
            (chrf_counts){wanted > 0 ? ngram_count(said, order + 1) : 0, wanted, alone[order]};
    }
    return MHA_OK;
}

mha_status chrf_add(chrf *sum, const char *hypothesis, const char *const *references, int count)
{
    chrf_counts best[CHRF_ORDER] = {{0, 0, 0}}, counts[CHRF_ORDER];
    double best_score = -1;
    mha_status status = count > 0 ? ngram_trie_begin(&sum->trie) : MHA_ERR_LENGTH;
    if (status == MHA_OK)
        status = metric_text_characters(&sum->text, hypothesis);
    const size_t said = sum->text.count;
    if (status == MHA_OK)
        status = ngram_trie_say(&sum->trie, sum->text.symbols, said, CHRF_ORDER);
    for (int n = 0; n < count && status == MHA_OK; n++) {
        status = compare(sum, said, references[n], n, counts);
        const double score = status == MHA_OK ? f_score(counts) : -1;
        for (int order = 0; score > best_score && order < CHRF_ORDER; order++)
            best[order] = counts[order];
        best_score = score > best_score ? score : best_score;
    }
    for (int order = 0; order < CHRF_ORDER && status == MHA_OK; order++) {
        sum->counts[order].said += best[order].said;
        sum->counts[order].wanted += best[order].wanted;
        sum->counts[order].both += best[order].both;
    }
    return status;
}

double chrf_read(const chrf *sum)
{
    return f_score(sum->counts);
}
