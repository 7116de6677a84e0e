/* SPDX-License-Identifier: MIT */
/* Means with Student's t intervals (base/mean_interval.h): the quantiles of printed tables, and
 * intervals computed by hand. */
#include <math.h>
#include <stddef.h>

#include "base/mean_interval.h"
#include "support/test.h"

static bool near(double a, double b, double bound)
{
    return fabs(a - b) <= bound;
}

static void quantiles_are_those_of_the_tables(void)
{
    static const struct {
        int freedom;
        double t;
    } table[] = {{1, 12.7062},  {2, 4.30265},  {3, 3.18245},  {4, 2.77645},  {5, 2.57058},
                 {6, 2.44691},  {7, 2.36462},  {8, 2.30600},  {9, 2.26216},  {10, 2.22814},
                 {15, 2.13145}, {20, 2.08596}, {30, 2.04227}, {60, 2.00030}, {120, 1.97993}};
    for (size_t n = 0; n < sizeof table / sizeof table[0]; n++)
        CHECK(near(student_t95(table[n].freedom), table[n].t, 1e-4), "%d: %.6f, not %.6f",
              table[n].freedom, student_t95(table[n].freedom), table[n].t);
    CHECK(near(student_t95(100000), 1.959988, 1e-5), "normal: %.6f", student_t95(100000));
}

/* 1, 2, 6: mean 3, variance (4 + 1 + 9)/2 = 7, half = 4.302653 sqrt(7/3) = 6.572411. */
static void three_numbers_by_hand(void)
{
    const double values[] = {1.0, 2.0, 6.0};
    const mean_interval i = mean_interval_of(values, 3);
    CHECK(i.count == 3 && near(i.mean, 3.0, 1e-15), "mean %g of %d", i.mean, i.count);
    CHECK(near(i.half, 6.572411, 1e-5), "half %.7f", i.half);
    CHECK(mean_interval_sign(&i) == 0, "sign %d", mean_interval_sign(&i));
}

/* -0.5, -0.7, -0.6, -0.4, -0.8: mean -0.6, variance 0.1/4, half = 2.776445 sqrt(0.025/5). */
static void five_numbers_by_hand(void)
{
    double values[] = {-0.5, -0.7, -0.6, -0.4, -0.8};
    const mean_interval i = mean_interval_of(values, 5);
    CHECK(near(i.mean, -0.6, 1e-12) && near(i.half, 0.196324, 1e-6), "%.6f +- %.6f", i.mean,
          i.half);
    CHECK(mean_interval_sign(&i) == -1, "all of it is below 0");
    for (int n = 0; n < 5; n++)
        values[n] = -values[n];
    const mean_interval above = mean_interval_of(values, 5);
    CHECK(mean_interval_sign(&above) == 1, "all of it is above 0");
}

static void one_number_and_none(void)
{
    const double values[] = {2.5, NAN};
    const mean_interval one = mean_interval_of(values, 1), none = mean_interval_of(values, 0);
    const mean_interval wrong = mean_interval_of(values, 2);
    CHECK(one.mean == 2.5 && isinf(one.half) && mean_interval_sign(&one) == 0, "%g +- %g", one.mean,
          one.half);
    CHECK(isnan(none.mean) && isnan(none.half) && mean_interval_sign(&none) == 0, "%g +- %g",
          none.mean, none.half);
    CHECK(isnan(wrong.mean) && isnan(wrong.half) && mean_interval_sign(&wrong) == 0, "%g +- %g",
          wrong.mean, wrong.half);
}

/* Of 4000 samples of five normal numbers about 95 % have an interval that contains the mean. */
static void intervals_contain_the_mean_as_often_as_they_say(void)
{
    enum { SAMPLES = 4000 };
    test_random r = rng_for(test_seed(1), 1);
    int inside = 0;
    for (int n = 0; n < SAMPLES; n++) {
        double values[5];
        for (int k = 0; k < 5; k++)
            values[k] = rng_normal(&r);
        const mean_interval i = mean_interval_of(values, 5);
        inside += mean_interval_sign(&i) == 0;
    }
    CHECK(near((double)inside / SAMPLES, 0.95, 0.015), "%d of %d", inside, SAMPLES);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(quantiles_are_those_of_the_tables);
    RUN(three_numbers_by_hand);
    RUN(five_numbers_by_hand);
    RUN(one_number_and_none);
    RUN(intervals_contain_the_mean_as_often_as_they_say);
    return test_end();
}
