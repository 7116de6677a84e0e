/* SPDX-License-Identifier: MIT */
/* Which patches of a picture show its object, if the object lies on a plain ground. */
#ifndef HEADS_PICTURE_OBJECT_H
#define HEADS_PICTURE_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

/* A square picture as a model cuts it into across x across patches. */
typedef struct picture_grid {
    int side, channels;
    int patch, stride, across; /* pixels of a patch, from one to the next; patches along a side */
} picture_grid;

/*
 * The colour of the ground is the median of the outermost pixels. It is plain if at least 0.7 of
 * them are within 24 of 255 of it. A pixel that differs by more than 32 in a channel belongs to the
 * object, and a patch shows the object if half of its pixels do. object[across * across] gets what
 * each patch shows. False: the ground is not plain, or fewer than two patches show the object, or
 * fewer than two the ground, so that nothing can be said.
 */
bool picture_object_find(const picture_grid *grid, const uint8_t *bytes, bool *object);

#endif
