/* SPDX-License-Identifier: MIT */
/* What the results of a sweep say: means over seeds, and differences from the fewest heads. */
#ifndef TRANSLATOR_SWEEP_SUMMARY_H
#define TRANSLATOR_SWEEP_SUMMARY_H

#include "base/mean_interval.h"
#include "translator/sweep_table.h"

typedef enum sweep_measure {
    SWEEP_VALID, /* loss on held-out sentences at the end */
    SWEEP_TRAIN, /* loss on training sentences at the end */
    SWEEP_GAP,   /* the first minus the second: what is not generalised */
    SWEEP_EXACT, /* share of held-out sentences translated exactly */
    SWEEP_STEPS, /* steps until the validation loss is the target's; NaN: not reached */
    SWEEP_MEASURES
} sweep_measure;

enum { SWEEP_LIST_MAX = 64, SWEEP_SEEDS_MAX = 1000 };

/* The trainings that are wanted, in this order: for each seed, for each data, for each heads. So
 * the trainings that are done at any time are complete for some seeds. */
typedef struct sweep_grid {
    int64_t data[SWEEP_LIST_MAX];
    int heads[SWEEP_LIST_MAX]; /* ascending */
    int data_count, head_count;
    uint64_t first_seed;
    int seeds;
} sweep_grid;

int sweep_grid_size(const sweep_grid *grid);
sweep_key sweep_grid_key(const sweep_grid *grid, int number);

/* The steps until the learning curve first has the loss `target`, linear between validations; the
 * first validation counts as its own step. NaN: it never has. */
double sweep_steps_to(const sweep_settings *settings, const sweep_result *result, double target);

/* The lowest loss that every training with this data reaches: the largest of their smallest
 * validation losses. NaN if there are no results. */
double sweep_common_target(const sweep_table *table, const sweep_grid *grid, int data);

double sweep_value(const sweep_settings *settings, const sweep_result *result,
                   sweep_measure measure, double target);

/* Of the trainings with these numbers of the grid's lists: the mean over the seeds that are done,
 * and the mean difference from grid->heads[0] over the seeds for which both are done. */
mean_interval sweep_mean(const sweep_table *table, const sweep_grid *grid, int data, int heads,
                         sweep_measure measure, double target);
mean_interval sweep_difference(const sweep_table *table, const sweep_grid *grid, int data,
                               int heads, sweep_measure measure, double target);

/* The number of those trainings that reach the target. */
int sweep_reached(const sweep_table *table, const sweep_grid *grid, int data, int heads,
                  double target);

#endif
