/* SPDX-License-Identifier: MIT */
/* Overlap and distance of boxes (box.h). Each axis is computed alone; areas are products. */
#include "translator/box.h"

#include <math.h>
#include <stddef.h>

box box_of_outputs(const float outputs[BOX_NUMBERS])
{
    box b;
    for (int n = 0; n < BOX_NUMBERS; n++)
        b.at[n] = 1.0 / (1.0 + exp(-(double)outputs[n]));
    return b;
}

/* A length along an axis, and its derivatives by the centre and the length of box a. */
typedef struct extent {
    double length, by_centre, by_length;
} extent;

/* What both boxes cover, and what the smallest box around both covers. The ends of an axis move
 * with the centre, and by half of a change of the length. */
static void extents_of(const box *a, const box *b, int axis, extent *both, extent *hull)
{
    const double length = a->at[BOX_WIDTH + axis], other = b->at[BOX_WIDTH + axis];
    const double low = a->at[axis] - length / 2.0, high = a->at[axis] + length / 2.0;
    const double other_low = b->at[axis] - other / 2.0, other_high = b->at[axis] + other / 2.0;
    const double own_high = high<other_high, own_low = low> other_low;
    *both = (extent){(own_high > 0.0 ? high : other_high) - (own_low > 0.0 ? low : other_low),
                     own_high - own_low, (own_high + own_low) / 2.0};
    *hull = (extent){(own_high > 0.0 ? other_high : high) - (own_low > 0.0 ? other_low : low),
                     own_low - own_high, (2.0 - own_high - own_low) / 2.0};
    if (!(both->length > 0.0))
        *both = (extent){0.0, 0.0, 0.0};
}

static double area(const box *a)
{
    return a->at[BOX_WIDTH] * a->at[BOX_HEIGHT];
}

double box_iou(const box *a, const box *b)
{
    extent both[2], hull;
    for (int axis = 0; axis < 2; axis++)
        extents_of(a, b, axis, &both[axis], &hull);
    const double shared = both[0].length * both[1].length;
    const double all = area(a) + area(b) - shared;
    return all > 0.0 ? shared / all : 0.0;
}

double box_giou(const box *a, const box *b, double scale, double gradient[BOX_NUMBERS])
{
    extent both[2], hull[2];
    for (int axis = 0; axis < 2; axis++)
        extents_of(a, b, axis, &both[axis], &hull[axis]);
    const double shared = both[0].length * both[1].length;
    const double around = hull[0].length * hull[1].length;
    const double all = area(a) + area(b) - shared;
    for (int axis = 0; axis < 2 && gradient; axis++) {
        const int other = 1 - axis;
        /* Of shared / all + all / around, by these three. */
        const double by_shared = 1.0 / all, by_all = 1.0 / around - shared / (all * all);
        const double by_around = -all / (around * around);
        const double d_shared[] = {both[axis].by_centre * both[other].length,
                                   both[axis].by_length * both[other].length};
        const double d_around[] = {hull[axis].by_centre * hull[other].length,
                                   hull[axis].by_length * hull[other].length};
        const double d_area[] = {0.0, a->at[BOX_WIDTH + other]};
        for (int n = 0; n < 2; n++)
            gradient[2 * n + axis] +=
                scale * (by_shared * d_shared[n] + by_all * (d_area[n] - d_shared[n]) +
                         by_around * d_around[n]);
    }
    return shared / all - 1.0 + all / around;
}

double box_distance(const box *a, const box *b, double scale, double gradient[BOX_NUMBERS])
{
    double sum = 0.0;
    for (int n = 0; n < BOX_NUMBERS; n++) {
        const double apart = a->at[n] - b->at[n];
        sum += fabs(apart);
        if (gradient)
            gradient[n] += scale * (double)((apart > 0.0) - (apart < 0.0));
    }
    return sum;
}
