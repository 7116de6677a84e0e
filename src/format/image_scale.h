/* SPDX-License-Identifier: MIT */
/* How preprocessor_config.json says that the pixels of pictures are scaled. */
#ifndef FORMAT_IMAGE_SCALE_H
#define FORMAT_IMAGE_SCALE_H

#include <stdbool.h>

#include "format/json_tree.h"

/*
 * mean[channels] and deviation[channels] of "image_mean" and "image_std": a pixel of 0 to 255
 * becomes (pixel / 255 - mean) / deviation. Without both, pixels go from -1 to 1, as those of most
 * published models; with "do_normalize": false from 0 to 1. False for another number of values, or
 * for values that make no sense.
 */
bool image_scale_read(const json_value *object, int channels, float *mean, float *deviation);

/* The scale of a model without that file. */
void image_scale_default(int channels, float *mean, float *deviation);

#endif
