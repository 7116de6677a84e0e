/* SPDX-License-Identifier: MIT */
#include "program/alignment_map.h"

static void label_axes(layer_map *map, const translated *t)
{
    const vocabulary *const from = translator_vocabulary(t->model, TRANSFORMER_SOURCE);
    const vocabulary *const to = translator_vocabulary(t->model, TRANSFORMER_TARGET);
    corpus_sentence said;
    target_tokens(t, 0, &said);
    map->sheet.rows = layer_map_label(map->rows, NULL, &said,
                                      target_ends(t->results) ? to->words[WORD_END] : NULL);
    map->sheet.columns =
        layer_map_label(map->columns, NULL, &t->source->tokens, from->words[WORD_END]);
}

bool alignment_map_make(layer_map *map, const translated *t, int layer, int head)
{
    const translation *const result = t->results;
    const int heads = translator_config(t->model)->heads, only = head - 1;
    const size_t size = (size_t)result->target_count * (size_t)result->source_count;
    const layer_heads from = {.weights = result->weights + (size_t)((layer - 1) * heads) * size,
                              .rows = result->target_count,
                              .columns = result->source_count,
                              .chosen = head > 0 ? &only : NULL,
                              .count = head > 0 ? 1 : heads,
                              .mean = true};
    const bool fine = layer_map_make(map, &from);
    if (fine)
        label_axes(map, t);
    return fine;
}
