/* SPDX-License-Identifier: MIT */
/* Tells object and ground of a picture apart (picture_object.h). */
#include "heads/picture_object.h"

#include <stddef.h>
#include <stdlib.h>

enum { GROUND_NEAR = 24, OBJECT_FAR = 32, CHANNELS_MAX = 4, FEWEST = 2 };

static int value_at(const picture_grid *g, const uint8_t *bytes, int channel, int y, int x)
{
    return bytes[((ptrdiff_t)channel * g->side + y) * g->side + x];
}

static bool is_outermost(const picture_grid *g, int y, int x)
{
    return y == 0 || x == 0 || y == g->side - 1 || x == g->side - 1;
}

/* The median of the outermost pixels of a channel. */
static int ground_of(const picture_grid *g, const uint8_t *bytes, int channel)
{
    int counts[256] = {0}, all = 0, below = 0, value = 0;
    for (int y = 0; y < g->side; y++)
        for (int x = 0; x < g->side; x++)
            if (is_outermost(g, y, x)) {
                counts[value_at(g, bytes, channel, y, x)]++;
                all++;
            }
    while (2 * (below + counts[value]) < all)
        below += counts[value++];
    return value;
}

/* Whether a pixel differs from the ground by more than `far` in a channel. */
static bool differs(const picture_grid *g, const uint8_t *bytes, const int ground[CHANNELS_MAX],
                    int y, int x, int far)
{
    bool any = false;
    for (int c = 0; c < g->channels; c++)
        any |= abs(value_at(g, bytes, c, y, x) - ground[c]) > far;
    return any;
}

static bool is_plain(const picture_grid *g, const uint8_t *bytes, const int ground[CHANNELS_MAX])
{
    int all = 0, near = 0;
    for (int y = 0; y < g->side; y++)
        for (int x = 0; x < g->side; x++)
            if (is_outermost(g, y, x)) {
                all++;
                near += !differs(g, bytes, ground, y, x, GROUND_NEAR);
            }
    return 10 * near >= 7 * all;
}

static bool shows_object(const picture_grid *g, const uint8_t *bytes,
                         const int ground[CHANNELS_MAX], int patch)
{
    const int top = patch / g->across * g->stride, left = patch % g->across * g->stride;
    int count = 0;
    for (int y = top; y < top + g->patch; y++)
        for (int x = left; x < left + g->patch; x++)
            count += differs(g, bytes, ground, y, x, OBJECT_FAR);
    return 2 * count >= g->patch * g->patch;
}

bool picture_object_find(const picture_grid *g, const uint8_t *bytes, bool *object)
{
    int ground[CHANNELS_MAX] = {0}, shown = 0;
    const int patches = g->across * g->across;
    if (g->channels > CHANNELS_MAX)
        return false;
    for (int c = 0; c < g->channels; c++)
        ground[c] = ground_of(g, bytes, c);
    if (!is_plain(g, bytes, ground))
        return false;
    for (int n = 0; n < patches; n++)
        shown += object[n] = shows_object(g, bytes, ground, n);
    return shown >= FEWEST && patches - shown >= FEWEST;
}
