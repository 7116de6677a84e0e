/* SPDX-License-Identifier: MIT */
/*
 * Heat maps from attention weights: the maps of any one layer, and those that "mha translate
 * --attention" draws. The axes are labelled with words. The sheets of "mha show" are in
 * show_maps.c.
 */
#include "program/maps.h"

#include <stdlib.h>
#include <string.h>

#include "heads/head_pairs.h"

enum { COLUMNS_MAX = 12 }; /* of a word beside or above a map */

/* ----------------------------------------------------------- one layer ----- */

heatmap_words layer_map_label(text_word *words, const char *const *tokens, int count)
{
    for (int n = 0; n < count; n++)
        text_split(tokens[n], &words[n], 1, COLUMNS_MAX);
    return (heatmap_words){words, count};
}

/* Room for `maps` maps; what was allocated before a failure is freed by
 * layer_map_free(). */
static bool allocate(layer_map *map, int maps, size_t rows, size_t columns)
{
    map->rows = calloc(rows + 1, sizeof *map->rows);
    map->columns = calloc(columns + 1, sizeof *map->columns);
    map->names = calloc((size_t)maps, sizeof *map->names);
    map->titles = calloc((size_t)maps, sizeof *map->titles);
    map->notes = calloc((size_t)maps, sizeof *map->notes);
    map->weights = calloc((size_t)maps * rows * columns, sizeof *map->weights);
    return map->rows != NULL && map->columns != NULL && map->names != NULL && map->titles != NULL &&
           map->notes != NULL && map->weights != NULL;
}

/* The weights of a head, each multiplied by the norm of its column if there are norms. */
static void fill_head(const layer_heads *from, int head, float *map)
{
    const size_t columns = (size_t)from->columns, size = (size_t)from->rows * columns;
    const float *const weights = from->weights + (size_t)head * size;
    const float *const norms = from->norms != NULL ? from->norms + (size_t)head * columns : NULL;
    for (size_t n = 0; n < size; n++)
        map[n] = norms != NULL ? weights[n] * norms[n % columns] : weights[n];
}

/* The mean over the drawn heads, cell by cell; summed in double. */
static void fill_mean(const float *heads, int count, size_t size, float *mean)
{
    for (size_t n = 0; n < size; n++) {
        double sum = 0.0;
        for (int head = 0; head < count; head++)
            sum += (double)heads[(size_t)head * size + n];
        mean[n] = (float)(sum / count);
    }
}

bool layer_map_make(layer_map *map, const layer_heads *from)
{
    const int drawn = from->count, maps = from->mean && drawn > 1 ? drawn + 1 : drawn;
    const size_t size = (size_t)from->rows * (size_t)from->columns;
    *map = (layer_map){.sheet = {.heads = maps}};
    if (!allocate(map, maps, (size_t)from->rows, (size_t)from->columns))
        return false;
    for (int n = 0; n < drawn; n++) {
        const int head = from->chosen != NULL ? from->chosen[n] : n;
        fill_head(from, head, map->weights + (size_t)n * size);
        snprintf(map->names[n], HEATMAP_TITLE_MAX, "head %d", head + 1);
        map->titles[n] = map->names[n];
        map->notes[n] = from->notes != NULL ? from->notes[head] : "";
    }
    if (maps > drawn) {
        fill_mean(map->weights, drawn, size, map->weights + (size_t)drawn * size);
        map->titles[drawn] = "mean";
        map->notes[drawn] = "";
    }
    map->sheet.weights = map->weights;
    map->sheet.titles = map->titles;
    map->sheet.notes = from->notes != NULL ? map->notes : NULL;
    return true;
}

void layer_map_free(layer_map *map)
{
    free(map->rows);
    free(map->columns);
    free(map->names);
    free(map->titles);
    free(map->notes);
    free(map->weights);
}

/* ------------------------------------------------------- a translation ----- */

/* Words that were said at the left, words that were read above, both with the end of the sentence.
 */
static void label_translation(layer_map *map, const translated *t)
{
    const vocabulary *const from = translator_vocabulary(t->model, TRANSFORMER_SOURCE);
    const vocabulary *const to = translator_vocabulary(t->model, TRANSFORMER_TARGET);
    const char *words[CORPUS_TOKENS_MAX + 1];
    corpus_sentence said;
    target_tokens(t, 0, &said);
    memcpy(words, said.tokens, (size_t)said.count * sizeof words[0]);
    words[said.count] = to->words[WORD_END];
    map->sheet.rows = layer_map_label(map->rows, words, said.count + target_ends(t->results));
    memcpy(words, t->source->tokens.tokens, (size_t)t->source->tokens.count * sizeof words[0]);
    words[t->source->tokens.count] = from->words[WORD_END];
    map->sheet.columns = layer_map_label(map->columns, words, t->source->tokens.count + 1);
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
        label_translation(map, t);
    return fine;
}
