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

#include "heads/head_measures.h"
#include "heads/head_pairs.h"

/* The offset from one word of a relation to the other that is right most often. */
typedef struct head_baseline {
    int offset;
    double share;
    int count; /* words with that relation */
} head_baseline;

typedef struct head_baselines {
    head_baseline relation[ATTENTION_CROSS][RELATIONS]; /* of encoder and decoder */
    head_baseline alignment[2];                         /* of the row that says a word, reads it */
} head_baselines;

void head_baselines_find(head_baselines *baselines, const head_pair *pairs, int count);

typedef struct head_interval {
    double low, high;
} head_interval;

/* 95 % of the sums over counts that come of drawing `count` samples anew a thousand times. NaN
 * where nothing is counted. The same seed draws the same. */
head_interval head_interval_of(const head_sample *samples, int count, uint64_t seed);

typedef struct head_study {
    transformer_config config;
    int heads, sentences;
    int64_t tokens[ATTENTION_KINDS]; /* rows in all */
    head_sample *samples;            /* [heads][MEASURES][sentences] */
    head_baselines baselines;
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
