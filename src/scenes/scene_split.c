/* SPDX-License-Identifier: MIT */
/* The combinations that scenes contain, and the split that each belongs to. */
#include "scenes/scene.h"

const char *scene_color_name(scene_color color)
{
    static const char *const names[SCENE_COLORS] = {"red",    "green",  "blue",
                                                    "yellow", "purple", "white"};
    return names[color];
}

const char *scene_kind_name(scene_kind kind)
{
    static const char *const names[SCENE_KINDS] = {"circle", "square", "triangle",
                                                   "cross",  "ring",   "bar"};
    return names[kind];
}

const char *scene_size_name(scene_size size)
{
    static const char *const names[SCENE_SIZES] = {"small", "middle", "large"};
    return names[size];
}

const char *scene_texture_name(scene_texture texture)
{
    static const char *const names[SCENE_TEXTURES] = {"plain", "stripes", "columns", "checks"};
    return names[texture];
}

const char *scene_relation_name(scene_relation relation)
{
    static const char *const names[SCENE_RELATIONS] = {"above", "below", "left of", "right of"};
    return names[relation];
}

scene_relation scene_relation_reversed(scene_relation relation)
{
    static const scene_relation reversed[SCENE_RELATIONS] = {SCENE_BELOW, SCENE_ABOVE, SCENE_RIGHT,
                                                             SCENE_LEFT};
    return reversed[relation];
}

/* ---------------------------------------------------------- combinations ----- */

/* The number of a colour and kind, in the order in which captions name shapes. */
static int thing(scene_color color, scene_kind kind)
{
    return (int)color * SCENE_KINDS + (int)kind;
}

/* Pairs (first, second), first < second, are numbered by `second`, then by `first`. */
scene_combination scene_combination_at(int number)
{
    int first = number / SCENE_RELATIONS, second = 1;
    while (first >= second)
        first -= second++;
    return (scene_combination){
        (scene_color)(first / SCENE_KINDS), (scene_kind)(first % SCENE_KINDS),
        (scene_relation)(number % SCENE_RELATIONS), (scene_color)(second / SCENE_KINDS),
        (scene_kind)(second % SCENE_KINDS)};
}

int scene_combination_number(const scene_combination *c)
{
    const int first = thing(c->first_color, c->first_kind);
    const int second = thing(c->second_color, c->second_kind);
    return (second * (second - 1) / 2 + first) * SCENE_RELATIONS + (int)c->relation;
}

int scene_combinations(const scene *s, scene_combination list[SCENE_PAIRS_MAX])
{
    int count = 0;
    for (int second = 1; second < s->count; second++)
        for (int first = 0; first < second; first++)
            list[count++] = (scene_combination){s->shapes[first].color, s->shapes[first].kind,
                                                scene_relation_of(s, first, second),
                                                s->shapes[second].color, s->shapes[second].kind};
    return count;
}

corpus_split scene_combination_split(const scene_combination *c)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    hash = corpus_hash(hash, scene_color_name(c->first_color));
    hash = corpus_hash(hash, scene_kind_name(c->first_kind));
    hash = corpus_hash(hash, scene_relation_name(c->relation));
    hash = corpus_hash(hash, scene_color_name(c->second_color));
    hash = corpus_hash(hash, scene_kind_name(c->second_kind));
    /* The low bits of FNV-1a are mixed the least. */
    const int percent = (int)((hash >> 32) % 100);
    if (percent < 10)
        return CORPUS_TEST;
    return percent < 15 ? CORPUS_VALID : CORPUS_TRAIN;
}
