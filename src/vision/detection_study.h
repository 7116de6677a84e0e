/* SPDX-License-Identifier: MIT */
/*
 * How well a model finds the shapes of scenes: its average precision (precision.h) and, of what is
 * found and right, whether the cross heads of its query look at the shape (pointing.h; the place of
 * a row is the number of the query), and where the shapes of each query are.
 */
#ifndef VISION_DETECTION_STUDY_H
#define VISION_DETECTION_STUDY_H

#include "base/mean_interval.h"
#include "vision/detector.h"
#include "vision/pointing.h"

/* What is found by one query and right: how much, and the mean and deviation of the centres as
 * shares of the side. */
typedef struct query_study {
    int64_t right;
    double x, y, x_deviation, y_deviation;
} query_study;

typedef struct detection_study {
    int64_t scenes, things, right; /* shapes, and those that are found, whatever the score */
    double of_class[SCENE_THINGS]; /* NaN: there is none */
    int64_t class_things[SCENE_THINGS];
    double mean;
    int queries;
    query_study *of_query; /* [queries] */
    pointing_result pointing;
} detection_study;

/* Measures scenes [0, count) of a split. The caller ends with detection_study_free() in any case.
 * MHA_ERR_SHAPE: the model does not read pictures of the size of scenes, or has fewer queries than
 * scenes have shapes. */
mha_status detection_study_measure(detection_study *study, const scene_model *model, uint64_t seed,
                                   corpus_split split, int64_t count);
void detection_study_free(detection_study *study);

#endif
