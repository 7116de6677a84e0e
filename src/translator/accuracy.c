/* SPDX-License-Identifier: MIT */
/* Evaluates a translator on sentences of the corpus, AT_ONCE at a time. */
#include "translator/accuracy.h"

#include <stdlib.h>

enum { AT_ONCE = 128 };

/* Sentences that are translated together: sources, expected translations and results. */
typedef struct group {
    corpus_pair pairs[AT_ONCE];
    int words[TRANSFORMER_SIDES][AT_ONCE][CORPUS_TOKENS_MAX];
    int lengths[TRANSFORMER_SIDES][AT_ONCE];
    const int *sources[AT_ONCE];
    translation results[AT_ONCE];
} group;

static void fill(group *g, const translator *model, uint64_t seed, corpus_split split,
                 int64_t first, int count)
{
    for (int n = 0; n < count; n++) {
        corpus_pair *const pair = &g->pairs[n];
        corpus_generate(seed, split, (uint64_t)(first + n), pair, NULL);
        for (int side = 0; side < TRANSFORMER_SIDES; side++) {
            const vocabulary *const words = translator_vocabulary(model, side);
            g->lengths[side][n] = pair->side[side].count;
            for (int i = 0; i < pair->side[side].count; i++)
                g->words[side][n][i] = vocabulary_find(words, pair->side[side].tokens[i]);
        }
        g->sources[n] = g->words[TRANSFORMER_SOURCE][n];
    }
}

/* Counts the right words of a sentence, WORD_END included. An expected word that is not in the
 * model's vocabulary counts as wrong, even if the model predicts WORD_UNKNOWN. */
static int count_right(const group *g, int n)
{
    const translation *const said = &g->results[n];
    const int count = g->lengths[TRANSFORMER_TARGET][n];
    int right = 0;
    for (int i = 0; i <= count && i < said->target_count; i++) {
        const int expected = i < count ? g->words[TRANSFORMER_TARGET][n][i] : WORD_END;
        right += expected != WORD_UNKNOWN && said->target[i] == expected;
    }
    return right;
}

static void judge(const group *g, int n, accuracy *sum, const accuracy_watch *watch)
{
    const int words = g->lengths[TRANSFORMER_TARGET][n] + 1, words_right = count_right(g, n);
    const bool right = words_right == words;
    sum->sentences++;
    sum->right += right;
    sum->words += words;
    sum->words_right += words_right;
    if (watch)
        watch->each(watch->context, &g->pairs[n], &g->results[n], right);
}

mha_status accuracy_add(const translator *model, uint64_t seed, corpus_split split, int64_t first,
                        int64_t count, const translation_options *options, mha_pool *pool,
                        accuracy *sum, const accuracy_watch *watch)
{
    translation_options one = *options;
    one.nbest = 1;
    one.weights = false;
    group *const g = calloc(1, sizeof *g);
    mha_status status = g ? MHA_OK : MHA_ERR_MEMORY;
    for (int64_t n = 0; n < count && status == MHA_OK; n += AT_ONCE) {
        const int some = (int)(count - n < AT_ONCE ? count - n : AT_ONCE);
        fill(g, model, seed, split, first + n, some);
        status = translator_translate(model, g->sources, g->lengths[TRANSFORMER_SOURCE], some, &one,
                                      g->results, pool);
        for (int k = 0; k < some && status == MHA_OK; k++)
            judge(g, k, sum, watch);
    }
    free(g);
    return status;
}

mha_status accuracy_measure(const translator *model, uint64_t seed, corpus_split split,
                            int64_t count, const translation_options *options, mha_pool *pool,
                            int64_t *right)
{
    accuracy sum = {0};
    const mha_status status = accuracy_add(model, seed, split, 0, count, options, pool, &sum, NULL);
    *right = sum.right;
    return status;
}
