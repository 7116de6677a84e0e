/* SPDX-License-Identifier: MIT */
/* Private: what the files that make scenes share. */
#ifndef SCENES_SCENE_PARTS_H
#define SCENES_SCENE_PARTS_H

#include "base/rng.h"
#include "scenes/scene.h"

/* Finds out what every pixel shows, and with it the boxes and the counts of pixels of all shapes.
 */
void scene_find_pixels(scene *s);

/* Paints ground, shapes and noise, after scene_find_pixels(). */
void scene_paint(scene *s, rng *r);

#endif
