/* SPDX-License-Identifier: MIT */
/* Statistics of scenes: which combinations each split has, and that valid and test share none of
 * theirs with train. */
#ifndef SCENES_SCENE_STATS_H
#define SCENES_SCENE_STATS_H

#include "scenes/scene.h"

typedef struct scene_split_stats {
    int possible;                         /* combinations that belong to this split */
    int64_t shapes[SCENE_SHAPES_MAX + 1]; /* scenes of so many shapes */
    int combinations;                     /* different combinations that occurred */
    int own;                              /* those among them that belong to this split */
    int64_t hidden;                       /* scenes in which a shape hides some of another */
    double ground;                        /* share of pixels that show no shape */
} scene_split_stats;

typedef struct scene_stats {
    int64_t scenes; /* per split */
    scene_split_stats split[CORPUS_SPLITS];
    int shared; /* combinations of valid or test that occurred in train: must be 0 */
} scene_stats;

/* Counts the first `scenes` of every split. */
void scene_stats_measure(scene_stats *stats, uint64_t seed, int64_t scenes);

#endif
