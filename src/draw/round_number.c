/* SPDX-License-Identifier: MIT */
/* Round numbers for axes (round_number.h). */
#include "draw/round_number.h"

#include <math.h>

double round_number(int n)
{
    static const double digits[] = {1.0, 2.0, 5.0};
    const int digit = (n % 3 + 3) % 3;
    return digits[digit] * pow(10.0, (n - digit) / 3);
}

int round_number_near(double value, bool up)
{
    int n = 3 * (int)floor(log10(value)) - 1;
    while (round_number(n + 1) <= value * (1.0 + 1e-9))
        n++;
    return up && round_number(n) < value * (1.0 - 1e-9) ? n + 1 : n;
}
