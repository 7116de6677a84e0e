/* SPDX-License-Identifier: MIT */
/*
 * Makes random scenes: shapes are drawn until they are different, lie clearly to each other, are of
 * the split, and hide too little of each other to matter.
 *
 * The order of the random draws defines the scenes: any change here changes every picture, and with
 * them the training and test data of models.
 */
#include <stdlib.h>

#include "scenes/scene_parts.h"

enum { MARGIN = 2, ONE_SHAPE = 15, TWO_SHAPES = 45, TWO_OF_SPLIT = 50 };

/* Radii of a size, in half pixels. */
static const struct {
    int least, most;
} radii[SCENE_SIZES] = {{6, 7}, {10, 11}, {15, 16}};

static scene_shape draw_shape(rng *r)
{
    scene_shape shape = {.color = (scene_color)rng_below(r, SCENE_COLORS),
                         .kind = (scene_kind)rng_below(r, SCENE_KINDS),
                         .size = (scene_size)rng_below(r, SCENE_SIZES),
                         .texture = (scene_texture)rng_below(r, SCENE_TEXTURES)};
    shape.radius = (int)rng_between(r, radii[shape.size].least, radii[shape.size].most);
    shape.x = (int)rng_between(r, shape.radius + MARGIN, 2 * SCENE_SIDE - shape.radius - MARGIN);
    shape.y = (int)rng_between(r, shape.radius + MARGIN, 2 * SCENE_SIDE - shape.radius - MARGIN);
    return shape;
}

/* Negative if captions name `a` before `b`; 0 if they look the same to a caption. */
static int compare_shapes(const void *a, const void *b)
{
    const scene_shape *const one = a, *const other = b;
    return one->color != other->color ? (int)one->color - (int)other->color
                                      : (int)one->kind - (int)other->kind;
}

/* Single shapes are for training only: a held-out combination needs two. */
static int draw_count(rng *r, corpus_split split)
{
    const int percent = (int)rng_below(r, 100);
    if (split != CORPUS_TRAIN)
        return percent < TWO_OF_SPLIT ? 2 : 3;
    return percent < ONE_SHAPE ? 1 : percent < ONE_SHAPE + TWO_SHAPES ? 2 : 3;
}

static void draw_shapes(rng *r, scene *s)
{
    for (int n = 0; n < s->count; n++) {
        s->shapes[n] = draw_shape(r);
        s->shapes[n].depth = n;
    }
    qsort(s->shapes, (size_t)s->count, sizeof s->shapes[0], compare_shapes);
}

/* --------------------------------------------------------------- sensible ----- */

scene_relation scene_relation_of(const scene *s, int first, int second)
{
    const int right = s->shapes[first].x - s->shapes[second].x;
    const int down = s->shapes[first].y - s->shapes[second].y;
    if (abs(down) > abs(right))
        return down < 0 ? SCENE_ABOVE : SCENE_BELOW;
    return right < 0 ? SCENE_LEFT : SCENE_RIGHT;
}

/* Whether all shapes differ, and no relation is in doubt. */
static bool is_clear(const scene *s)
{
    for (int n = 1; n < s->count; n++)
        for (int k = 0; k < n; k++) {
            const int right = abs(s->shapes[n].x - s->shapes[k].x);
            const int down = abs(s->shapes[n].y - s->shapes[k].y);
            if (compare_shapes(&s->shapes[n], &s->shapes[k]) == 0 ||
                abs(right - down) < SCENE_CLEAR)
                return false;
        }
    return true;
}

/* Whether the combinations of a scene allow it in this split; see scene_generate(). */
static bool is_of_split(const scene *s, corpus_split split)
{
    scene_combination list[SCENE_PAIRS_MAX];
    const int count = scene_combinations(s, list);
    int found[CORPUS_SPLITS] = {0};
    for (int n = 0; n < count; n++)
        found[scene_combination_split(&list[n])]++;
    for (int other = CORPUS_VALID; other < CORPUS_SPLITS; other++)
        if ((found[other] > 0) != (other == (int)split))
            return false;
    return true;
}

static bool is_visible(scene *s)
{
    scene_find_pixels(s);
    for (int n = 0; n < s->count; n++)
        if (100 * s->shapes[n].visible < SCENE_VISIBLE * s->shapes[n].drawn)
            return false;
    return true;
}

void scene_generate(uint64_t seed, corpus_split split, uint64_t index, scene *s)
{
    /* The constant makes this series differ from those of the corpus. */
    rng r = rng_for((seed ^ UINT64_C(0x2d8f6b1c90e7a354)) +
                        (uint64_t)split * UINT64_C(0x9fb21c651e98df25),
                    index);
    s->count = draw_count(&r, split);
    do
        draw_shapes(&r, s);
    while (!is_clear(s) || !is_of_split(s, split) || !is_visible(s));
    scene_paint(s, &r);
}
