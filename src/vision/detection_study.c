/* SPDX-License-Identifier: MIT */
/* Measures what a detector finds in scenes, and what its cross heads look at (detection_study.h).
 */
#include "vision/detection_study.h"

#include <math.h>
#include <stdlib.h>

#include "vision/detection_data.h"

enum { AT_ONCE = 64 };

typedef struct studying {
    detection_study *study;
    const scene_model *model;
    pointing *pointing;
    detection_list list;
    float *outputs, *cross; /* of the batch */
    scene *shown;           /* [AT_ONCE] */
} studying;

/* --------------------------------------------------------------- what is found ----- */

/* Scenes [first, first + count), as many as are run at once. */
typedef struct scene_range {
    uint64_t seed;
    corpus_split split;
    int64_t first;
    int count;
} scene_range;

static void list_scene(studying *t, const batch *b, int n, int64_t number)
{
    const transformer_config *const c = &t->model->config;
    detection_list_add(&t->list, c, number, &b->things[n * b->things_room], b->thing_counts[n],
                       t->outputs + (ptrdiff_t)n * c->positions * transformer_outputs(c));
}

/* The number of a thing among those of its scene is that of its shape. */
static int shape_of(const detection_list *list, int thing)
{
    int shape = 0;
    while (thing - shape > 0 &&
           list->truths[thing - shape - 1].picture == list->truths[thing].picture)
        shape++;
    return shape;
}

static void point_scene(studying *t, const batch *b, int n, int64_t number)
{
    const int queries = t->model->config.positions;
    for (int q = 0; q < queries; q++) {
        const detection *const found = &t->list.found[number * queries + q];
        if (found->right > 0)
            pointing_add(t->pointing, &t->shown[n], number, q, shape_of(&t->list, found->right - 1),
                         b, n, q, t->cross);
    }
}

/* Runs the model on some scenes. Lists what it finds; unless `points`: then what is right is known,
 * and its heads are looked at. */
static mha_status study_some(studying *t, const scene_range *r, bool points)
{
    const scene_model *const m = t->model;
    const network_mode mode = {.outputs = points ? NULL : t->outputs,
                               .cross = points ? t->cross : NULL};
    network_loss loss;
    batch *const b =
        detection_batch(&m->config, &m->scale, r->seed, r->split, r->first, r->count, t->shown);
    if (!b)
        return MHA_ERR_MEMORY;
    const mha_status status = network_forward(m->network, b, &mode, &loss);
    for (int n = 0; n < r->count && status == MHA_OK; n++)
        (points ? point_scene : list_scene)(t, b, n, r->first + n);
    batch_free(b);
    return status;
}

/* One pass over all scenes. Whether a box is right is only known after all: another one of the same
 * class may have a higher score. So there are two passes. */
static mha_status pass_over(studying *t, uint64_t seed, corpus_split split, bool points)
{
    mha_status status = MHA_OK;
    for (int64_t first = 0; first < t->study->scenes && status == MHA_OK; first += AT_ONCE) {
        const int64_t left = t->study->scenes - first;
        const scene_range range = {seed, split, first, (int)(left < AT_ONCE ? left : AT_ONCE)};
        status = study_some(t, &range, points);
    }
    return status;
}

/* --------------------------------------------------------------------- queries ----- */

static void study_query(detection_study *study, const detection_list *list, int query)
{
    query_study *const own = &study->of_query[query];
    double sums[2] = {0}, squares[2] = {0};
    for (size_t n = (size_t)query; n < list->found_count; n += (size_t)study->queries) {
        const detection *const found = &list->found[n];
        own->right += found->right > 0;
        for (int axis = 0; axis < 2 && found->right > 0; axis++) {
            sums[axis] += found->box.at[axis];
            squares[axis] += found->box.at[axis] * found->box.at[axis];
        }
    }
    const double count = (double)own->right;
    own->x = sums[0] / count;
    own->y = sums[1] / count;
    own->x_deviation = sqrt(fmax(squares[0] / count - own->x * own->x, 0.0));
    own->y_deviation = sqrt(fmax(squares[1] / count - own->y * own->y, 0.0));
}

static void count_things(detection_study *study, const detection_list *list)
{
    study->things = (int64_t)list->truth_count;
    for (size_t n = 0; n < list->truth_count; n++)
        study->class_things[list->truths[n].class]++;
    for (size_t n = 0; n < list->found_count; n++)
        study->right += list->found[n].right > 0;
    for (int query = 0; query < study->queries; query++)
        study_query(study, list, query);
}

/* --------------------------------------------------------------------- measure ----- */

static mha_status study_all(studying *t, uint64_t seed, corpus_split split)
{
    mha_status status = pass_over(t, seed, split, false);
    if (status == MHA_OK)
        status = precision_measure(&t->list, t->study->of_class, &t->study->mean);
    if (status != MHA_OK)
        return status;
    count_things(t->study, &t->list);
    status = pass_over(t, seed, split, true);
    return status == MHA_OK ? pointing_finish(t->pointing, &t->study->pointing) : status;
}

mha_status detection_study_measure(detection_study *study, const scene_model *model, uint64_t seed,
                                   corpus_split split, int64_t count)
{
    const transformer_config *const c = &model->config;
    const size_t queries = (size_t)c->positions, rows = AT_ONCE * queries;
    *study = (detection_study){.scenes = count, .queries = c->positions};
    if (c->vision.side != SCENE_SIDE || c->positions < SCENE_SHAPES_MAX)
        return MHA_ERR_SHAPE;
    study->of_query = calloc(queries, sizeof *study->of_query);
    studying t = {.study = study,
                  .model = model,
                  .pointing = pointing_new(c, count, count * SCENE_SHAPES_MAX, c->positions),
                  .outputs = malloc(rows * (size_t)transformer_outputs(c) * sizeof *t.outputs),
                  .cross = calloc(scene_model_maps(model) * rows,
                                  (size_t)vision_tokens(&c->vision) * sizeof *t.cross),
                  .shown = malloc(AT_ONCE * sizeof *t.shown)};
    const bool listed = detection_list_make(&t.list, c, count);
    const bool fine = listed && study->of_query && t.pointing && t.outputs && t.cross && t.shown;
    const mha_status status = fine ? study_all(&t, seed, split) : MHA_ERR_MEMORY;
    detection_list_free(&t.list);
    pointing_free(t.pointing);
    free(t.outputs);
    free(t.cross);
    free(t.shown);
    return status;
}

void detection_study_free(detection_study *study)
{
    free(study->of_query);
    study->of_query = NULL;
    pointing_result_free(&study->pointing);
}
