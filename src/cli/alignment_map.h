/* SPDX-License-Identifier: MIT */
/* Cross-attention of one translation as heat maps: a row for every word that was said, a column for
 * every word that was read, the ends included. */
#ifndef CLI_ALIGNMENT_MAP_H
#define CLI_ALIGNMENT_MAP_H

#include "heatmap.h"
#include "translate_text.h"

typedef struct alignment_map {
    text_word rows[CORPUS_TOKENS_MAX], columns[CORPUS_TOKENS_MAX];
    char (*names)[HEATMAP_TITLE_MAX];
    const char **titles;
    float *weights;
    heatmap_sheet sheet;
} alignment_map;

/* The heads of decoder layer `layer` and their mean, or only head `head`; both from 1 on, head 0:
 * all. The best result has weights. False: no memory. alignment_map_free() either way. */
bool alignment_map_make(alignment_map *map, const translated *t, int layer, int head);
void alignment_map_free(alignment_map *map);

#endif
