/* SPDX-License-Identifier: MIT */
/*
 * Text on both sides of a translator:
 *
 *      text --source_read()--> tokens, numbers, unknown words
 *      translation --target_tokens()--> tokens, with unknown words put back
 */
#ifndef MODEL_SENTENCE_H
#define MODEL_SENTENCE_H

#include "model/translator.h"

enum { SUGGESTIONS_MAX = 3, PROBLEM_MAX = 160 };

typedef struct unknown_word {
    int position; /* among the tokens */
    const char *near[SUGGESTIONS_MAX];
    int near_count;
} unknown_word;

typedef struct source_sentence {
    int64_t line;               /* of standard input, from 1; 0 for an argument */
    char text[CORPUS_TEXT_MAX]; /* as it was given, but printable and on one line */
    corpus_sentence tokens;
    int numbers[CORPUS_TOKENS_MAX];
    unknown_word unknown[CORPUS_TOKENS_MAX];
    int unknown_count;
    char problem[PROBLEM_MAX];    /* why it cannot be translated; "" if it can */
    char buffer[CORPUS_TEXT_MAX]; /* of the tokens */
} source_sentence;

/* Text of a stranger in words that can be printed, on one line. False: more than fit. */
bool sentence_clean(const char *text, char clean[CORPUS_TEXT_MAX]);

/* `cut`: the text is only the beginning. A sentence without words has no problem and no tokens. */
void source_read(source_sentence *source, const translator *model, const char *text, bool cut);

/* On stderr: "mha: ", with the line the sentence stands in; its unknown words, with what may have
 * been meant. */
void source_print_place(const source_sentence *source);
void source_warn_unknown(const source_sentence *source);

/* A sentence with what came of it. */
typedef struct translated {
    const translator *model;
    const source_sentence *source;
    const translation *results; /* the best first; NULL if the source has a problem or no words */
    int count;
} translated;

/* The words of result `number`, without its end. Where the model says that a word is unknown, the
 * unknown word of the source stands that it looks at most. */
void target_tokens(const translated *t, int number, corpus_sentence *tokens);

/* Whether the result came to an end. */
bool target_ends(const translation *result);

/* What the grammar says. */
typedef struct gold_translation {
    bool known; /* the sentence is in its language */
    bool agrees;
    char text[CORPUS_TEXT_MAX];      /* known */
    char reason[CORPUS_MESSAGE_MAX]; /* not known */
} gold_translation;
void gold_find(gold_translation *gold, const translated *t);

#endif
