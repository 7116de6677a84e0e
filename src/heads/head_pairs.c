/* SPDX-License-Identifier: MIT */
/*
 * Makes sentence pairs: from the corpus, with the grammar's translation, or from a text of the
 * user.
 */
#include "heads/head_pairs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------- pairs ------ */

/* Replaces the words of one side by their numbers in the model's vocabulary. */
static void number_side(const translator *model, int side, const corpus_sentence *sentence,
                        numbered_pair *words)
{
    words->count[side] = sentence->count;
    for (int n = 0; n < sentence->count; n++)
        words->words[side][n] =
            vocabulary_find(translator_vocabulary(model, side), sentence->tokens[n]);
}

/* Lets the decoder read the grammar's translation. */
static void take_gold(const translator *model, head_pair *pair)
{
    pair->known = true;
    for (int side = 0; side < CORPUS_SIDES; side++)
        number_side(model, side, &pair->gold.side[side], &pair->words);
}

head_pair *head_pairs_of_corpus(const translator *model, uint64_t seed, corpus_split split,
                                int count)
{
    head_pair *const pairs = calloc((size_t)count, sizeof *pairs);
    for (int n = 0; pairs && n < count; n++) {
        corpus_generate(seed, split, (uint64_t)n, &pairs[n].gold, NULL);
        take_gold(model, &pairs[n]);
    }
    return pairs;
}

bool head_pairs_fit(const translator *model, const head_pair *pairs, int count)
{
    const int room = translator_longest(model) - 1;
    for (int n = 0; n < count; n++)
        for (int side = 0; side < CORPUS_SIDES; side++)
            if (pairs[n].words.count[side] > room)
                return false;
    return true;
}

/* Lets the decoder read the model's own translation. */
static bool translate(const translator *model, head_pair *pair, mha_pool *pool)
{
    static const translation_options options = {.beam = 1};
    const int *const source = pair->words.words[CORPUS_ENGLISH];
    translation result;
    if (translator_translate(model, &source, &pair->words.count[CORPUS_ENGLISH], 1, &options,
                             &result, pool) != MHA_OK)
        return false;
    const int count = result.target_count;
    const bool ends = count > 0 && result.target[count - 1] == WORD_END;
    /* A translation without an end that fills all positions loses its last word, so that there is a
     * row left for the next one. */
    pair->words.count[CORPUS_FRENCH] =
        ends || count == translator_longest(model) ? count - 1 : count;
    memcpy(pair->words.words[CORPUS_FRENCH], result.target, sizeof result.target);
    return true;
}

/* Whether the words of the pair are those of the grammar's translation. */
static bool says_gold(const translator *model, const head_pair *pair)
{
    numbered_pair gold;
    for (int side = 0; side < CORPUS_SIDES; side++) {
        number_side(model, side, &pair->gold.side[side], &gold);
        if (gold.count[side] != pair->words.count[side] ||
            memcmp(gold.words[side], pair->words.words[side],
                   (size_t)gold.count[side] * sizeof gold.words[side][0]) != 0)
            return false;
    }
    return true;
}

bool head_pair_of_text(const translator *model, const char *text, head_pair *pair, mha_pool *pool,
                       char message[HEAD_MESSAGE_MAX])
{
    char buffer[CORPUS_TEXT_MAX], reason[CORPUS_MESSAGE_MAX];
    const int room = translator_longest(model) - 1;
    corpus_sentence tokens;
    *pair = (head_pair){0};
    if (!corpus_tokenise(CORPUS_ENGLISH, text, buffer, &tokens) || tokens.count > room) {
        snprintf(message, HEAD_MESSAGE_MAX, "the sentence has more than %d words", room);
        return false;
    }
    if (tokens.count == 0) {
        snprintf(message, HEAD_MESSAGE_MAX, "the sentence has no words");
        return false;
    }
    number_side(model, TRANSFORMER_SOURCE, &tokens, &pair->words);
    if (!translate(model, pair, pool)) {
        snprintf(message, HEAD_MESSAGE_MAX, "the sentence cannot be translated");
        return false;
    }
    pair->known = corpus_translate(text, &pair->gold, NULL, reason) && says_gold(model, pair);
    return true;
}

/* ------------------------------------------------------------- captures ----- */

capture *head_capture(const translator *model, const head_pair *pair,
                      const capture_options *options, mha_pool *pool)
{
    const numbered_pair *const p = &pair->words;
    return capture_create(model, p->words[CORPUS_ENGLISH], p->count[CORPUS_ENGLISH],
                          p->words[CORPUS_FRENCH], p->count[CORPUS_FRENCH], options, pool);
}

head_matrix head_matrix_of(const capture *c, head_name name)
{
    const capture_heads *const h = &c->kind[name.kind];
    const ptrdiff_t size = (ptrdiff_t)h->rows * h->columns;
    return (head_matrix){h->weights + (name.layer * h->heads + name.head) * size, h->rows,
                         h->columns, name.kind == ATTENTION_DECODER};
}
