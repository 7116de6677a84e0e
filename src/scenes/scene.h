/* SPDX-License-Identifier: MIT */
/*
 * Scenes: small pictures of coloured shapes, of which everything is known.
 *
 *      seed, split, index --scene_generate()--> shapes, truth and pixels    scene_generate.c
 *                                               which pixels show what      scene_draw.c
 *      scene --scene_caption_make()--> words in English or French           scene_caption.h
 *
 * No two shapes of a scene have the same colour and kind. Captions name the shapes in the order of
 * their colours and, of one colour, of their kinds; scene.shapes[] has that order. Which one lies
 * above or beside which is never in doubt: of the distances of two centres, down and across, one is
 * longer by at least SCENE_CLEAR.
 */
#ifndef SCENES_SCENE_H
#define SCENES_SCENE_H

#include <stdbool.h>
#include <stdint.h>

#include "corpus/corpus.h"

enum { SCENE_SIDE = 40, SCENE_PIXELS = SCENE_SIDE * SCENE_SIDE, SCENE_CHANNELS = 3 };
enum { SCENE_SHAPES_MAX = 3, SCENE_PAIRS_MAX = 3 };

typedef enum scene_color {
    SCENE_RED,
    SCENE_GREEN,
    SCENE_BLUE,
    SCENE_YELLOW,
    SCENE_PURPLE,
    SCENE_WHITE,
    SCENE_COLORS
} scene_color;

typedef enum scene_kind {
    SCENE_CIRCLE,
    SCENE_SQUARE,
    SCENE_TRIANGLE,
    SCENE_CROSS,
    SCENE_RING,
    SCENE_BAR,
    SCENE_KINDS
} scene_kind;

/* No caption mentions the middle size, and none a texture. */
typedef enum scene_size { SCENE_SMALL, SCENE_MIDDLE, SCENE_LARGE, SCENE_SIZES } scene_size;

typedef enum scene_texture {
    SCENE_PLAIN,
    SCENE_STRIPES,
    SCENE_COLUMNS,
    SCENE_CHECKS,
    SCENE_TEXTURES
} scene_texture;

/* How a shape lies to another one. */
typedef enum scene_relation {
    SCENE_ABOVE,
    SCENE_BELOW,
    SCENE_LEFT,
    SCENE_RIGHT,
    SCENE_RELATIONS
} scene_relation;

/* "red"; "circle"; "small"; "plain"; "left of". */
const char *scene_color_name(scene_color color);
const char *scene_kind_name(scene_kind kind);
const char *scene_size_name(scene_size size);
const char *scene_texture_name(scene_texture texture);
const char *scene_relation_name(scene_relation relation);

/* The relation of the other shape to the first one. */
scene_relation scene_relation_reversed(scene_relation relation);

/* ----------------------------------------------------------------- truth ----- */

/* Lengths and places of shapes are in half pixels: the centre of the pixel in row y and column x
 * is at (2x + 1, 2y + 1). */
enum { SCENE_CLEAR = 8 };

/* Pixels [left, right) x [top, bottom). */
typedef struct scene_box {
    int left, top, right, bottom;
} scene_box;

typedef struct scene_shape {
    scene_color color;
    scene_kind kind;
    scene_size size;
    scene_texture texture;
    int x, y, radius; /* half pixels */
    int depth;        /* shapes of a greater depth are painted over others */
    int drawn;        /* pixels it covers, hidden ones too */
    int visible;      /* pixels that show it, at least SCENE_VISIBLE percent of those drawn */
    scene_box box;    /* the smallest one around the visible pixels */
} scene_shape;

enum { SCENE_VISIBLE = 70, SCENE_GROUND = -1 };

typedef struct scene {
    int count; /* of shapes */
    scene_shape shapes[SCENE_SHAPES_MAX];
    uint8_t pixels[SCENE_CHANNELS * SCENE_PIXELS]; /* [channel][row][column]: red, green, blue */
    int8_t shows[SCENE_PIXELS]; /* the number of the shape that a pixel shows, or SCENE_GROUND */
} scene;

/* How shape `first` of a scene lies to shape `second`. */
scene_relation scene_relation_of(const scene *s, int first, int second);

/* Whether a shape, if nothing hides it, covers the pixel in row y and column x. */
bool scene_shape_covers(const scene_shape *shape, int x, int y);

/* ---------------------------------------------------------------- splits ----- */

/* Two shapes and their relation, which is what the splits hold out. The first one is the one that
 * captions name first. */
typedef struct scene_combination {
    scene_color first_color;
    scene_kind first_kind;
    scene_relation relation;
    scene_color second_color;
    scene_kind second_kind;
} scene_combination;

/* All combinations that can be: pairs of different colours and kinds, in each relation. */
enum {
    SCENE_THINGS = SCENE_COLORS * SCENE_KINDS,
    SCENE_COMBINATIONS = SCENE_THINGS * (SCENE_THINGS - 1) / 2 * SCENE_RELATIONS
};
scene_combination scene_combination_at(int number);
/* Its number, [0, SCENE_COMBINATIONS). */
int scene_combination_number(const scene_combination *combination);

/* The combinations of all pairs of a scene's shapes, said or not. Returns their number. */
int scene_combinations(const scene *s, scene_combination list[SCENE_PAIRS_MAX]);

/* The split of a combination, from a fixed hash of its words: 10 % test, 5 % valid. */
corpus_split scene_combination_split(const scene_combination *combination);

/* -------------------------------------------------------------- generate ----- */

/*
 * Makes scene `index` of a split. The same seed, split and index give the same scene on every
 * machine. A scene of train has no combination of valid or test. One of valid or test has at least
 * one combination of its own split, none of the other, and so at least two shapes.
 */
void scene_generate(uint64_t seed, corpus_split split, uint64_t index, scene *s);

#endif
