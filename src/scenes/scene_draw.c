/* SPDX-License-Identifier: MIT */
/* The pixels of a scene: which of them each shape covers, and their colours. */
#include <stdlib.h>

#include "scenes/scene_parts.h"

/* ----------------------------------------------------------------- forms ----- */

/* `x` and `y` are from the centre, in half pixels. */
static bool kind_covers(scene_kind kind, int x, int y, int radius)
{
    const int across = abs(x), down = abs(y), square = x * x + y * y;
    switch (kind) {
    case SCENE_CIRCLE:
        return square <= radius * radius;
    case SCENE_SQUARE:
        return 8 * (across > down ? across : down) <= 7 * radius;
    case SCENE_TRIANGLE: /* its tip is above, its base as wide as the radius on both sides */
        return 4 * y <= 3 * radius && 7 * across <= 4 * (y + radius);
    case SCENE_CROSS:
        return (across <= radius && 3 * down <= radius) || (down <= radius && 3 * across <= radius);
    case SCENE_RING:
        return square <= radius * radius && 4 * square >= radius * radius;
    case SCENE_BAR:
        return across <= radius && 5 * down <= 2 * radius;
    case SCENE_KINDS:
        break;
    }
    return false;
}

bool scene_shape_covers(const scene_shape *shape, int x, int y)
{
    return kind_covers(shape->kind, 2 * x + 1 - shape->x, 2 * y + 1 - shape->y, shape->radius);
}

static void grow_box(scene_box *box, int x, int y)
{
    box->left = x < box->left ? x : box->left;
    box->top = y < box->top ? y : box->top;
    box->right = x + 1 > box->right ? x + 1 : box->right;
    box->bottom = y + 1 > box->bottom ? y + 1 : box->bottom;
}

/* The shape that a pixel shows; all that cover it are counted. */
static int find_pixel(scene *s, int x, int y)
{
    int shown = SCENE_GROUND;
    for (int n = 0; n < s->count; n++) {
        if (!scene_shape_covers(&s->shapes[n], x, y))
            continue;
        s->shapes[n].drawn++;
        if (shown == SCENE_GROUND || s->shapes[n].depth > s->shapes[shown].depth)
            shown = n;
    }
    return shown;
}

void scene_find_pixels(scene *s)
{
    for (int n = 0; n < s->count; n++) {
        s->shapes[n].drawn = s->shapes[n].visible = 0;
        s->shapes[n].box = (scene_box){SCENE_SIDE, SCENE_SIDE, 0, 0};
    }
    for (int y = 0; y < SCENE_SIDE; y++)
        for (int x = 0; x < SCENE_SIDE; x++) {
            const int shown = find_pixel(s, x, y);
            s->shows[y * SCENE_SIDE + x] = (int8_t)shown;
            if (shown == SCENE_GROUND)
                continue;
            s->shapes[shown].visible++;
            grow_box(&s->shapes[shown].box, x, y);
        }
}

/* --------------------------------------------------------------- colours ----- */

enum { COLOR_CHANGE = 15, GROUND_LOW = 20, GROUND_HIGH = 80, GROUND_TINT = 8, GROUND_SLOPE = 20 };
enum { NOISE_MOST = 12 };

typedef struct paint {
    int color[SCENE_CHANNELS];
} paint;

/* The ground at the centre of the picture, and by how much it changes to the right and down. */
typedef struct ground {
    paint paint;
    int right, down;
} ground;

static const paint colors[SCENE_COLORS] = {
    [SCENE_RED] = {{215, 45, 45}},     [SCENE_GREEN] = {{50, 175, 60}},
    [SCENE_BLUE] = {{55, 90, 230}},    [SCENE_YELLOW] = {{235, 210, 55}},
    [SCENE_PURPLE] = {{165, 60, 190}}, [SCENE_WHITE] = {{235, 235, 235}},
};

static paint mix_paint(rng *r, scene_color color)
{
    paint p;
    for (int c = 0; c < SCENE_CHANNELS; c++)
        p.color[c] = colors[color].color[c] + (int)rng_between(r, -COLOR_CHANGE, COLOR_CHANGE);
    return p;
}

static ground choose_ground(rng *r)
{
    ground g;
    const int level = (int)rng_between(r, GROUND_LOW, GROUND_HIGH);
    for (int c = 0; c < SCENE_CHANNELS; c++)
        g.paint.color[c] = level + (int)rng_between(r, -GROUND_TINT, GROUND_TINT);
    g.right = (int)rng_between(r, -GROUND_SLOPE, GROUND_SLOPE);
    g.down = (int)rng_between(r, -GROUND_SLOPE, GROUND_SLOPE);
    return g;
}

/* Textures darken half of the pixels to three quarters. */
static bool is_dark(scene_texture texture, int x, int y)
{
    switch (texture) {
    case SCENE_STRIPES:
        return y / 2 % 2 != 0;
    case SCENE_COLUMNS:
        return x / 2 % 2 != 0;
    case SCENE_CHECKS:
        return (x / 2 + y / 2) % 2 != 0;
    case SCENE_PLAIN:
    case SCENE_TEXTURES:
        break;
    }
    return false;
}

static int ground_at(const ground *g, int channel, int x, int y)
{
    return g->paint.color[channel] +
           (g->right * (x - SCENE_SIDE / 2) + g->down * (y - SCENE_SIDE / 2)) / SCENE_SIDE;
}

static uint8_t byte_of(int value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

void scene_paint(scene *s, rng *r)
{
    paint paints[SCENE_SHAPES_MAX];
    for (int n = 0; n < s->count; n++)
        paints[n] = mix_paint(r, s->shapes[n].color);
    const ground background = choose_ground(r);
    const int noise = (int)rng_between(r, 0, NOISE_MOST);
    for (int at = 0; at < SCENE_PIXELS; at++) {
        const int x = at % SCENE_SIDE, y = at / SCENE_SIDE, shown = s->shows[at];
        const bool dark = shown != SCENE_GROUND && is_dark(s->shapes[shown].texture, x, y);
        for (int c = 0; c < SCENE_CHANNELS; c++) {
            const int value =
                shown == SCENE_GROUND ? ground_at(&background, c, x, y) : paints[shown].color[c];
            s->pixels[c * SCENE_PIXELS + at] =
                byte_of((dark ? value * 3 / 4 : value) + (int)rng_between(r, -noise, noise));
        }
    }
}
