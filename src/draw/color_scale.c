/* SPDX-License-Identifier: MIT */
/*
 * The colour scales as tables of anchors at equal distances. Six colours were chosen for each
 * ground and interpolated in OKLab; the tables also have the colours halfway between them, so that
 * linear interpolation of the sRGB values in between stays within one unit of that.
 *
 * Only integers are used after the share has become one of 256 levels: C, JavaScript and Python
 * compute the same bytes on every machine.
 */
#include "draw/color_scale.h"

#include <math.h>

enum { SEGMENTS = 10, LEVELS = 255 };

static const rgb anchors[][SEGMENTS + 1] = {
    [COLOR_ON_LIGHT] = {{0xf6, 0xf4, 0xef},
                        {0xe0, 0xe8, 0xed},
                        {0xc9, 0xdb, 0xea},
                        {0xaa, 0xc7, 0xe0},
                        {0x8b, 0xb3, 0xd6},
                        {0x6c, 0x9b, 0xc7},
                        {0x4d, 0x82, 0xb8},
                        {0x3b, 0x69, 0xa5},
                        {0x2a, 0x4f, 0x92},
                        {0x23, 0x36, 0x72},
                        {0x1a, 0x1d, 0x52}},
    [COLOR_ON_DARK] = {{0x1d, 0x20, 0x29},
                       {0x24, 0x30, 0x49},
                       {0x2a, 0x3f, 0x6b},
                       {0x30, 0x57, 0x88},
                       {0x34, 0x70, 0xa5},
                       {0x3c, 0x8a, 0xab},
                       {0x45, 0xa3, 0xb0},
                       {0x6f, 0xba, 0x9f},
                       {0x95, 0xd0, 0x87},
                       {0xc9, 0xe2, 0x94},
                       {0xfb, 0xf3, 0xa0}},
};

/* `part` of LEVELS on the way from one anchor to the next, rounded. */
static uint8_t mix(uint8_t from, uint8_t to, int part)
{
    return (uint8_t)((from * (LEVELS - part) + to * part + LEVELS / 2) / LEVELS);
}

rgb color_scale(color_ground ground, double share)
{
    const int level = (int)floor(LEVELS * fmin(fmax(share, 0.0), 1.0) + 0.5);
    const int place = level * SEGMENTS, last = SEGMENTS - 1;
    const int segment = place / LEVELS < last ? place / LEVELS : last;
    const int part = place - segment * LEVELS;
    const rgb from = anchors[ground][segment], to = anchors[ground][segment + 1];
    return (rgb){mix(from.r, to.r, part), mix(from.g, to.g, part), mix(from.b, to.b, part)};
}

bool color_is_light(rgb color)
{
    return 0.299 * color.r + 0.587 * color.g + 0.114 * color.b > 140.0;
}
