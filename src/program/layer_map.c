/* SPDX-License-Identifier: MIT */
#include "program/layer_map.h"

#include <stdlib.h>

enum { COLUMNS_MAX = 12 };

heatmap_words layer_map_label(text_word *words, const char *begin, const corpus_sentence *tokens,
                              const char *end)
{
    int count = 0;
    if (begin != NULL)
        text_split(begin, &words[count++], 1, COLUMNS_MAX);
    for (int n = 0; n < tokens->count; n++)
        text_split(tokens->tokens[n], &words[count++], 1, COLUMNS_MAX);
    if (end != NULL)
        text_split(end, &words[count++], 1, COLUMNS_MAX);
    return (heatmap_words){words, count};
}

static bool allocate(layer_map *map, int maps, size_t size)
{
    map->names = calloc((size_t)maps, sizeof *map->names);
    map->titles = calloc((size_t)maps, sizeof *map->titles);
    map->notes = calloc((size_t)maps, sizeof *map->notes);
    map->weights = calloc((size_t)maps * size, sizeof *map->weights);
    return map->names != NULL && map->titles != NULL && map->notes != NULL && map->weights != NULL;
}

static void fill_head(const layer_heads *from, int head, float *map)
{
    const size_t columns = (size_t)from->columns, size = (size_t)from->rows * columns;
    const float *const weights = from->weights + (size_t)head * size;
    const float *const norms = from->norms != NULL ? from->norms + (size_t)head * columns : NULL;
    for (size_t n = 0; n < size; n++)
        map[n] = norms != NULL ? weights[n] * norms[n % columns] : weights[n];
}

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
    if (!allocate(map, maps, size))
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
    free(map->names);
    free(map->titles);
    free(map->notes);
    free(map->weights);
}
