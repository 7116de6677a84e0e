/* SPDX-License-Identifier: MIT */
/*
 * A trained model of FORM_DETECTION, which finds coloured shapes in a picture: a scene_model with
 * the number of its queries and the names of its classes in config.json, "model_type":
 * "mha_detector". A model with other classes is refused.
 */
#ifndef VISION_DETECTOR_H
#define VISION_DETECTOR_H

#include "vision/precision.h"
#include "vision/scene_model.h"

extern const scene_model_kind detector_kind;

/* What every query says of pixels[channels][side][side], which are scaled: found[queries]. */
mha_status detector_find(const scene_model *model, const float *pixels, detection *found);

/* Where the cross heads of every query look: [queries][decoder layers][heads][patches]. */
mha_status detector_weights(const scene_model *model, const float *pixels, float *weights);

/* "red square". */
enum { DETECTION_NAME_MAX = 32 };
void detection_name(int class, char text[DETECTION_NAME_MAX]);

#endif
