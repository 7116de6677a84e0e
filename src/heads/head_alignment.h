/* SPDX-License-Identifier: MIT */
/*
 * Heads of cross-attention as alignments, compared with alignments that people have made.
 *
 * A word of the target is aligned with the word of the source that has its largest weight: weights
 * on the pieces of a source word are added up, rows of the pieces of a target word averaged, marks
 * left out. There are two readings: the row that says a piece (it reads the piece before), and the
 * row that reads it. With the links M of the head, sure ones S and sure or possible ones P, the
 * alignment error rate is
 *
 *      1 - (|M and S| + |M and P|) / (|M| + |S|)
 *
 * over all sentences together (Och and Ney 2003).
 */
#ifndef HEADS_HEAD_ALIGNMENT_H
#define HEADS_HEAD_ALIGNMENT_H

#include "heads/given_words.h"
#include "heads/head_study.h"

typedef enum link_kind { LINK_NONE, LINK_POSSIBLE, LINK_SURE } link_kind;

/* A sentence pair with its links. */
typedef struct aligned_pair {
    given_words words[TRANSFORMER_SIDES];
    uint8_t *links;    /* [words of the target][words of the source] of link_kind */
    subject_text text; /* read from the texts of the words */
} aligned_pair;

void aligned_pair_free(const subject *subject, aligned_pair *pair);

/* Hits and links of weights on whole words, [words of the target][words of the source]: sum |M and
 * S| + |M and P|, count |M| + |S|. */
head_sample alignment_score(const aligned_pair *pair, const float *weights);

/* Adds the weights of one head to those of whole words: to[words of the target][words of the
 * source] += factor * joined weights. `reads`: the row that reads a word, not the one that says it.
 * False: out of memory. */
bool alignment_join(const aligned_pair *pair, const head_matrix *head, bool reads, float factor,
                    float *to);

enum { READINGS = 2 }; /* says, reads */

/*
 * Error rates of all heads of cross-attention, and of other ways to align, which are numbered after
 * them: the mean of the weights of each layer, the mean of all, and the diagonal, which aligns word
 * t of T with word floor((t + 1/2) S / T) of S.
 */
typedef struct alignment_study {
    int layers, heads, sentences;
    int64_t words[TRANSFORMER_SIDES], sure, possible; /* in all */
    head_sample *samples;                             /* [READINGS][alignment_ways()][sentences] */
} alignment_study;

/* The number of a way: a head, the mean of a layer, the mean of all, the diagonal. */
int alignment_ways(const alignment_study *study);
int alignment_way_head(const alignment_study *study, int layer, int head);
int alignment_way_layer(const alignment_study *study, int layer);
int alignment_way_all(const alignment_study *study);
int alignment_way_diagonal(const alignment_study *study);

/* NULL: out of memory. `watch` is called after each pair; it may be NULL. */
alignment_study *alignment_study_create(const subject *model, const aligned_pair *pairs, int count,
                                        mha_pool *pool, void (*watch)(int done, int count));
void alignment_study_free(alignment_study *study);

/* The error rate, and its 95 % interval over sentences; NaN: there are no links. */
double alignment_error_rate(const alignment_study *study, bool reads, int way);
head_interval alignment_interval(const alignment_study *study, bool reads, int way);

#endif
