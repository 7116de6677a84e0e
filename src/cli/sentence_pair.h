/* SPDX-License-Identifier: MIT */
/* A sentence that the encoder reads, and the translation that the decoder reads with it: one that
 * was asked for, or what the model says. */
#ifndef CLI_SENTENCE_PAIR_H
#define CLI_SENTENCE_PAIR_H

#include "capture.h"
#include "translate_text.h"

/* Its tokens point into it: it stays where it is. */
typedef struct sentence_pair {
    source_sentence source;
    corpus_sentence target;                /* without ends */
    int target_numbers[CORPUS_TOKENS_MAX]; /* of its words */
    translation result;                    /* of the model; what was asked for is no result */
    char target_text[CORPUS_TEXT_MAX], target_buffer[CORPUS_TEXT_MAX]; /* with `to` */
} sentence_pair;

/* `to`: the translation; NULL: the model's. False, with a message on stderr, where there is nothing
 * to look at: no words, or too many. sentence_pair_free() either way. */
bool sentence_pair_read(sentence_pair *pair, const translator *model, const char *text,
                        const char *to, mha_pool *pool);
void sentence_pair_free(sentence_pair *pair);

/* What the heads do on it. NULL, with a message on stderr: no memory. */
capture *sentence_pair_capture(const sentence_pair *pair, const translator *model,
                               const capture_options *options, mha_pool *pool);

#endif
