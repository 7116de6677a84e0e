/* SPDX-License-Identifier: MIT */
/*
 * Every measure of one head on one sentence. "mha heads" and the pages of "mha view" and
 * "mha serve" take their numbers from here, so that a head and a sentence have one set of numbers.
 *
 *      weights (head_matrix), words (head_scene) --head_measure_sentence()--> samples
 *      samples of many sentences                 --head_study-->              means, intervals
 *      means                                     --head_roles-->              a role
 */
#ifndef HEADS_HEAD_MEASURES_H
#define HEADS_HEAD_MEASURES_H

#include "heads/capture.h"
#include "heads/head_metrics.h"

enum { OFFSET_FAR = 3, OFFSETS = 2 * OFFSET_FAR + 1 };

/* A relation of the grammar is measured from its first word to its second and back: number
 * 2 * role and 2 * role + 1. Cross-attention is measured against the alignment instead. */
enum { RELATIONS = 2 * ROLE_KINDS };

typedef enum head_measure {
    MEASURE_MASS,                             /* + OFFSET_FAR + r: mean weight at i + r */
    MEASURE_ARGMAX = MEASURE_MASS + OFFSETS,  /* + OFFSET_FAR + r: share of largest there */
    MEASURE_FIRST = MEASURE_ARGMAX + OFFSETS, /* weight on the first column */
    MEASURE_END,                              /* on the marks after it, or on the last column if
                                               * there are none; not of the decoder */
    MEASURE_ENTROPY,
    MEASURE_SMOOTHED,
    MEASURE_BREADTH,
    MEASURE_CONFIDENCE, /* without the special words, as the next three */
    MEASURE_DISTANCE,
    MEASURE_REACH, /* distance as a share of the columns */
    MEASURE_RARE,  /* share of largest weights on the rarest word */
    MEASURE_DUPLICATE,
    MEASURE_INDUCTION,
    MEASURE_QUESTION,                            /* weight on "?", of sentences that have one */
    MEASURE_RELATION,                            /* + relation: share of words found */
    MEASURE_SAYS = MEASURE_RELATION + RELATIONS, /* alignment of the row that says a word */
    MEASURE_READS,                               /* of the row that reads it, one below */
    MEASURE_F_SAYS,                              /* 1 - alignment error rate, both readings */
    MEASURE_F_READS,
    MEASURE_ONE, /* share of rows that attend to one same word */
    MEASURES
} head_measure;

/* The name of a measure in tables, filters and JSON; NULL for one that is not shown by itself. */
const char *head_measure_name(int measure);

/* A sum and the number of rows, words or sentences it is over; a count of 0: not measured. */
typedef struct head_sample {
    float sum, count;
} head_sample;

/* The words of a sentence as one kind of attention sees them. */
typedef struct head_scene {
    attention_kind kind;
    const int *tokens;   /* [columns] the same number for the same word */
    const bool *special; /* [columns] marks such as [CLS] and </s>; NULL: none */
    bool begins;         /* the first column is a mark: the begin mark */
    /* Tokens that continue the word of the token before them: [rows], [columns]; NULL: none. Rows
     * of cross-attention are those of the tokens that they say. */
    const bool *row_continues, *column_continues;
    int question;            /* the column of "?"; -1: none */
    const int *frequency;    /* by token: how often it occurs; NULL: not known */
    const corpus_pair *gold; /* NULL: the grammar does not know this pair */
    /* Of cross-attention: which columns the word that a row says comes from, as bits, [link_count],
     * as far as that is estimated (word_links.h); NULL: what `gold` knows counts. */
    const uint64_t *links;
    int link_count;
} head_scene;

/* Measures that do not apply to the kind, or whose words are not known, have a count of 0. Words
 * that are cut into tokens are measured as a whole (head_join.h). False: out of memory. */
bool head_measure_sentence(const head_matrix *m, const head_scene *scene,
                           head_sample samples[MEASURES]);

/* Row and column of a relation in a matrix of the kind, from its second word to its first if
 * `back`; false where the row cannot see it. */
bool head_relation_place(const corpus_role *role, bool back, attention_kind kind, int *from,
                         int *to);

/* What the measures need to know of a model's words. */
typedef struct head_words {
    int *frequency[TRANSFORMER_SIDES]; /* by word number, in training sentences of the corpus;
                                        * NULL: not known */
    bool pieces;                       /* measure tokens, not the words that they are pieces of */
    int question[TRANSFORMER_SIDES];   /* the number of "?"; -1: there is none, or it has no role */
} head_words;

/* False if out of memory. head_words_free() either way. */
bool head_words_count(head_words *words, const translator *model);
void head_words_free(head_words *words);

/* The scene of a captured sentence, which must outlive it. */
head_scene head_scene_of(const capture *c, attention_kind kind, const head_words *words,
                         const corpus_pair *gold);

#endif
