/* SPDX-License-Identifier: MIT */
/* Statistics of the corpus: the sizes of the splits, and what valid and test share with train (held
 * out combinations must be 0). */
#ifndef CORPUS_STATS_H
#define CORPUS_STATS_H

#include "corpus/corpus.h"

typedef struct corpus_split_stats {
    int64_t distinct; /* distinct English sentences */
    int64_t tokens[CORPUS_SIDES];
    int shortest[CORPUS_SIDES], longest[CORPUS_SIDES];
    int words[CORPUS_SIDES]; /* words of the vocabulary that occurred */
    int64_t combinations;    /* distinct combinations that occurred */
    int64_t held_out;        /* those among them that belong to this split */
} corpus_split_stats;

typedef struct corpus_stats {
    int64_t sentences; /* per split */
    int vocabulary[CORPUS_SIDES];
    int64_t possible[ROLE_KINDS][CORPUS_SPLITS]; /* combinations the lexicon allows, by split */
    corpus_split_stats split[CORPUS_SPLITS];
    int64_t shared_combinations; /* held out by valid or test, but occurred in train */
    int64_t shared_sentences;    /* sentences of valid or test that occurred in train */
} corpus_stats;

/* Counts the first `sentences` of every split. False if memory runs out. */
bool corpus_stats_measure(corpus_stats *stats, uint64_t seed, int64_t sentences);

#endif
