/* SPDX-License-Identifier: MIT */
/*
 * Every measure of every head on many sentences. The numbers of each sentence are kept, so that
 * means have intervals.
 *
 *      texts --subject_texts_run()--> weights --head_metrics--> samples --> means, intervals
 *
 * The grammar knows which words are related. How many of them a head finds is compared with a
 * baseline: the fixed offset that finds most of them.
 */
#ifndef HEADS_HEAD_STUDY_H
#define HEADS_HEAD_STUDY_H

#include "heads/head_measures.h"
#include "heads/subject.h"
#include "heads/word_links.h"

/* The most frequent offset from one word of a relation to the other, and its share. */
typedef struct head_baseline {
    int offset;
    double share;
    int count; /* words with that relation */
} head_baseline;

/* The baselines of all measures that have one. */
typedef struct head_baselines {
    head_baseline relation[ATTENTION_CROSS][RELATIONS]; /* of encoder and decoder */
    head_baseline alignment[2];                         /* of the row that says a word, reads it */
} head_baselines;

/* From the pairs that the grammar knows; others are skipped. */
void head_baselines_find(head_baselines *baselines, const head_pair *pairs, int count);

typedef struct head_interval {
    double low, high;
} head_interval;

/* The 95 % bootstrap interval of sum / count: of a thousand resamples of `count` samples, drawn
 * with replacement. NaN if nothing is counted. The same seed gives the same interval. */
head_interval head_interval_of(const head_sample *samples, int count, uint64_t seed);

typedef struct head_study {
    head_shape shape;
    int heads, sentences;
    int64_t tokens[ATTENTION_KINDS]; /* rows in all */
    head_sample *samples;            /* [heads][MEASURES][sentences] */
    head_sample *diversity;          /* [layers of all kinds][sentences] */
    bool begins[ATTENTION_KINDS];    /* the first column is a begin mark, in the last text */
    head_baselines baselines;
    word_links links; /* of cross-attention, where no grammar knows them; else none */
} head_study;

/* Measures all heads on these texts; subject_count_words() was called. `watch` is called after each
 * text; it may be NULL. NULL: out of memory, or words that the model does not have. */
head_study *head_study_create(const subject *model, const subject_texts *texts, mha_pool *pool,
                              void (*watch)(int done, int count));
void head_study_free(head_study *study);

/* The mean of a measure of a head; NaN: it was never counted. */
double head_study_mean(const head_study *study, int head, int measure);
/* The number of sentences, or of words with a relation, that the mean is over. */
double head_study_count(const head_study *study, int head, int measure);

/* The 95 % interval of the mean, see head_interval_of(). */
head_interval head_study_interval(const head_study *study, int head, int measure);

/* How different the heads of a layer are, see head_diversity(): the mean over sentences, and its
 * interval. NaN: the layer has a single head. Like all measures, it is one of whole words. */
double head_study_diversity(const head_study *study, attention_kind kind, int layer);
head_interval head_study_diversity_interval(const head_study *study, attention_kind kind,
                                            int layer);

/* The baseline of a relation or alignment measure of a kind; NULL for another measure. */
const head_baseline *head_study_baseline(const head_study *study, attention_kind kind, int measure);

#endif
