/* SPDX-License-Identifier: MIT */
/*
 * Sentences as text, before and after translation:
 *
 *      text --source_read()--> tokens, word numbers, unknown words
 *      translation --target_tokens()--> tokens, with unknown words replaced by those of the source
 */
#ifndef TRANSLATOR_SENTENCE_H
#define TRANSLATOR_SENTENCE_H

#include "translator/translator.h"

enum { SUGGESTIONS_MAX = 3, PROBLEM_MAX = 160 };

/* A word of the source that is not in the vocabulary, and similar words. */
typedef struct unknown_word {
    int position; /* index of the token */
    const char *near[SUGGESTIONS_MAX];
    int near_count;
} unknown_word;

typedef struct source_sentence {
    int64_t line;               /* line of standard input, from 1; 0 for an argument */
    char text[CORPUS_TEXT_MAX]; /* the input, made printable and on one line */
    corpus_sentence tokens;
    int numbers[CORPUS_TOKENS_MAX];
    unknown_word unknown[CORPUS_TOKENS_MAX];
    int unknown_count;
    char problem[PROBLEM_MAX];        /* why it cannot be translated; "" if it can */
    char outside[CORPUS_MESSAGE_MAX]; /* why the grammar of the model, if it is the laboratory, does
                                         not have it; "" if it does or is not known */
    char buffer[CORPUS_TEXT_MAX];     /* contains the tokens */
} source_sentence;

/* Makes untrusted text printable and puts it on one line. Returns false if it is too long. */
bool sentence_clean(const char *text, char clean[CORPUS_TEXT_MAX]);

/* Reads a sentence; `source` has its line already. `cut` means that the text was truncated, which
 * is a problem. A sentence without words has no problem and no tokens. */
void source_read(source_sentence *source, const translator *model, const char *text, bool cut);

/* Print to stderr: "mha: " and the line number, if there is one; warnings about unknown words, with
 * suggestions, or else that the sentence is outside the grammar of the laboratory. */
void source_print_place(const source_sentence *source);
void source_warn(const source_sentence *source);

/* A sentence with its translations. */
typedef struct translated {
    const translator *model;
    const source_sentence *source;
    const translation *results; /* best first; NULL if the source has a problem or no words */
    int count;
} translated;

/* The words of result `number`, without WORD_END. An unknown word is replaced by the unknown word
 * of the source that the model attends to most. */
void target_tokens(const translated *t, int number, corpus_sentence *tokens);

/* Whether the result is complete, that is, ends with WORD_END. */
bool target_ends(const translation *result);

/* The translation by the grammar of the corpus, for comparison. */
typedef struct gold_translation {
    bool known;                      /* the sentence is in the language of the corpus */
    bool agrees;                     /* the best result is the same */
    char text[CORPUS_TEXT_MAX];      /* if known: the French sentence */
    char reason[CORPUS_MESSAGE_MAX]; /* if not known: the message of corpus_translate() */
} gold_translation;
void gold_find(gold_translation *gold, const translated *t);

#endif
