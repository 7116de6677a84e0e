/* SPDX-License-Identifier: MIT */
/* The sheets of "mha show": the drawn heads of a text, one sheet per kind and layer. The
 * maps of a layer are made in maps.c. */
#include "program/maps.h"

#include <stdio.h>
#include <stdlib.h>

#include "heads/head_pairs.h"

/* The axes of the table in maps.h. */
static void label(layer_map *map, const show_scene *scene, attention_kind kind)
{
    const subject_text *const text = scene->text;
    const subject_side *const side = kind == ATTENTION_DECODER ? &text->target : &text->source;
    heatmap_sheet *const sheet = &map->sheet;
    sheet->columns = layer_map_label(map->columns, side->words, side->count);
    sheet->rows = sheet->columns;
    sheet->causal = kind == ATTENTION_DECODER;
    if (kind == ATTENTION_CROSS)
        sheet->rows = layer_map_label(map->rows, text->expected, text->target.count);
}

/* "cross, layer 2 of 2: French attends to English" */
static void write_heading(show_sheet *sheet, const show_scene *scene)
{
    const char *const *const names = scene->model->side_names;
    const char *const source = names[TRANSFORMER_SOURCE], *const target = names[TRANSFORMER_TARGET];
    char who[SHOW_HEADING_MAX / 2];
    if (sheet->kind == ATTENTION_DECODER)
        snprintf(who, sizeof who, "%s attends to %s before it", target, target);
    else
        snprintf(who, sizeof who, "%s attends to %s",
                 sheet->kind == ATTENTION_CROSS ? target : source, source);
    snprintf(sheet->heading, sizeof sheet->heading, "%s, layer %d of %d: %s%s",
             attention_kind_name(sheet->kind), sheet->layer + 1,
             scene->heads->kind[sheet->kind].layers, who, scene->norm ? ", weight x norm" : "");
}

/* False if out of memory. */
static bool fill_sheet(show_sheet *sheet, const show_scene *scene)
{
    const head_shape shape = scene->model->shape;
    const capture_heads *const all = &scene->heads->kind[sheet->kind];
    const ptrdiff_t first = (ptrdiff_t)sheet->layer * all->heads;
    const int number = head_number(shape, (head_name){sheet->kind, sheet->layer, 0});
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
    label(&sheet->map, scene, sheet->kind);
    write_heading(sheet, scene);
    sheet->map.sheet.heading = sheet->heading;
    return true;
}

/* Writes the heads that are drawn of a layer to `chosen` and returns their number. */
static int choose(const show_scene *scene, attention_kind kind, int layer, int *chosen)
{
    const head_shape shape = scene->model->shape;
    const int first = head_number(shape, (head_name){kind, layer, 0});
    int count = 0;
    for (int head = 0; head < shape.heads; head++)
        if (scene->drawn[first + head])
            chosen[count++] = head;
    return count;
}

bool show_maps_make(show_maps *maps, const show_scene *scene)
{
    const head_shape shape = scene->model->shape;
    const size_t heads = (size_t)head_count(shape);
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
