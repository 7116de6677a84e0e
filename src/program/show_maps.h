/* SPDX-License-Identifier: MIT */
/*
 * Chosen heads of a translator on one sentence as heat maps, a sheet for each kind and layer.
 *
 *      kind      rows                      columns
 *      encoder   English words, end        the same
 *      decoder   begin, French words       the same, up to the row
 *      cross     French words said, end    English words, end
 */
#ifndef PROGRAM_SHOW_MAPS_H
#define PROGRAM_SHOW_MAPS_H

#include "heads/sentence_pair.h"
#include "program/layer_map.h"

enum { SHOW_HEADING_MAX = 96 };

typedef struct show_scene {
    const translator *model;
    const sentence_pair *pair;
    const capture *heads;
    const bool *drawn;        /* [head_count()] by head_number() */
    const char *const *roles; /* [head_count()]; NULL: not known */
    bool mean;                /* of the heads of each sheet, too */
    bool norm;                /* weights times the norm of what each value brings */
} show_scene;

typedef struct show_sheet {
    attention_kind kind;
    int layer;   /* from 0 on */
    int *chosen; /* [count] heads, from 0 on */
    int count;
    char heading[SHOW_HEADING_MAX];
    layer_map map;
} show_sheet;

typedef struct show_maps {
    show_sheet *sheets; /* [count]; those without heads are left out */
    int count;
    int *chosen; /* of all sheets */
} show_maps;

/* With `norm` the capture has vectors. False: no memory. show_maps_free() either way. */
bool show_maps_make(show_maps *maps, const show_scene *scene);
void show_maps_free(show_maps *maps);

#endif
