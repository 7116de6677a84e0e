/* SPDX-License-Identifier: MIT */
/*
 * Reads the source of a pair, then its target: a given one (read_target), or the model's
 * translation (find_target), by the usual greedy search or, with changed heads, word by word
 * through captures.
 */
#include "heads/sentence_pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A pair while it is read. */
typedef struct reading {
    sentence_pair *pair;
    const translator *model;
    const pair_request *request;
    mha_pool *pool;
    char *message;
} reading;

static bool read_source(const reading *r)
{
    source_sentence *const source = &r->pair->source;
    source_read(source, r->model, r->request->text, false);
    if (source->problem[0] == '\0' && source->tokens.count > 0)
        return true;
    snprintf(r->message, PAIR_MESSAGE_MAX, "\"%s\": %s", source->text,
             source->problem[0] != '\0' ? source->problem : "there are no words");
    return false;
}

/* The target that the request gives. */
static bool read_target(const reading *r)
{
    const vocabulary *const words = translator_vocabulary(r->model, TRANSFORMER_TARGET);
    const int most = translator_longest(r->model) - 1;
    sentence_pair *const pair = r->pair;
    corpus_sentence *const target = &pair->target;
    if (!sentence_clean(r->request->target, pair->target_text) ||
        !corpus_tokenise(CORPUS_FRENCH, pair->target_text, pair->target_buffer, target) ||
        target->count > most) {
        snprintf(r->message, PAIR_MESSAGE_MAX,
                 "--to: the sentence is too long: the model says up to %d words", most);
        return false;
    }
    for (int n = 0; n < target->count; n++)
        pair->target_numbers[n] = vocabulary_find(words, target->tokens[n]);
    return true;
}

/* Greedy translation with all heads normal. */
static bool translate_plain(const reading *r)
{
    const translation_options options = {.beam = 1, .nbest = 1, .weights = true};
    const int *const words = r->pair->source.numbers;
    const int length = r->pair->source.tokens.count;
    const mha_status status =
        translator_translate(r->model, &words, &length, 1, &options, &r->pair->result, r->pool);
    if (status != MHA_OK)
        snprintf(r->message, PAIR_MESSAGE_MAX, "cannot translate: %s", mha_status_string(status));
    return status == MHA_OK;
}

/* Turns the last capture into a translation, which takes over the weights of its cross-attention.
 */
static void take_translation(capture *heads, translation *result)
{
    capture_heads *const cross = &heads->kind[ATTENTION_CROSS];
    result->weights = cross->weights;
    cross->weights = NULL;
    memcpy(result->source, heads->source, (size_t)heads->source_count * sizeof *heads->source);
    memcpy(result->target, heads->expected, (size_t)heads->target_count * sizeof *heads->expected);
    result->source_count = heads->source_count;
    result->target_count = heads->target_count;
    result->target[heads->target_count - 1] = heads->predicted[heads->target_count - 1];
}

/* translator_translate() cannot change a model, so each word is predicted by a capture of all words
 * before it. */
bool sentence_pair_write(const sentence_pair *pair, const translator *model,
                         const capture_options *options, mha_pool *pool, translation *result)
{
    const int most = translator_longest(model) - 1;
    int words[CORPUS_TOKENS_MAX], count = 0;
    capture_options each = *options;
    each.weights = true;
    for (;;) {
        capture *const heads = capture_create(model, pair->source.numbers,
                                              pair->source.tokens.count, words, count, &each, pool);
        if (heads == NULL)
            return false;
        const int word = heads->predicted[count];
        const bool last = word == WORD_END || count == most;
        if (last)
            take_translation(heads, result);
        capture_free(heads);
        if (last)
            return true;
        words[count++] = word;
    }
}

/* Greedy translation with changed heads. */
static bool translate_changed(const reading *r)
{
    capture_options options = {.weights = true};
    memcpy(options.changes, r->request->changes, sizeof options.changes);
    if (sentence_pair_write(r->pair, r->model, &options, r->pool, &r->pair->result))
        return true;
    snprintf(r->message, PAIR_MESSAGE_MAX, "out of memory");
    return false;
}

static bool is_changed(const pair_request *request)
{
    bool changed = false;
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        changed |= request->changes[kind] != NULL;
    return changed;
}

/* The model's own translation. */
static bool find_target(const reading *r)
{
    sentence_pair *const pair = r->pair;
    if (!(is_changed(r->request) ? translate_changed : translate_plain)(r))
        return false;
    const translated t = {r->model, &pair->source, &pair->result, 1};
    target_tokens(&t, 0, &pair->target);
    if (pair->target.count >= translator_longest(r->model))
        pair->target.count = translator_longest(r->model) - 1;
    memcpy(pair->target_numbers, pair->result.target,
           (size_t)pair->target.count * sizeof pair->target_numbers[0]);
    pair->ends = target_ends(&pair->result);
    return true;
}

bool sentence_pair_read(sentence_pair *pair, const translator *model, const pair_request *request,
                        mha_pool *pool, char message[PAIR_MESSAGE_MAX])
{
    const reading r = {pair, model, request, pool, message};
    pair->result.weights = NULL;
    pair->ends = true;
    return read_source(&r) && (request->target != NULL ? read_target : find_target)(&r);
}

void sentence_pair_free(sentence_pair *pair)
{
    free(pair->result.weights);
}

void sentence_pair_warn(const sentence_pair *pair)
{
    const bool given = pair->result.weights == NULL;
    source_warn(&pair->source);
    for (int n = 0; given && n < pair->target.count; n++)
        if (pair->target_numbers[n] == WORD_UNKNOWN)
            fprintf(stderr, "mha: --to: unknown word \"%s\"\n", pair->target.tokens[n]);
    if (!pair->ends)
        fprintf(stderr, "mha: the translation did not come to an end\n");
}

capture *sentence_pair_capture(const sentence_pair *pair, const translator *model,
                               const capture_options *options, mha_pool *pool)
{
    return capture_create(model, pair->source.numbers, pair->source.tokens.count,
                          pair->target_numbers, pair->target.count, options, pool);
}
