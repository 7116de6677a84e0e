/* SPDX-License-Identifier: MIT */
/*
 * Our translator as a subject. sentence_pair.c reads a text and finds its translation; this file
 * lists the words of both with their marks, and looks the sentence up in the grammar: its alignment
 * and relations are only known if its translation is the one that the decoder reads.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heads/subject.h"

/* The memory of a text. A side has the words of a sentence and a mark. */
enum { SIDE_MAX = CORPUS_TOKENS_MAX + 1 };
typedef struct side_memory {
    const char *words[SIDE_MAX];
    int numbers[SIDE_MAX];
    bool marks[SIDE_MAX], continues[SIDE_MAX];
} side_memory;

typedef struct text_memory {
    sentence_pair pair;
    side_memory sides[TRANSFORMER_SIDES];
    const char *expected[SIDE_MAX];
    char translation[CORPUS_TEXT_MAX];
    corpus_pair gold;
    char reason[CORPUS_MESSAGE_MAX];
} text_memory;

/* ---------------------------------------------------------------- words ----- */

static void add_word(side_memory *m, subject_side *side, const char *word, int number, bool mark)
{
    m->words[side->count] = word;
    m->numbers[side->count] = number;
    m->marks[side->count++] = mark;
}

/* The words of the source end with WORD_END, those of the target begin with WORD_BEGIN. */
static void list_words(const subject *s, text_memory *m, subject_text *text)
{
    const vocabulary *const from = translator_vocabulary(s->translator, TRANSFORMER_SOURCE);
    const vocabulary *const to = translator_vocabulary(s->translator, TRANSFORMER_TARGET);
    const sentence_pair *const pair = &m->pair;
    subject_side *const sides[] = {&text->source, &text->target};
    for (int side = 0; side < TRANSFORMER_SIDES; side++)
        *sides[side] = (subject_side){.words = m->sides[side].words,
                                      .numbers = m->sides[side].numbers,
                                      .marks = m->sides[side].marks,
                                      .continues = m->sides[side].continues};
    for (int n = 0; n < pair->source.tokens.count; n++)
        add_word(&m->sides[TRANSFORMER_SOURCE], &text->source, pair->source.tokens.tokens[n],
                 pair->source.numbers[n], false);
    add_word(&m->sides[TRANSFORMER_SOURCE], &text->source, from->words[WORD_END], WORD_END, true);
    add_word(&m->sides[TRANSFORMER_TARGET], &text->target, to->words[WORD_BEGIN], WORD_BEGIN, true);
    for (int n = 0; n < pair->target.count; n++) {
        add_word(&m->sides[TRANSFORMER_TARGET], &text->target, pair->target.tokens[n],
                 pair->target_numbers[n], false);
        m->expected[n] = pair->target.tokens[n];
    }
    m->expected[pair->target.count] = to->words[WORD_END];
    text->expected = m->expected;
}

/* ----------------------------------------------------------------- gold ----- */

static bool same_tokens(const corpus_sentence *a, const corpus_sentence *b)
{
    for (int n = 0; n < a->count && n < b->count; n++)
        if (strcmp(a->tokens[n], b->tokens[n]) != 0)
            return false;
    return a->count == b->count;
}

static void find_gold(text_memory *m, subject_text *text)
{
    text->outside = m->pair.source.outside[0] != '\0' ? m->pair.source.outside : NULL;
    text->no_gold = m->reason;
    if (!corpus_translate(text->text, &m->gold, NULL, m->reason))
        return;
    if (same_tokens(&m->pair.source.tokens, &m->gold.side[CORPUS_ENGLISH]) &&
        same_tokens(&m->pair.target, &m->gold.side[CORPUS_FRENCH])) {
        text->gold = &m->gold;
        text->no_gold = NULL;
        return;
    }
    char french[CORPUS_TEXT_MAX];
    corpus_detokenise(CORPUS_FRENCH, &m->gold.side[CORPUS_FRENCH], french);
    snprintf(m->reason, sizeof m->reason, "the grammar translates it otherwise: %.200s", french);
}

/* -------------------------------------------------------------- methods ----- */

static bool read_text(const subject *s, const pair_request *request, mha_pool *pool,
                      subject_text *text, char message[SUBJECT_MESSAGE_MAX])
{
    text_memory *const m = text->memory = calloc(1, sizeof *m);
    if (m == NULL) {
        snprintf(message, SUBJECT_MESSAGE_MAX, "out of memory");
        return false;
    }
    if (!sentence_pair_read(&m->pair, s->translator, request, pool, message))
        return false;
    text->text = m->pair.source.text;
    text->given = request->target != NULL ? m->pair.target_text : NULL;
    corpus_detokenise(CORPUS_FRENCH, &m->pair.target, m->translation);
    text->translation = m->translation;
    list_words(s, m, text);
    find_gold(m, text);
    return true;
}

static void free_text(subject_text *text)
{
    text_memory *const m = text->memory;
    sentence_pair_free(&m->pair);
    free(m);
}

static void warn(const subject_text *text)
{
    const text_memory *const m = text->memory;
    sentence_pair_warn(&m->pair);
}

static capture *run_text(const subject *s, const subject_text *text, const capture_options *options,
                         mha_pool *pool)
{
    const text_memory *const m = text->memory;
    return sentence_pair_capture(&m->pair, s->translator, options, pool);
}

static const char *word_of(const subject *s, int number, char room[SUBJECT_WORD_MAX])
{
    (void)room;
    return translator_vocabulary(s->translator, TRANSFORMER_TARGET)->words[number];
}

static char *write_text(const subject *s, const subject_text *text, const capture_options *options,
                        mha_pool *pool)
{
    const text_memory *const m = text->memory;
    translation result = {.weights = NULL};
    corpus_sentence words;
    char *const to = malloc(CORPUS_TEXT_MAX);
    const bool fine =
        to != NULL && sentence_pair_write(&m->pair, s->translator, options, pool, &result);
    if (fine) {
        target_tokens(&(translated){s->translator, &m->pair.source, &result, 1}, 0, &words);
        corpus_detokenise(CORPUS_FRENCH, &words, to);
    } else {
        free(to);
    }
    free(result.weights);
    return fine ? to : NULL;
}

static mha_status lens(const subject *s, int rows, const float *stream, float *logits,
                       mha_pool *pool)
{
    return translator_lens(s->translator, rows, stream, logits, pool);
}

void subject_of_translator(subject *s, const translator *model)
{
    static const subject_methods methods = {
        read_text,  free_text, warn, run_text, word_of, computation_weights_of_translator,
        write_text, lens};
    *s = (subject){.methods = &methods,
                   .shape = head_shape_of(translator_config(model)),
                   .width = translator_config(model)->width,
                   .family = "translator",
                   .side_names = {"English", "French"},
                   .first_text = "the cat that i saw yesterday ran away",
                   .run_cost = (double)translator_map(model)->count,
                   .words = {.question = {-1, -1}},
                   .translator = model,
                   .model = model};
}
