/* SPDX-License-Identifier: MIT */
/* Heads of one layer, and their mean, as heat maps. */
#ifndef PROGRAM_LAYER_MAP_H
#define PROGRAM_LAYER_MAP_H

#include "corpus/corpus.h"
#include "draw/heatmap.h"

typedef struct layer_heads {
    const float *weights; /* [heads of the layer][rows][columns] */
    const float *norms;   /* [heads of the layer][columns]: factors of columns; NULL: 1 */
    int rows, columns;
    const int *chosen; /* [count] heads to draw, from 0 on; NULL: the first `count` */
    int count;
    bool mean;                /* of those that are drawn, too, if there are two or more */
    const char *const *notes; /* [heads of the layer] to stand below their titles; NULL: none */
} layer_heads;

/* The sheet points into it: it stays where it is. */
typedef struct layer_map {
    text_word rows[CORPUS_TOKENS_MAX], columns[CORPUS_TOKENS_MAX];
    char (*names)[HEATMAP_TITLE_MAX];
    const char **titles, **notes;
    float *weights;
    heatmap_sheet sheet;
} layer_map;

/* The words of the sheet remain for layer_map_label(). False: no memory. layer_map_free() either
 * way. */
bool layer_map_make(layer_map *map, const layer_heads *heads);
void layer_map_free(layer_map *map);

/* An axis in words[CORPUS_TOKENS_MAX]: tokens, with special words around them or NULL. */
heatmap_words layer_map_label(text_word *words, const char *begin, const corpus_sentence *tokens,
                              const char *end);

#endif
