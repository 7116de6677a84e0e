/* SPDX-License-Identifier: MIT */
/* Cross-attention of one translation as heat maps: a row for every word that was said, a column for
 * every word that was read, the ends included. */
#ifndef PROGRAM_ALIGNMENT_MAP_H
#define PROGRAM_ALIGNMENT_MAP_H

#include "model/sentence.h"
#include "program/layer_map.h"

/* The heads of decoder layer `layer` and their mean, or only head `head`; both from 1 on, head 0:
 * all. The best result has weights. False: no memory. layer_map_free() either way. */
bool alignment_map_make(layer_map *map, const translated *t, int layer, int head);

#endif
