/* SPDX-License-Identifier: MIT */
/*
 * Writes the heads of one kind of attention. The weights are read once, layer by layer, and written
 * at once; measures and pictures, which come after them in the JSON, are kept until then.
 */
#include "page/page_attention.h"

#include <stdlib.h>

#include "page/page_weights.h"

/* Collected per head while the weights are written. A map is a head, counted layer by layer. */
typedef struct gathered {
    page_measured *measured; /* [maps] */
    char **pictures;         /* [maps], or NULL */
} gathered;

static bool has_pictures(const page_attention *k)
{
    return k->rows > PAGE_PICTURE_SIDE || k->columns > PAGE_PICTURE_SIDE;
}

static bool is_compact(const page_attention *k)
{
    return (double)k->layers * k->heads * k->rows * k->columns > PAGE_EXACT_CELLS;
}

/* Measures head `map` and writes its weights, an element of "weights". */
static bool put_head(json *j, const page_attention *k, const head_matrix *m, int map,
                     const gathered *all)
{
    if (!page_measure_head(&all->measured[map], m, &k->scene, k->baselines, k->picture))
        return false;
    if (all->pictures != NULL && (all->pictures[map] = page_picture_text(m)) == NULL)
        return false;
    const size_t cells = (size_t)m->rows * (size_t)m->columns;
    return page_put_text(
        j, NULL, is_compact(k) ? page_compact_text(m) : page_floats_text(m->weights, cells));
}

/* Writes "weights"; fills `all`. */
static bool put_weights(json *j, const page_attention *k, const gathered *all)
{
    const ptrdiff_t cells = (ptrdiff_t)k->rows * k->columns;
    bool fine = true;
    json_open_array(j, "weights");
    for (int layer = 0; fine && layer < k->layers; layer++) {
        const float *const weights = k->weights(k->arg, layer);
        fine = weights != NULL;
        for (int head = 0; fine && head < k->heads; head++) {
            const head_matrix m = {weights + head * cells, k->rows, k->columns, k->causal};
            fine = put_head(j, k, &m, layer * k->heads + head, all);
        }
    }
    json_close(j);
    return fine;
}

static void put_shape(json *j, const page_attention *k)
{
    json_string(j, "name", attention_kind_name(k->scene.kind));
    json_integer(j, "layers", k->layers);
    json_integer(j, "heads", k->heads);
    json_integer(j, "rows", k->rows);
    json_integer(j, "columns", k->columns);
    json_bool(j, "causal", k->causal);
    json_bool(j, "compact", is_compact(k));
}

bool page_attention_put(json *j, const page_attention *k)
{
    const int maps = k->layers * k->heads;
    gathered all = {calloc((size_t)maps + 1, sizeof *all.measured), NULL};
    if (has_pictures(k))
        all.pictures = calloc((size_t)maps + 1, sizeof *all.pictures);
    bool fine = all.measured != NULL && has_pictures(k) == (all.pictures != NULL);
    if (fine) {
        put_shape(j, k);
        fine = put_weights(j, k, &all);
    }
    if (fine) {
        page_measures_put(j, all.measured, maps);
        if (all.pictures != NULL)
            json_strings(j, "pictures", (const char *const *)all.pictures, maps);
    }
    for (int map = 0; all.pictures != NULL && map < maps; map++)
        free(all.pictures[map]);
    free(all.pictures);
    free(all.measured);
    return fine;
}
