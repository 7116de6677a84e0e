/* SPDX-License-Identifier: MIT */
/* Means and differences of a sweep's results (sweep_summary.h). */
#include "translator/sweep_summary.h"

#include <math.h>

int sweep_grid_size(const sweep_grid *g)
{
    return g->seeds * g->data_count * g->head_count;
}

static sweep_key key_of(const sweep_grid *g, int seed, int data, int heads)
{
    return (sweep_key){g->data[data], g->heads[heads], g->first_seed + (uint64_t)seed};
}

sweep_key sweep_grid_key(const sweep_grid *g, int number)
{
    const int per_seed = g->data_count * g->head_count;
    return key_of(g, number / per_seed, number % per_seed / g->head_count, number % g->head_count);
}

/* ------------------------------------------------------------ measures ----- */

double sweep_steps_to(const sweep_settings *s, const sweep_result *r, double target)
{
    for (int n = 0; n < s->points; n++) {
        if (!(r->valid[n] <= target))
            continue;
        const double step = (double)sweep_step(s, n);
        if (n == 0)
            return step;
        const double before = (double)sweep_step(s, n - 1);
        return before +
               (step - before) * (r->valid[n - 1] - target) / (r->valid[n - 1] - r->valid[n]);
    }
    return NAN;
}

static double lowest(const sweep_settings *s, const sweep_result *r)
{
    double least = r->valid[0];
    for (int n = 1; n < s->points; n++)
        least = r->valid[n] < least ? r->valid[n] : least;
    return least;
}

double sweep_common_target(const sweep_table *t, const sweep_grid *g, int data)
{
    double target = NAN;
    for (int n = 0; n < sweep_grid_size(g); n++) {
        const sweep_key key = sweep_grid_key(g, n);
        const sweep_result *const r = sweep_table_find(t, &key);
        if (r == NULL || key.data != g->data[data])
            continue;
        const double least = lowest(&t->settings, r);
        target = isnan(target) || least > target ? least : target;
    }
    return target;
}

double sweep_value(const sweep_settings *s, const sweep_result *r, sweep_measure measure,
                   double target)
{
    const double valid = r->valid[s->points - 1];
    switch (measure) {
    case SWEEP_VALID:
        return valid;
    case SWEEP_TRAIN:
        return r->train_loss;
    case SWEEP_GAP:
        return valid - r->train_loss;
    case SWEEP_EXACT:
        return r->exact;
    case SWEEP_STEPS:
        return sweep_steps_to(s, r, target);
    case SWEEP_MEASURES:
        break;
    }
    return NAN;
}

/* --------------------------------------------------------------- means ----- */

mean_interval sweep_mean(const sweep_table *t, const sweep_grid *g, int data, int heads,
                         sweep_measure measure, double target)
{
    double values[SWEEP_SEEDS_MAX];
    int count = 0;
    for (int seed = 0; seed < g->seeds; seed++) {
        const sweep_key key = key_of(g, seed, data, heads);
        const sweep_result *const r = sweep_table_find(t, &key);
        if (r != NULL)
            values[count++] = sweep_value(&t->settings, r, measure, target);
    }
    return mean_interval_of(values, count);
}

mean_interval sweep_difference(const sweep_table *t, const sweep_grid *g, int data, int heads,
                               sweep_measure measure, double target)
{
    double values[SWEEP_SEEDS_MAX];
    int count = 0;
    for (int seed = 0; seed < g->seeds; seed++) {
        const sweep_key key = key_of(g, seed, data, heads), base = key_of(g, seed, data, 0);
        const sweep_result *const r = sweep_table_find(t, &key);
        const sweep_result *const from = sweep_table_find(t, &base);
        if (r != NULL && from != NULL)
            values[count++] = sweep_value(&t->settings, r, measure, target) -
                              sweep_value(&t->settings, from, measure, target);
    }
    return mean_interval_of(values, count);
}

int sweep_reached(const sweep_table *t, const sweep_grid *g, int data, int heads, double target)
{
    int count = 0;
    for (int seed = 0; seed < g->seeds; seed++) {
        const sweep_key key = key_of(g, seed, data, heads);
        const sweep_result *const r = sweep_table_find(t, &key);
        count += r != NULL && !isnan(sweep_steps_to(&t->settings, r, target));
    }
    return count;
}
