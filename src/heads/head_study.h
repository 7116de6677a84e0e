/* SPDX-License-Identifier: MIT */
/*
 * Many sentences through all heads: every measure of every head, sentence by sentence, so that
 * means have intervals.
 *
 *      pairs --capture_create()--> weights --head_metrics--> samples --> means, intervals
 *
 * The grammar says which words belong together. Whether a head finds them is held against the
 * fixed offset that finds most of them.
 */
#ifndef HEADS_HEAD_STUDY_H
#define HEADS_HEAD_STUDY_H

#include "heads/head_pairs.h"

enum { OFFSET_FAR = 3, OFFSETS = 2 * OFFSET_FAR + 1 };

/* A relation is looked for from its first word to its second and back: number 2 * role and
 * 2 * role + 1. Cross-attention has its own: a French word and those it comes from. */
enum { RELATIONS = 2 * ROLE_KINDS };

typedef enum head_measure {
    MEASURE_MASS,                             /* + OFFSET_FAR + r: mean weight at i + r */
    MEASURE_ARGMAX = MEASURE_MASS + OFFSETS,  /* + OFFSET_FAR + r: share of largest there */
    MEASURE_FIRST = MEASURE_ARGMAX + OFFSETS, /* weight on the first column */
    MEASURE_END,                              /* on the end of the source; not of the decoder */
    MEASURE_ENTROPY,
    MEASURE_SMOOTHED,
    MEASURE_BREADTH,
    MEASURE_CONFIDENCE, /* special words left out, as in the next three */
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
    MEASURES
} head_measure;

/* The offset from one word of a relation to the other that is right most often. */
typedef struct head_baseline {
    int offset;
    double share;
    int count; /* words with that relation */
} head_baseline;

typedef struct head_sample {
    float sum, count;
} head_sample;

typedef struct head_interval {
    double low, high;
} head_interval;

/* 95 % of the sums over counts that come of drawing `count` samples anew a thousand times. NaN
 * where nothing is counted. The same seed draws the same. */
head_interval head_interval_of(const head_sample *samples, int count, uint64_t seed);

typedef struct head_study {
    transformer_config config;
    int heads, sentences;
    int64_t tokens[ATTENTION_KINDS];                     /* rows in all */
    head_sample *samples;                                /* [heads][MEASURES][sentences] */
    head_baseline baselines[ATTENTION_KINDS][RELATIONS]; /* encoder, decoder */
    head_baseline alignment[2];                          /* by what rows say, what they read */
} head_study;

/* NULL: no memory, or words that the model does not have. `watch` is told how far it is; NULL:
 * nobody. */
head_study *head_study_create(const translator *model, const head_pair *pairs, int count,
                              mha_pool *pool, void (*watch)(int done, int count));
void head_study_free(head_study *study);

/* NaN where nothing of the kind occurred. */
double head_study_mean(const head_study *study, int head, int measure);
/* What the mean is over: sentences, or words with a relation. */
double head_study_count(const head_study *study, int head, int measure);

/* Of the mean, 95 %: by drawing sentences anew a thousand times. */
head_interval head_study_interval(const head_study *study, int head, int measure);

/* The baseline of a relation or alignment measure of a kind; NULL for another measure. */
const head_baseline *head_study_baseline(const head_study *study, attention_kind kind, int measure);

#endif
