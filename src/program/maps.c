/* SPDX-License-Identifier: MIT */
/*
 * Sheets of heat maps from attention weights: first the maps of any one layer, then what "mha
 * translate --attention" and "mha show" draw with them. The axes are labelled with words.
 */
#include "program/maps.h"

#include <stdlib.h>

#include "heads/head_pairs.h"

enum { COLUMNS_MAX = 12 }; /* of a word beside or above a map */

/* ----------------------------------------------------------- one layer ----- */

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

/* Room for `maps` maps of `size` cells; what was allocated before a failure is freed by
 * layer_map_free(). */
static bool allocate(layer_map *map, int maps, size_t size)
{
    map->names = calloc((size_t)maps, sizeof *map->names);
    map->titles = calloc((size_t)maps, sizeof *map->titles);
    map->notes = calloc((size_t)maps, sizeof *map->notes);
    map->weights = calloc((size_t)maps * size, sizeof *map->weights);
    return map->names != NULL && map->titles != NULL && map->notes != NULL && map->weights != NULL;
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

/* ------------------------------------------------------- a translation ----- */

/* Words that were said at the left, words that were read above, both with the end of the sentence.
 */
static void label_translation(layer_map *map, const translated *t)
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
        label_translation(map, t);
    return fine;
}

/* ----------------------------------------------------- a sentence pair ----- */

/* The axes of the table in maps.h. */
static void label_pair(layer_map *map, const show_scene *scene, attention_kind kind)
{
    const vocabulary *const from = translator_vocabulary(scene->model, TRANSFORMER_SOURCE);
    const vocabulary *const to = translator_vocabulary(scene->model, TRANSFORMER_TARGET);
    const corpus_sentence *const source = &scene->pair->source.tokens;
    const corpus_sentence *const target = &scene->pair->target;
    heatmap_sheet *const sheet = &map->sheet;
    switch (kind) {
    case ATTENTION_DECODER:
        sheet->rows = layer_map_label(map->rows, to->words[WORD_BEGIN], target, NULL);
        sheet->columns = sheet->rows;
        sheet->causal = true;
        break;
    case ATTENTION_CROSS:
        sheet->rows = layer_map_label(map->rows, NULL, target, to->words[WORD_END]);
        sheet->columns = layer_map_label(map->columns, NULL, source, from->words[WORD_END]);
        break;
    default:
        sheet->rows = layer_map_label(map->rows, NULL, source, from->words[WORD_END]);
        sheet->columns = sheet->rows;
    }
}

/* "cross, layer 2 of 2: French looks at English" */
static void write_heading(show_sheet *sheet, const show_scene *scene)
{
    static const char *const who[ATTENTION_KINDS] = {
        "English looks at English", "French looks at French before it", "French looks at English"};
    snprintf(sheet->heading, sizeof sheet->heading, "%s, layer %d of %d: %s%s",
             attention_kind_name(sheet->kind), sheet->layer + 1,
             scene->heads->kind[sheet->kind].layers, who[sheet->kind],
             scene->norm ? ", weight x norm" : "");
}

/* False if out of memory. */
static bool fill_sheet(show_sheet *sheet, const show_scene *scene)
{
    const transformer_config *const config = translator_config(scene->model);
    const capture_heads *const all = &scene->heads->kind[sheet->kind];
    const ptrdiff_t first = (ptrdiff_t)sheet->layer * all->heads;
    const int number = head_number(config, (head_name){sheet->kind, sheet->layer, 0});
    const layer_heads from = {
        .weights = all->weights + first * all->rows * all->columns,
        .norms = scene->norm ? all->value_norms + first * all->columns : NULL,
        .rows = all->rows,
        .columns = all->columns,
        .chosen = sheet->chosen,
        .count = sheet->count,
        .mean = scene->mean,
        .notes = scene->roles != NULL ? scene->roles + number : NULL,
    };
    if (!layer_map_make(&sheet->map, &from))
        return false;
    label_pair(&sheet->map, scene, sheet->kind);
    write_heading(sheet, scene);
    sheet->map.sheet.heading = sheet->heading;
    return true;
}

/* Writes the heads that are drawn of a layer to `chosen` and returns their number. */
static int choose(const show_scene *scene, attention_kind kind, int layer, int *chosen)
{
    const transformer_config *const config = translator_config(scene->model);
    const int first = head_number(config, (head_name){kind, layer, 0});
    int count = 0;
    for (int head = 0; head < config->heads; head++)
        if (scene->drawn[first + head])
            chosen[count++] = head;
    return count;
}

bool show_maps_make(show_maps *maps, const show_scene *scene)
{
    const transformer_config *const config = translator_config(scene->model);
    const size_t heads = (size_t)head_count(config);
    *maps = (show_maps){.sheets = calloc(heads, sizeof *maps->sheets),
                        .chosen = calloc(heads, sizeof *maps->chosen)};
    int *chosen = maps->chosen;
    bool fine = maps->sheets != NULL && chosen != NULL;
    for (int kind = 0; fine && kind < ATTENTION_KINDS; kind++)
        for (int layer = 0; fine && layer < scene->heads->kind[kind].layers; layer++) {
            show_sheet *const sheet = &maps->sheets[maps->count];
            const int count = choose(scene, (attention_kind)kind, layer, chosen);
            if (count == 0)
                continue;
            *sheet = (show_sheet){
                .kind = (attention_kind)kind, .layer = layer, .chosen = chosen, .count = count};
            maps->count++;
            chosen += count;
            fine = fill_sheet(sheet, scene);
        }
    return fine;
}

void show_maps_free(show_maps *maps)
{
    for (int n = 0; maps->sheets != NULL && n < maps->count; n++)
        layer_map_free(&maps->sheets[n].map);
    free(maps->sheets);
    free(maps->chosen);
}
