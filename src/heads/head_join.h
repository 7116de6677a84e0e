/* SPDX-License-Identifier: MIT */
/*
 * Words that a tokenizer has cut into pieces, joined again: the weight to a word is the sum over
 * its pieces, the weight from a word the mean over its pieces (Clark et al. 2019), so rows still
 * sum to 1. Row and column numbers are then those of words.
 */
#ifndef HEADS_HEAD_JOIN_H
#define HEADS_HEAD_JOIN_H

#include "heads/head_measures.h"

/* Which word each token belongs to. Marks are words of their own. */
typedef struct word_pieces {
    int tokens, words;
    int *word_of; /* [tokens] */
} word_pieces;

/* continues: [tokens], or NULL: every token is a word. False: out of memory. */
bool word_pieces_make(word_pieces *pieces, const bool *continues, int tokens);
void word_pieces_free(word_pieces *pieces);

/* to[rows->words][columns->words] = the joined weights. */
void word_pieces_join(const word_pieces *rows, const word_pieces *columns, const float *weights,
                      float *to);

/* A head on whole words. */
typedef struct head_join {
    head_matrix matrix;
    head_scene scene;
    float *weights;
    int *tokens;
    bool *special;
} head_join;

/* Whether any token continues a word. */
bool head_join_needed(const head_matrix *m, const head_scene *scene);

/* False: out of memory. head_join_free() either way. */
bool head_join_make(head_join *join, const head_matrix *m, const head_scene *scene);
void head_join_free(head_join *join);

#endif
