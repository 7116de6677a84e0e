/* SPDX-License-Identifier: MIT */
/* Text to word numbers before translation, and words to text after it (sentence.h). */
#include "translator/sentence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "base/text.h"

enum { WORD_COLUMNS = 60 };

/* -------------------------------------------------------------- source ----- */

bool sentence_clean(const char *text, char clean[CORPUS_TEXT_MAX])
{
    text_word words[CORPUS_TOKENS_MAX];
    const int count = text_split(text, words, CORPUS_TOKENS_MAX, WORD_COLUMNS);
    size_t used = 0;
    clean[0] = '\0';
    for (int n = 0; n < count && n < CORPUS_TOKENS_MAX; n++) {
        const size_t length = strlen(words[n].bytes);
        if (used + length + 2 > CORPUS_TEXT_MAX)
            return false;
        if (n > 0)
            clean[used++] = ' ';
        memcpy(clean + used, words[n].bytes, length);
        used += length;
        clean[used] = '\0';
    }
    return count <= CORPUS_TOKENS_MAX;
}

/* Finds similar words, the most similar first: each is searched after removing those before it. */
static void find_near(unknown_word *unknown, const char *word, const vocabulary *words)
{
    int count = words->count - WORDS_SPECIAL;
    const char **const names = malloc((size_t)(count > 0 ? count : 1) * sizeof *names);
    if (names == NULL || count <= 0) {
        free(names);
        return;
    }
    memcpy(names, words->words + WORDS_SPECIAL, (size_t)count * sizeof *names);
    for (int n = 0; n < SUGGESTIONS_MAX; n++) {
        const char *const near = suggest_nearest(word, names, count);
        if (near == NULL)
            break;
        unknown->near[unknown->near_count++] = near;
        int at = 0;
        while (names[at] != near)
            at++;
        names[at] = names[--count];
    }
    free(names);
}

static void number_tokens(source_sentence *s, const translator *model)
{
    const vocabulary *const words = translator_vocabulary(model, TRANSFORMER_SOURCE);
    for (int n = 0; n < s->tokens.count; n++) {
        s->numbers[n] = vocabulary_find(words, s->tokens.tokens[n]);
        if (s->numbers[n] != WORD_UNKNOWN)
            continue;
        unknown_word *const unknown = &s->unknown[s->unknown_count++];
        unknown->position = n;
        find_near(unknown, s->tokens.tokens[n], words);
    }
}

/* What the laboratory was not trained on: a translation of it means little. */
static void find_outside(source_sentence *s)
{
    corpus_pair pair;
    if (s->unknown_count > 0)
        snprintf(s->outside, sizeof s->outside, "unknown word \"%.100s\"",
                 s->tokens.tokens[s->unknown[0].position]);
    else
        corpus_translate(s->text, &pair, NULL, s->outside);
}

void source_read(source_sentence *s, const translator *model, const char *text, bool cut)
{
    const int most = translator_longest(model) - 1;
    *s = (source_sentence){.line = s->line};
    const bool fits = sentence_clean(text, s->text) && !cut &&
                      corpus_tokenise(CORPUS_ENGLISH, s->text, s->buffer, &s->tokens);
    if (!fits) {
        snprintf(s->problem, sizeof s->problem,
                 "the sentence is too long: the model reads up to %d words", most);
        s->tokens.count = 0;
    } else if (s->tokens.count > most) {
        snprintf(s->problem, sizeof s->problem,
                 "the sentence is too long: it has %d words, and the model reads up to %d",
                 s->tokens.count, most);
        s->tokens.count = 0;
    }
    number_tokens(s, model);
    if (s->tokens.count > 0 && translator_is_laboratory(model))
        find_outside(s);
}

void source_print_place(const source_sentence *source)
{
    fputs("mha: ", stderr);
    if (source->line > 0)
        fprintf(stderr, "line %lld: ", (long long)source->line);
}

void source_warn(const source_sentence *source)
{
    if (source->unknown_count == 0 && source->outside[0] != '\0') {
        source_print_place(source);
        fprintf(stderr, "outside the grammar of the laboratory: %s\n", source->outside);
    }
    for (int n = 0; n < source->unknown_count; n++) {
        const unknown_word *const unknown = &source->unknown[n];
        source_print_place(source);
        fprintf(stderr, "unknown word \"%s\"", source->tokens.tokens[unknown->position]);
        for (int k = 0; k < unknown->near_count; k++)
            fprintf(stderr, "%s\"%s\"",
                    k == 0                         ? "; did you mean "
                    : k + 1 == unknown->near_count ? " or "
                                                   : ", ",
                    unknown->near[k]);
        fputs(unknown->near_count > 0 ? "?\n" : "\n", stderr);
    }
}

/* -------------------------------------------------------------- target ----- */

bool target_ends(const translation *result)
{
    return result->target_count > 0 && result->target[result->target_count - 1] == WORD_END;
}

/* The attention of target word i to source word j, averaged over all layers and heads. */
static double mean_weight(const translated *t, const translation *result, int i, int j)
{
    const transformer_config *const config = translator_config(t->model);
    const int maps = config->layers[TRANSFORMER_TARGET] * config->heads;
    double sum = 0.0;
    for (int map = 0; map < maps; map++)
        sum += (double)result->weights[(map * result->target_count + i) * result->source_count + j];
    return sum / maps;
}

/* The text for the unknown word at position i, which is number `order` of the unknown words.
 * Without weights, the unknown words of the source are used in order. */
static const char *unknown_at(const translated *t, const translation *result, int i, int order)
{
    const source_sentence *const s = t->source;
    if (s->unknown_count == 0)
        return translator_vocabulary(t->model, TRANSFORMER_TARGET)->words[WORD_UNKNOWN];
    int best = order < s->unknown_count ? order : s->unknown_count - 1;
    for (int n = 0; result->weights != NULL && n < s->unknown_count; n++)
        if (mean_weight(t, result, i, s->unknown[n].position) >
            mean_weight(t, result, i, s->unknown[best].position))
            best = n;
    return s->tokens.tokens[s->unknown[best].position];
}

void target_tokens(const translated *t, int number, corpus_sentence *tokens)
{
    const translation *const result = &t->results[number];
    const vocabulary *const words = translator_vocabulary(t->model, TRANSFORMER_TARGET);
    int unknown = 0;
    tokens->count = 0;
    for (int i = 0; i < result->target_count && result->target[i] != WORD_END; i++)
        tokens->tokens[tokens->count++] = result->target[i] == WORD_UNKNOWN
                                              ? unknown_at(t, result, i, unknown++)
                                              : words->words[result->target[i]];
}

/* ---------------------------------------------------------------- gold ----- */

static bool same_tokens(const corpus_sentence *a, const corpus_sentence *b)
{
    for (int n = 0; n < a->count && n < b->count; n++)
        if (strcmp(a->tokens[n], b->tokens[n]) != 0)
            return false;
    return a->count == b->count;
}

void gold_find(gold_translation *gold, const translated *t)
{
    corpus_pair pair;
    corpus_sentence said;
    *gold = (gold_translation){.known = false};
    gold->known = corpus_translate(t->source->text, &pair, NULL, gold->reason);
    if (!gold->known)
        return;
    target_tokens(t, 0, &said);
    corpus_detokenise(CORPUS_FRENCH, &pair.side[CORPUS_FRENCH], gold->text);
    gold->agrees = target_ends(t->results) && same_tokens(&said, &pair.side[CORPUS_FRENCH]);
}
