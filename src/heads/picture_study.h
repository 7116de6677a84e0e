/* SPDX-License-Identifier: MIT */
/* Every measure of every head on many pictures; those of each picture are kept, so that means have
 * intervals. As head_study.h for sentences. */
#ifndef HEADS_PICTURE_STUDY_H
#define HEADS_PICTURE_STUDY_H

#include "heads/head_study.h"
#include "heads/picture_roles.h"

typedef struct picture_study {
    head_shape shape;
    int heads, pictures, across;
    int with_object;      /* pictures whose object is known */
    head_sample *samples; /* [heads][PICTURE_MEASURES][pictures] */
} picture_study;

/* Measures all heads on pictures of a model that reads them. `watch` is called after each; it may
 * be NULL. NULL: out of memory. */
picture_study *picture_study_create(const subject *model, const subject_texts *texts,
                                    mha_pool *pool, void (*watch)(int done, int count));
void picture_study_free(picture_study *study);

/* The mean of a measure of a head, NaN: it was never counted; its 95 % bootstrap interval. */
double picture_study_mean(const picture_study *study, int head, picture_measure measure);
head_interval picture_study_interval(const picture_study *study, int head, picture_measure measure);
/* How many rows it is a mean over. */
double picture_study_count(const picture_study *study, int head, picture_measure measure);

/* The same of all heads of a layer together. */
double picture_study_layer_mean(const picture_study *study, int layer, picture_measure measure);
head_interval picture_study_layer_interval(const picture_study *study, int layer,
                                           picture_measure measure);

/* The mean distance of equal weights in a square of across x across patches, in patches. */
double picture_even_distance(int across);

picture_role picture_study_role(const picture_study *study, int head);

#endif
