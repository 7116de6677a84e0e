/* SPDX-License-Identifier: MIT */
/*
 * How much data a convolution and attention need: both of filter_learner.h are trained on few and
 * on many pictures, and their errors on new pictures are compared.
 *
 *      near      imitate an unknown 3 x 3 filter from 3 to 4 channels, whose outputs have noise
 *      far       the same, but three of the nine taps lie outside of 3 x 3
 *      classes   tell apart four textures: noise through four unknown 3 x 3 filters
 *
 * Both have the same pictures, number of steps, batches and optimiser. Both choose, by 64 more
 * pictures, the best of the same learning rates and of some states on the way. The error of near
 * and far is the share of squares of the outputs without noise that is lost; that of classes is the
 * share of wrong answers.
 */
#ifndef CLAIMS_DATA_STUDY_H
#define CLAIMS_DATA_STUDY_H

#include "base/mean_interval.h"
#include "claims/filter_learner.h"

enum { STUDY_SIZES_MAX = 5, STUDY_SEEDS_MAX = 16, STUDY_RATES_MAX = 4 };

typedef enum study_task { STUDY_NEAR, STUDY_FAR, STUDY_CLASSES, STUDY_TASKS } study_task;

extern const char *const study_task_names[STUDY_TASKS];

/* What is run. */
typedef struct study_plan {
    uint64_t seed;
    int sizes[STUDY_SIZES_MAX]; /* pictures to learn from, ascending */
    int size_count, seeds, steps;
    int fresh; /* new pictures on which errors are measured */
    double rates[STUDY_RATES_MAX];
    int rate_count;
    bool tasks[STUDY_TASKS];
} study_plan;

/* What is measured: errors on new pictures, and what one picture costs. */
typedef struct study_result {
    study_plan plan;
    double errors[STUDY_TASKS][STUDY_SIZES_MAX][LEARNER_KINDS][STUDY_SEEDS_MAX];
    double products[STUDY_TASKS][LEARNER_KINDS]; /* multiply-adds of a picture, forward */
    ptrdiff_t weights[STUDY_TASKS][LEARNER_KINDS];
} study_result;

/* A plan for some seconds, and one for a table. */
study_plan study_plan_short(uint64_t seed);
study_plan study_plan_full(uint64_t seed);

/* Runs the plan, with a task for every seed on the pool; the numbers do not depend on it. If it is
 * not NULL, `progress` is called before each size of each task. */
mha_status study_run(study_result *result, const study_plan *plan, mha_pool *pool,
                     void (*progress)(study_task task, int size));

/* Mean over seeds; and of the differences attention - convolution, seed by seed. */
mean_interval study_mean(const study_result *r, study_task task, int size, learner_kind kind);
mean_interval study_difference(const study_result *r, study_task task, int size);

#endif
