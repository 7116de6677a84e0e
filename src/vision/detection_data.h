/* SPDX-License-Identifier: MIT */
/*
 * Scenes with their things as the data of a training: every step has new ones. The classes of the
 * first kind are the colours, those of the second one the kinds of shapes and "nothing"; boxes are
 * those around what can be seen.
 */
#ifndef VISION_DETECTION_DATA_H
#define VISION_DETECTION_DATA_H

#include "translator/training_data.h"
#include "vision/precision.h"
#include "vision/scene_pixels.h"

typedef struct detection_data {
    training_data base;
    pixel_scale scale; /* the same for all scenes */
} detection_data;
void detection_data_init(detection_data *data);

/* Sets the sides, channels and classes of a configuration to those of scenes. */
void detection_data_configure(transformer_config *config);

/* Scenes [first, first + count) of a split with their things; `scenes`, [count], receives what they
 * are made from, and may be NULL. Returns NULL if out of memory. */
batch *detection_batch(const transformer_config *config, const pixel_scale *scale, uint64_t seed,
                       corpus_split split, int64_t first, int count, scene *scenes);

/* What a query says: its most likely colour and kind, their probability as the score, and the
 * box. */
detection detection_of_outputs(const transformer_config *config, const float *outputs);

/* Lists for pictures [0, count), whose truths are filled in by detection_list_add(), a picture
 * after the other; false if out of memory. The caller ends with detection_list_free() in any
 * case. */
bool detection_list_make(detection_list *list, const transformer_config *config, int64_t count);
void detection_list_add(detection_list *list, const transformer_config *config, int64_t picture,
                        const batch_thing *things, int count, const float *outputs);
void detection_list_free(detection_list *list);

#endif
