/* SPDX-License-Identifier: MIT */
/* Student's t interval of a mean. For a whole number of degrees of freedom the distribution is a
 * finite sum of powers of a cosine, which bisection inverts. */
#include "base/mean_interval.h"

#include <math.h>

/* The probability of [-t, t]. With tan(angle) = t / sqrt(freedom), s = sin(angle), c = cos(angle):
 *   even   s (1 + 1/2 c^2 + 1*3/(2*4) c^4 + ... up to c^(freedom - 2))
 *   odd    2/pi (angle + s (c + 2/3 c^3 + 2*4/(3*5) c^5 + ... up to c^(freedom - 2))) */
static double probability_within(double t, int freedom)
{
    const double angle = atan(t / sqrt((double)freedom)), c = cos(angle), s = sin(angle);
    const int odd = freedom % 2;
    double term = odd ? c : 1.0, sum = 0.0;
    for (int power = odd; power <= freedom - 2; power += 2) {
        sum += term;
        term *= c * c * (double)(power + 1) / (double)(power + 2);
    }
    return odd ? (angle + s * sum) / acos(0.0) : s * sum;
}

double student_t95(int freedom)
{
    double low = 1.0, high = 13.0; /* of 1 degree of freedom it is 12.706 */
    for (int n = 0; n < 60; n++) {
        const double middle = 0.5 * (low + high);
        if (probability_within(middle, freedom) < 0.95)
            low = middle;
        else
            high = middle;
    }
    return high;
}

mean_interval mean_interval_of(const double *values, int count)
{
    double sum = 0.0, squares = 0.0;
    for (int n = 0; n < count; n++)
        sum += values[n];
    const double mean = count > 0 ? sum / count : NAN;
    for (int n = 0; n < count; n++)
        squares += (values[n] - mean) * (values[n] - mean);
    double half = isnan(mean) ? NAN : INFINITY;
    if (count > 1)
        half = student_t95(count - 1) * sqrt(squares / (count - 1) / count);
    return (mean_interval){mean, half, count};
}

int mean_interval_sign(const mean_interval *i)
{
    if (i->mean + i->half < 0.0)
        return -1;
    return i->mean - i->half > 0.0;
}
