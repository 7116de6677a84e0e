/* SPDX-License-Identifier: MIT */
/* What the folder of a classifier says beside its weights: names of classes, and how pixels are
 * scaled. */
#ifndef VISION_CLASSES_H
#define VISION_CLASSES_H

#include "picture/picture_set.h"
#include "vision/augment.h"

/* names[count] of "id2label" in config.json; those that are missing are numbers. False if the file
 * cannot be read, with a sentence in `message`, PICTURE_MESSAGE_MAX bytes. */
bool classes_read(const char *folder, picture_class_name *names, int count, char *message);

/* "image_mean" and "image_std" of preprocessor_config.json, with their table. Without the file
 * pixels go from -1 to 1, as those of most published models. False as above, also for numbers that
 * make no sense. */
bool classes_read_scale(const char *folder, pixel_scale *scale, int channels, char *message);

#endif
