/* SPDX-License-Identifier: MIT */
/* The sheets of "mha show": the drawn heads of a sentence pair, one sheet per kind and layer. The
 * maps of a layer are made in maps.c. */
#include "program/maps.h"

#include <stdio.h>
#include <stdlib.h>

#include "heads/head_pairs.h"

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

/* "cross, layer 2 of 2: French attends to English" */
static void write_heading(show_sheet *sheet, const show_scene *scene)
{
    static const char *const who[ATTENTION_KINDS] = {"English attends to English",
                                                     "French attends to French before it",
                                                     "French attends to English"};
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
