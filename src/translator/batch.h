/* SPDX-License-Identifier: MIT */
/*
 * Sentence pairs as a model reads them: word numbers of all sentences one after another, without
 * padding; or pictures with their classes, with what there is to say about them, or with the things
 * in them.
 */
#ifndef TRANSLATOR_BATCH_H
#define TRANSLATOR_BATCH_H

#include "corpus/corpus.h"
#include "translator/box.h"
#include "translator/transformer.h"

/* A thing in a picture: a class of each of two kinds (such as colour and kind), and where it is. */
enum { THING_CLASSES = 2 };
typedef struct batch_thing {
    int classes[THING_CLASSES];
    box box;
} batch_thing;

typedef struct batch {
    int pairs;
    int64_t *starts[TRANSFORMER_SIDES]; /* [pairs + 1] first row of each sentence */
    ptrdiff_t rows[TRANSFORMER_SIDES];
    int longest[TRANSFORMER_SIDES];    /* rows of the longest sentence */
    int *words[TRANSFORMER_SIDES];     /* [rows] input of encoder and decoder */
    int *positions[TRANSFORMER_SIDES]; /* [rows] 0 for the first word of a sentence */
    int *expected;                     /* [rows of the target] the word to be predicted */

    /* Of pictures; a picture with a class is a pair whose target is one row that expects it. */
    float *pixels;         /* [pairs][picture_floats]; NULL: not pictures */
    size_t picture_floats; /* channels * side * side */
    int *others;           /* [pairs] the class of a second picture that is mixed in */
    float *shares;         /* [pairs] the share of that one, 0: none. Both NULL: no classes */

    /* Of pictures with things, whose targets are queries. */
    int things_room;     /* of a picture */
    int *thing_counts;   /* [pairs] */
    batch_thing *things; /* [pairs][things_room]; NULL: none are known of these pictures */
} batch;

/* The ids of a pair of sentences, without the marks around them; and those marks: what the decoder
 * reads first, and what ends a sentence of either side. */
typedef struct id_pair {
    const int *ids[TRANSFORMER_SIDES];
    int count[TRANSFORMER_SIDES];
} id_pair;

typedef struct sentence_marks {
    int begin, end;
} sentence_marks;

/* A batch of pairs of any length. Returns NULL if out of memory. */
batch *batch_of_ids(const id_pair *pairs, int count, sentence_marks marks);

/* The vocabularies of the corpus. The number of a word is its index plus WORDS_SPECIAL. */
typedef struct word_numbers {
    corpus_vocabulary side[CORPUS_SIDES];
} word_numbers;
void word_numbers_fill(word_numbers *numbers);

/* A pair as word numbers, without WORD_BEGIN and WORD_END. */
typedef struct numbered_pair {
    int words[CORPUS_SIDES][CORPUS_TOKENS_MAX], count[CORPUS_SIDES];
} numbered_pair;

/* A batch of the given pairs. Returns NULL if out of memory. */
batch *batch_pack(const numbered_pair *pairs, int count);

/* A batch of sentences of a split, by index. `unknown` is as in training_config. Returns NULL if
 * out of memory. */
batch *batch_create(const word_numbers *numbers, uint64_t seed, corpus_split split,
                    const uint64_t *indices, int pairs, double unknown);
/* A batch of pictures of `tokens` rows each, for the caller to fill in: pixels, expected, others
 * and shares are 0. Returns NULL if out of memory. */
batch *batch_of_pictures(int pictures, int tokens, size_t picture_floats);
/* The ids of a caption without the marks around it, and what the decoder reads first. */
typedef struct caption_ids {
    const int *ids;
    int count, begin;
} caption_ids;

/* A batch of pictures with captions, for the caller to fill in the pixels, which are 0. Returns
 * NULL if out of memory. */
batch *batch_of_captions(const caption_ids *captions, int pictures, int end, int tokens,
                         size_t picture_floats);
/* A batch of pictures of `tokens` rows, with `queries` rows as the target of each, for the caller
 * to fill in: pixels and the numbers of things, at most `room` each, are 0. Returns NULL if out of
 * memory. */
batch *batch_of_queries(int pictures, int tokens, int queries, int room, size_t picture_floats);
/* A copy of pairs [first, end). Returns NULL if out of memory. */
batch *batch_part(const batch *whole, int first, int end);
void batch_free(batch *batch);

#endif
