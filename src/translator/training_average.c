/* SPDX-License-Identifier: MIT */
/*
 * Averages of the parameters over time, which generalise better than the last values: a moving
 * average with weights that decay exponentially, or the mean of some points at the end of the
 * training.
 */
#include "translator/training_parts.h"

/* The number of points of the mean that a training has passed after `done` steps. The last point is
 * the end of the training, and the others come before it at equal distances. */
static int64_t points_passed(const training_config *c, int64_t done)
{
    const int64_t first = c->steps - (int64_t)(c->average - 1) * c->average_every;
    return done < first ? 0 : 1 + (done - first) / c->average_every;
}

static bool is_point(const training_config *c, int64_t done)
{
    return points_passed(c, done) > points_passed(c, done - 1);
}

bool training_has_average(const training *t)
{
    return t->average && t->step > 0 &&
           (t->config.ema > 0.0 || points_passed(&t->config, t->step) > 0);
}

/* The first steps count less, so that the initial values are soon forgotten. */
static double moving_share(double decay, int64_t step)
{
    const double early = (double)step / (double)(step + 9);
    return 1.0 - (early < decay ? early : decay);
}

void training_update_average(training *t)
{
    const training_config *const c = &t->config;
    if (!t->average)
        return;
    if (c->ema > 0.0)
        optimizer_average(&t->optimizer, t->values, (float)moving_share(c->ema, t->step - 1),
                          t->average, t->pool);
    else if (is_point(c, t->step))
        optimizer_average(&t->optimizer, t->values,
                          (float)(1.0 / (double)points_passed(c, t->step)), t->average, t->pool);
}
