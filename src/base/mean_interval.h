/* SPDX-License-Identifier: MIT */
/* The mean of a few measurements, with the interval of Student's t distribution. */
#ifndef BASE_MEAN_INTERVAL_H
#define BASE_MEAN_INTERVAL_H

/* A mean and its 95 % interval, [mean - half, mean + half]. Of one measurement `half` is infinite;
 * of none, or if one is NaN, both are NaN. */
typedef struct mean_interval {
    double mean, half;
    int count;
} mean_interval;

mean_interval mean_interval_of(const double *values, int count);

/* -1 or 1 if all of the interval is below or above 0, else 0: the measurements do not decide. */
int mean_interval_sign(const mean_interval *interval);

/* The t for which a variable of Student's distribution is in [-t, t] with probability 0.95.
 * `freedom` >= 1 is n - 1 for the mean of n measurements. */
double student_t95(int freedom);

#endif
