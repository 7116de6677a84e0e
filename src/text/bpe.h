/* SPDX-License-Identifier: MIT */
/*
 * Byte pair encoding: a word begins as its characters, and pairs are merged, the pair of the lowest
 * rank first and of equal ones the leftmost. There are two sources of ranks: a list of merges, or
 * the vocabulary itself, whose ids are the ranks of the pieces (tiktoken).
 */
#ifndef TEXT_BPE_H
#define TEXT_BPE_H

#include "text/bpe_dropout.h"
#include "text/text_buffer.h"
#include "text/token_list.h"
#include "text/vocabulary.h"

typedef struct bpe bpe;

typedef struct bpe_config {
    bool by_vocabulary; /* ranks are ids; there are no merges */
    bool whole_words;   /* a word that is a piece is that piece, whatever the merges */
    bool byte_fallback; /* characters without a piece become "<0x41>" pieces */
    bool fuse_unknown;  /* neighbouring unknown characters become one token */
    int32_t unknown;    /* -1: characters without a piece give no token */
    const char *prefix; /* of characters that do not begin a word; NULL: none */
    const char *suffix; /* of the last character of a word; NULL: none */
} bpe_config;

/* The vocabulary must stay until bpe_free(). NULL: out of memory. */
bpe *bpe_create(const vocabulary *v, const bpe_config *config);
void bpe_free(bpe *model);

/* Room for so many merges, so that the table need not grow. False: out of memory. */
bool bpe_reserve(bpe *model, size_t merges);

/* Merges two pieces into a third, with the next rank; of equal pairs the last one counts. False:
 * out of memory. */
bool bpe_add_merge(bpe *model, int32_t left, int32_t right, int32_t merged);

/* Memory for the work on one text. `dropout` may be NULL: none; else its numbers are drawn one
 * after another for all words. */
typedef struct bpe_work bpe_work;
bpe_work *bpe_work_create(const bpe_dropout *dropout);
void bpe_work_free(bpe_work *work);

/* Appends the tokens of a word, with their bytes of it. O(n log n). */
void bpe_encode(const bpe *model, const char *word, size_t length, bpe_work *work,
                token_list *list);

#endif
