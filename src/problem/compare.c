/* SPDX-License-Identifier: MIT */
#include "problem/compare.h"

#include <math.h>

double compare_half_ulp(mha_dtype type, double x)
{
    if (type != MHA_F16 && type != MHA_BF16)
        return 0.0;
    const int fraction_bits = type == MHA_F16 ? 10 : 7;
    const int smallest = type == MHA_F16 ? -14 : -126;
    int exponent = smallest;
    if (isfinite(x) && x != 0.0 && ilogb(x) > smallest)
        exponent = ilogb(x);
    return ldexp(1.0, exponent - fraction_bits - 1);
}

double compare_error(double got, double want, double bound, double allowance)
{
    const double infinite = (double)INFINITY;
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want) ? 0.0 : infinite;
    if (isinf(got) || isinf(want))
        return got == want ? 0.0 : infinite;
    const double excess = fabs(got - want) - allowance;
    if (!(excess > 0.0))
        return 0.0;
    return bound > 0.0 ? excess / bound : infinite;
}
