/* SPDX-License-Identifier: MIT */
/*
 * The colours of all heat maps: terminal, SVG and TikZ here, the page (page/web/color.js) and the
 * Python package (python/mha/heatmap.py). tests/golden/color_scale.json pins all three.
 *
 * There are two scales, one for each kind of ground. Both begin near the ground and become more and
 * more different from it, evenly in lightness, so that they can be read without seeing hue.
 */
#ifndef DRAW_COLOR_SCALE_H
#define DRAW_COLOR_SCALE_H

#include <stdbool.h>

#include "base/terminal.h"

typedef enum color_ground {
    COLOR_ON_LIGHT, /* from paper to dark blue */
    COLOR_ON_DARK   /* from night blue over green to pale yellow */
} color_ground;

/* The colour of a share from 0 to 1; what lies outside counts as 0 or 1. */
rgb color_scale(color_ground ground, double share);

/* Whether dark letters are easier to read on this colour than white ones. */
bool color_is_light(rgb color);

#endif
