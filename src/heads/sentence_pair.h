/* SPDX-License-Identifier: MIT */
/* A text of the user as a sentence pair: the words that the encoder reads, and the translation that
 * the decoder reads, either a given one or the model's own, which may be made with changed heads.
 */
#ifndef HEADS_SENTENCE_PAIR_H
#define HEADS_SENTENCE_PAIR_H

#include "heads/capture.h"
#include "translator/sentence.h"

enum { PAIR_MESSAGE_MAX = CORPUS_TEXT_MAX + PROBLEM_MAX + 8 };

typedef struct pair_request {
    const char *text;
    const char *target;                      /* the translation; NULL: the model's own */
    const uint8_t *changes[ATTENTION_KINDS]; /* [layers][heads] of head_mode; NULL: none */
    const uint8_t *picture; /* of a model that reads pictures, [channels][size][size]; NULL: `text`
                             * names its file */
} pair_request;

/* Its tokens point into it, so it must not be moved or copied. */
typedef struct sentence_pair {
    source_sentence source;
    corpus_sentence target;                /* without WORD_BEGIN and WORD_END */
    int target_numbers[CORPUS_TOKENS_MAX]; /* of its words */
    translation result;                    /* of the model; empty with a given translation */
    bool ends;                             /* false: the model's translation has no WORD_END */
    char target_text[CORPUS_TEXT_MAX], target_buffer[CORPUS_TEXT_MAX]; /* of a given one */
} sentence_pair;

/* Reads a request. False, with a message: there are no words or too many of them, or out of memory.
 * sentence_pair_free() is called in either case. */
bool sentence_pair_read(sentence_pair *pair, const translator *model, const pair_request *request,
                        mha_pool *pool, char message[PAIR_MESSAGE_MAX]);
void sentence_pair_free(sentence_pair *pair);

/* Prints warnings to stderr: unknown words, and a translation without an end. */
void sentence_pair_warn(const sentence_pair *pair);

/* Runs the model on the pair, see capture_create(). NULL: out of memory. */
capture *sentence_pair_capture(const sentence_pair *pair, const translator *model,
                               const capture_options *options, mha_pool *pool);

/* The translation that the model writes under these options, word by word, each the likeliest; its
 * weights are for free(). False: out of memory. */
bool sentence_pair_write(const sentence_pair *pair, const translator *model,
                         const capture_options *options, mha_pool *pool, translation *result);

#endif
