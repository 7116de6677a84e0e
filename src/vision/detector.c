/* SPDX-License-Identifier: MIT */
/* Models that find shapes in a picture: their classes, and what they find (detector.h). */
#include "vision/detector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vision/detection_data.h"

/* ----------------------------------------------------------------- classes ----- */

static const char *color_name(int n)
{
    return scene_color_name((scene_color)n);
}

static const char *kind_name(int n)
{
    return scene_kind_name((scene_kind)n);
}

static void put_names(json *j, const char *key, const char *(*name)(int), int count)
{
    json_open_array(j, key);
    for (int n = 0; n < count; n++)
        json_string(j, NULL, name(n));
    json_close(j);
}

static void put_classes(json *j, const transformer_config *config)
{
    json_integer(j, "num_queries", config->positions);
    put_names(j, "colors", color_name, SCENE_COLORS);
    put_names(j, "kinds", kind_name, SCENE_KINDS);
}

/* The names must be those of scenes, in their order. */
static void read_names(folder_config *r, const char *key, const char *(*name)(int), int count)
{
    const json_value *const list = folder_config_member(r, key);
    bool same = list && json_tree_count(list) == (size_t)count;
    for (int n = 0; same && n < count; n++) {
        const char *text;
        same = json_tree_get_string(json_tree_element(list, (size_t)n), &text, NULL) &&
               strcmp(text, name(n)) == 0;
    }
    if (!same)
        folder_config_refuse(r, key, "the list of those of scenes");
}

static void read_classes(folder_config *r, transformer_config *config)
{
    read_names(r, "colors", color_name, SCENE_COLORS);
    read_names(r, "kinds", kind_name, SCENE_KINDS);
    config->form = FORM_DETECTION;
    config->words[TRANSFORMER_SOURCE] = SCENE_COLORS;
    config->words[TRANSFORMER_TARGET] = SCENE_KINDS + 1;
    config->positions = folder_config_size(r, "num_queries");
}

const scene_model_kind detector_kind = {.type = "mha_detector",
                                        .architecture = "MhaDetector",
                                        .put = put_classes,
                                        .read = read_classes};

void detection_name(int class, char text[DETECTION_NAME_MAX])
{
    snprintf(text, DETECTION_NAME_MAX, "%s %s", color_name(class / SCENE_KINDS),
             kind_name(class % SCENE_KINDS));
}

/* ----------------------------------------------------------------- finding ----- */

/* A picture of which nothing is known; NULL if out of memory. */
static batch *batch_of(const scene_model *m, const float *pixels)
{
    const size_t floats = scene_model_floats(m);
    batch *const b =
        batch_of_queries(1, vision_tokens(&m->config.vision), m->config.positions, 1, floats);
    if (b)
        memcpy(b->pixels, pixels, floats * sizeof *pixels);
    return b;
}

mha_status detector_find(const scene_model *m, const float *pixels, detection *found)
{
    const size_t queries = (size_t)m->config.positions;
    const size_t each = (size_t)transformer_outputs(&m->config);
    float *const outputs = malloc(queries * each * sizeof *outputs);
    batch *const b = batch_of(m, pixels);
    network_loss loss;
    const mha_status status =
        outputs && b ? network_forward(m->network, b, &(network_mode){.outputs = outputs}, &loss)
                     : MHA_ERR_MEMORY;
    for (size_t q = 0; q < queries && status == MHA_OK; q++)
        found[q] = detection_of_outputs(&m->config, outputs + q * each);
    batch_free(b);
    free(outputs);
    return status;
}

mha_status detector_weights(const scene_model *m, const float *pixels, float *weights)
{
    batch *const b = batch_of(m, pixels);
    const mha_status status = b ? scene_model_weights(m, b, weights) : MHA_ERR_MEMORY;
    batch_free(b);
    return status;
}
