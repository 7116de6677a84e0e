/* SPDX-License-Identifier: MIT */
/*
 * Heads of a model as sheets of heat maps (draw/heatmap.h), one map per head.
 *
 *      layer_map       the chosen heads of one layer, and their mean
 *      alignment_map   the cross-attention of a translation, for "mha translate"
 *      show_maps       a sheet for each kind and layer on a text, for "mha show"
 *
 *      kind      rows                                      columns
 *      encoder   tokens of the source                      the same
 *      decoder   tokens of the target                      the same, up to the row
 *      cross     tokens that each row of the target says   tokens of the source
 */
#ifndef PROGRAM_MAPS_H
#define PROGRAM_MAPS_H

#include "draw/heatmap.h"
#include "heads/subject.h"
#include "translator/sentence.h"

/* Heads of one layer as they were computed, and which of them are drawn. */
typedef struct layer_heads {
    const float *weights; /* [heads of the layer][rows][columns] */
    const float *norms;   /* [heads of the layer][columns]: factors of columns; NULL: 1 */
    int rows, columns;
    const int *chosen; /* [count] heads to draw, from 0 on; NULL: the first `count` */
    int count;
    bool mean;                /* adds the mean of the drawn heads, if there are two or more */
    const char *const *notes; /* [heads of the layer], below the titles; NULL: none */
} layer_heads;

/* The heat maps of one layer. The sheet points into the struct, which must not be moved. */
typedef struct layer_map {
    text_word *rows, *columns;
    char (*names)[HEATMAP_TITLE_MAX];
    const char **titles, **notes;
    float *weights;
    heatmap_sheet sheet;
} layer_map;

/* Everything but the words of the axes, for which there is layer_map_label(). False if out of
 * memory; layer_map_free() either way. */
bool layer_map_make(layer_map *map, const layer_heads *heads);
void layer_map_free(layer_map *map);

/* An axis in words[count], which must be as many as the rows or columns. */
heatmap_words layer_map_label(text_word *words, const char *const *tokens, int count);

/* The heads of decoder layer `layer` and their mean, or only head `head`. Both count from 1; head 0
 * stands for all. The best result must have weights. False if out of memory; layer_map_free()
 * either way. */
bool alignment_map_make(layer_map *map, const translated *t, int layer, int head);

/* What is to be drawn of a text. */
typedef struct show_scene {
    const subject *model;
    const subject_text *text;
    const capture *heads;     /* with weights; with vectors too if `norm` */
    const bool *drawn;        /* [head_count()], by head_number() */
    const char *const *roles; /* [head_count()]; NULL: not known */
    bool mean;                /* adds the mean of the heads of each sheet */
    bool norm;                /* multiplies weights by the norm of each value's output */
} show_scene;

enum { SHOW_HEADING_MAX = 96 };

typedef struct show_sheet {
    attention_kind kind;
    int layer;   /* from 0 on */
    int *chosen; /* [count] heads, from 0 on */
    int count;
    char heading[SHOW_HEADING_MAX];
    layer_map map;
} show_sheet;

typedef struct show_maps {
    show_sheet *sheets; /* [count]; layers without a chosen head have no sheet */
    int count;
    int *chosen; /* of all sheets */
} show_maps;

/* False if out of memory; show_maps_free() either way. */
bool show_maps_make(show_maps *maps, const show_scene *scene);
void show_maps_free(show_maps *maps);

#endif
