/* SPDX-License-Identifier: MIT */
/* Batches of scenes with their things, and what queries say of them (detection_data.h). */
#include "vision/detection_data.h"

#include <math.h>
#include <stdlib.h>

void detection_data_configure(transformer_config *config)
{
    scene_pixels_configure(config);
    config->words[TRANSFORMER_SOURCE] = SCENE_COLORS;
    config->words[TRANSFORMER_TARGET] = SCENE_KINDS + 1;
}

/* ----------------------------------------------------------------- batches ----- */

static batch_thing thing_of(const scene_shape *shape)
{
    const scene_box *const b = &shape->box;
    const double side = SCENE_SIDE;
    return (batch_thing){
        .classes = {(int)shape->color, (int)shape->kind},
        .box = {{(b->left + b->right) / (2.0 * side), (b->top + b->bottom) / (2.0 * side),
                 (b->right - b->left) / side, (b->bottom - b->top) / side}}};
}

batch *detection_batch(const transformer_config *config, const pixel_scale *scale, uint64_t seed,
                       corpus_split split, int64_t first, int count, scene *scenes)
{
    batch *const b = batch_of_queries(count, vision_tokens(&config->vision), config->positions,
                                      SCENE_SHAPES_MAX, SCENE_CHANNELS * SCENE_PIXELS);
    for (int n = 0; b && n < count; n++) {
        scene s;
        scene_generate(seed, split, (uint64_t)(first + n), &s);
        scene_pixels_fill(&s, scale, b->pixels + (size_t)n * b->picture_floats);
        b->thing_counts[n] = s.count;
        for (int k = 0; k < s.count; k++)
            b->things[n * SCENE_SHAPES_MAX + k] = thing_of(&s.shapes[k]);
        if (scenes)
            scenes[n] = s;
    }
    return b;
}

static batch *step(training_data *base, const training_config *config, int64_t number)
{
    const detection_data *const d = (const detection_data *)base;
    return detection_batch(&config->model, &d->scale, config->seed, CORPUS_TRAIN,
                           number * config->batch, config->batch, NULL);
}

static batch *some(training_data *base, const training_config *config, corpus_split split,
                   int64_t first, int count)
{
    const detection_data *const d = (const detection_data *)base;
    return detection_batch(&config->model, &d->scale, config->seed, split, first, count, NULL);
}

/* ------------------------------------------------------------------- lists ----- */

/* The most likely class, the first of equals, and its probability among all `classes`. */
static int most_likely(const float *logits, int candidates, int classes, double *share)
{
    int best = 0;
    double sum = 0.0;
    for (int n = 1; n < candidates; n++)
        best = logits[n] > logits[best] ? n : best;
    for (int n = 0; n < classes; n++)
        sum += exp((double)logits[n] - (double)logits[best]);
    *share = 1.0 / sum;
    return best;
}

detection detection_of_outputs(const transformer_config *config, const float *outputs)
{
    const int colors = config->words[TRANSFORMER_SOURCE];
    const int kinds = config->words[TRANSFORMER_TARGET] - 1;
    double shares[2];
    const int color = most_likely(outputs, colors, colors, &shares[0]);
    const int kind = most_likely(outputs + colors, kinds, kinds + 1, &shares[1]);
    const double score = shares[0] * shares[1];
    return (detection){.class = color * kinds + kind,
                       .score = score >= 0.0 ? score : 0.0, /* not NaN */
                       .box = box_of_outputs(outputs + colors + kinds + 1)};
}

bool detection_list_make(detection_list *list, const transformer_config *config, int64_t count)
{
    const size_t pictures = (size_t)count;
    *list = (detection_list){
        .found = malloc(pictures * (size_t)config->positions * sizeof *list->found + 1),
        .truths = malloc(pictures * SCENE_SHAPES_MAX * sizeof *list->truths + 1),
        .classes = config->words[TRANSFORMER_SOURCE] * (config->words[TRANSFORMER_TARGET] - 1)};
    return list->found && list->truths;
}

void detection_list_add(detection_list *list, const transformer_config *config, int64_t picture,
                        const batch_thing *things, int count, const float *outputs)
{
    const int kinds = config->words[TRANSFORMER_TARGET] - 1;
    for (int q = 0; q < config->positions; q++) {
        detection *const found = &list->found[list->found_count++];
        *found = detection_of_outputs(config, outputs + q * transformer_outputs(config));
        found->picture = picture;
    }
    for (int n = 0; n < count; n++)
        list->truths[list->truth_count++] =
            (detection){.picture = picture,
                        .class = things[n].classes[0] * kinds + things[n].classes[1],
                        .box = things[n].box};
}

void detection_list_free(detection_list *list)
{
    free(list->found);
    free(list->truths);
}

/* ---------------------------------------------------------------- training ----- */

/* The average precision on scenes [0, count). */
static mha_status judge(training_data *base, const training_config *config, corpus_split split,
                        int64_t count, const float *outputs, double *share)
{
    (void)base;
    const transformer_config *const model = &config->model;
    const int row = model->positions * transformer_outputs(model);
    double of_class[SCENE_THINGS];
    detection_list list;
    mha_status status = detection_list_make(&list, model, count) ? MHA_OK : MHA_ERR_MEMORY;
    for (int64_t n = 0; status == MHA_OK && n < count; n++) {
        batch_thing things[SCENE_SHAPES_MAX];
        scene s;
        scene_generate(config->seed, split, (uint64_t)n, &s);
        for (int k = 0; k < s.count; k++)
            things[k] = thing_of(&s.shapes[k]);
        detection_list_add(&list, model, n, things, s.count, outputs + n * row);
    }
    if (status == MHA_OK)
        status = precision_measure(&list, of_class, share);
    detection_list_free(&list);
    return status;
}

void detection_data_init(detection_data *data)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int n = 0; n < SCENE_COLORS; n++)
        hash = corpus_hash(hash, scene_color_name((scene_color)n));
    for (int n = 0; n < SCENE_KINDS; n++)
        hash = corpus_hash(hash, scene_kind_name((scene_kind)n));
    data->base = (training_data){.step = step,
                                 .some = some,
                                 .judge = judge,
                                 .form = FORM_DETECTION,
                                 .hash = scene_pixels_hash(hash)};
    scene_scale_fill(&data->scale);
}
