/* SPDX-License-Identifier: MIT */
#include "sentence_pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_source(source_sentence *source, const translator *model, const char *text)
{
    source_read(source, model, text, false);
    if (source->problem[0] != '\0' || source->tokens.count == 0) {
        fprintf(stderr, "mha: \"%s\": %s\n", source->text,
                source->problem[0] != '\0' ? source->problem : "there are no words");
        return false;
    }
    source_warn_unknown(source);
    return true;
}

/* The target that was asked for. */
static bool read_target(sentence_pair *pair, const translator *model, const char *to)
{
    const vocabulary *const words = translator_vocabulary(model, TRANSFORMER_TARGET);
    const int most = translator_longest(model) - 1;
    corpus_sentence *const target = &pair->target;
    if (!sentence_clean(to, pair->target_text) ||
        !corpus_tokenise(CORPUS_FRENCH, pair->target_text, pair->target_buffer, target) ||
        target->count > most) {
        fprintf(stderr, "mha: --to: the sentence is too long: the model says up to %d words\n",
                most);
        return false;
    }
    for (int n = 0; n < target->count; n++) {
        pair->target_numbers[n] = vocabulary_find(words, target->tokens[n]);
        if (pair->target_numbers[n] == WORD_UNKNOWN)
            fprintf(stderr, "mha: --to: unknown word \"%s\"\n", target->tokens[n]);
    }
    return true;
}

/* The target that the model says. */
static bool find_target(sentence_pair *pair, const translator *model, mha_pool *pool)
{
    const translation_options options = {.beam = 1, .nbest = 1, .weights = true};
    const int *const words = pair->source.numbers;
    const int length = pair->source.tokens.count;
    const mha_status status =
        translator_translate(model, &words, &length, 1, &options, &pair->result, pool);
    if (status != MHA_OK) {
        fprintf(stderr, "mha: cannot translate: %s\n", mha_status_string(status));
        return false;
    }
    const translated t = {model, &pair->source, &pair->result, 1};
    target_tokens(&t, 0, &pair->target);
    if (pair->target.count >= translator_longest(model))
        pair->target.count = translator_longest(model) - 1;
    memcpy(pair->target_numbers, pair->result.target,
           (size_t)pair->target.count * sizeof pair->target_numbers[0]);
    if (!target_ends(&pair->result))
        fprintf(stderr, "mha: the translation did not come to an end\n");
    return true;
}

bool sentence_pair_read(sentence_pair *pair, const translator *model, const char *text,
                        const char *to, mha_pool *pool)
{
    pair->result.weights = NULL;
    return read_source(&pair->source, model, text) &&
           (to != NULL ? read_target(pair, model, to) : find_target(pair, model, pool));
}

void sentence_pair_free(sentence_pair *pair)
{
    free(pair->result.weights);
}

capture *sentence_pair_capture(const sentence_pair *pair, const translator *model,
                               const capture_options *options, mha_pool *pool)
{
    capture *const heads = capture_create(model, pair->source.numbers, pair->source.tokens.count,
                                          pair->target_numbers, pair->target.count, options, pool);
    if (heads == NULL)
        fprintf(stderr, "mha: out of memory\n");
    return heads;
}
