/* SPDX-License-Identifier: MIT */
/* A sentence that the encoder reads, and the translation that the decoder reads with it: one that
 * was asked for, or what the model says, perhaps with some heads changed. */
#ifndef HEADS_SENTENCE_PAIR_H
#define HEADS_SENTENCE_PAIR_H

#include "heads/capture.h"
#include "model/sentence.h"

enum { PAIR_MESSAGE_MAX = CORPUS_TEXT_MAX + PROBLEM_MAX + 8 };

typedef struct pair_request {
    const char *text;
    const char *target;                      /* what the decoder reads; NULL: what the model says */
    const uint8_t *changes[ATTENTION_KINDS]; /* [layers][heads] of head_mode; NULL: none */
} pair_request;

/* Its tokens point into it: it stays where it is. */
typedef struct sentence_pair {
    source_sentence source;
    corpus_sentence target;                /* without ends */
    int target_numbers[CORPUS_TOKENS_MAX]; /* of its words */
    translation result;                    /* of the model; what was asked for is no result */
    bool ends; /* the translation came to an end; true for one that was asked for */
    char target_text[CORPUS_TEXT_MAX], target_buffer[CORPUS_TEXT_MAX]; /* with a target */
} sentence_pair;

/* False, with a message: there is nothing to look at (no words, or too many), or no memory.
 * sentence_pair_free() either way. */
bool sentence_pair_read(sentence_pair *pair, const translator *model, const pair_request *request,
                        mha_pool *pool, char message[PAIR_MESSAGE_MAX]);
void sentence_pair_free(sentence_pair *pair);

/* On stderr: what was not understood, and what did not come to an end. */
void sentence_pair_warn(const sentence_pair *pair);

/* What the heads do on it. NULL: no memory. */
capture *sentence_pair_capture(const sentence_pair *pair, const translator *model,
                               const capture_options *options, mha_pool *pool);

#endif
