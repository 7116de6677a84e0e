/* SPDX-License-Identifier: MIT */
#include "alignment_map.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 12 };

/* `ends`: the special word for it comes last. */
static heatmap_words label(text_word *words, const corpus_sentence *tokens, bool ends,
                           const vocabulary *v)
{
    int count = 0;
    for (; count < tokens->count; count++)
        text_split(tokens->tokens[count], &words[count], 1, COLUMNS_MAX);
    if (ends)
        text_split(v->words[WORD_END], &words[count++], 1, COLUMNS_MAX);
    return (heatmap_words){words, count};
}

static void label_axes(alignment_map *map, const translated *t)
{
    corpus_sentence said;
    target_tokens(t, 0, &said);
    map->sheet.rows = label(map->rows, &said, target_ends(t->results),
                            translator_vocabulary(t->model, TRANSFORMER_TARGET));
    map->sheet.columns = label(map->columns, &t->source->tokens, true,
                               translator_vocabulary(t->model, TRANSFORMER_SOURCE));
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

static bool allocate(alignment_map *map, int maps, size_t size)
{
    map->names = calloc((size_t)maps, sizeof *map->names);
    map->titles = calloc((size_t)maps, sizeof *map->titles);
    map->weights = calloc((size_t)maps * size, sizeof *map->weights);
    return map->names != NULL && map->titles != NULL && map->weights != NULL;
}

bool alignment_map_make(alignment_map *map, const translated *t, int layer, int head)
{
    const translation *const result = t->results;
    const int heads = translator_config(t->model)->heads, first = head > 0 ? head - 1 : 0;
    const int drawn = head > 0 ? 1 : heads, maps = head > 0 || heads == 1 ? drawn : drawn + 1;
    const size_t size = (size_t)result->target_count * (size_t)result->source_count;
    const float *const from = result->weights + (size_t)((layer - 1) * heads + first) * size;
    *map = (alignment_map){.sheet = {.heads = maps}};
    if (!allocate(map, maps, size))
        return false;
    label_axes(map, t);
    memcpy(map->weights, from, (size_t)drawn * size * sizeof *from);
    if (maps > drawn)
        fill_mean(from, drawn, size, map->weights + (size_t)drawn * size);
    for (int n = 0; n < maps; n++) {
        if (n < drawn)
            snprintf(map->names[n], HEATMAP_TITLE_MAX, "head %d", first + n + 1);
        else
            snprintf(map->names[n], HEATMAP_TITLE_MAX, "mean");
        map->titles[n] = map->names[n];
    }
    map->sheet.weights = map->weights;
    map->sheet.titles = map->titles;
    return true;
}

void alignment_map_free(alignment_map *map)
{
    free(map->names);
    free(map->titles);
    free(map->weights);
}
