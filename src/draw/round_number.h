/* SPDX-License-Identifier: MIT */
/* The round numbers 1, 2, 5, 10, 20, 50 ... at which axes have their ticks. */
#ifndef DRAW_ROUND_NUMBER_H
#define DRAW_ROUND_NUMBER_H

#include <stdbool.h>

/* 1, 2, 5, 10, 20 ... for 0, 1, 2, 3, 4 ...; 0.5 for -1. */
double round_number(int n);

/* The largest round number that is not above a positive value (`up`: the smallest not below), as
 * the n of round_number(). */
int round_number_near(double value, bool up);

#endif
