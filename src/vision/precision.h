/* SPDX-License-Identifier: MIT */
/*
 * The average precision of a detector, at an overlap (intersection over union) of at least 0.5.
 *
 * What was found of one class is sorted by score, and each is right if a thing of that class in the
 * same picture overlaps it so much and was not found by one before it; of several things the one
 * that overlaps most counts. After the first n,
 *
 *      recall = right / things of the class        precision = right / n
 *
 * The precision at a recall is the largest one at this or a higher recall, and the average
 * precision is its mean over all recalls from 0 to 1 (interpolation at all points). The mean over
 * classes is that over those which occur in the truth.
 */
#ifndef VISION_PRECISION_H
#define VISION_PRECISION_H

#include <mha/mha.h>

#include <stdint.h>

#include "translator/box.h"

#define PRECISION_OVERLAP 0.5

/* A thing in a picture, of the truth or found. */
typedef struct detection {
    int64_t picture;
    int class;
    double score; /* of what is found, not NaN */
    box box;
    int right; /* output, of what is found: 1 + the number of its thing of the truth, or 0 */
} detection;

/* Things that are found, in any order, and those there are, in the order of their pictures. */
typedef struct detection_list {
    detection *found, *truths;
    size_t found_count, truth_count;
    int classes;
} detection_list;

/* of_class[classes] receives the average precision of each, NaN if none is in the truth; *mean that
 * over classes, NaN if there is none. Of equal scores the first one comes first. MHA_ERR_MEMORY. */
mha_status precision_measure(detection_list *list, double *of_class, double *mean);

#endif
