/* SPDX-License-Identifier: MIT */
/*
 * A set of pictures as the data of a training. Some of the pictures for training, always the same,
 * are not trained on but used for validation; CORPUS_TEST are those of the set for a test. Every
 * epoch has another order, and every picture is changed in another way each time it is seen
 * (augment.h).
 */
#ifndef VISION_VISION_DATA_H
#define VISION_VISION_DATA_H

#include "picture/picture_set.h"
#include "translator/training_data.h"
#include "vision/augment.h"

/* At most so many pictures are for validation, and at most a tenth of all. */
enum { VISION_VALID_MAX = 1000 };

typedef struct vision_data vision_data;

/* The sets must stay valid. Returns NULL, with the reason in `message`, PICTURE_MESSAGE_MAX bytes,
 * for pictures that are not square or too few, or if out of memory. */
vision_data *vision_data_create(const picture_set *train, const picture_set *test, char *message);
void vision_data_free(vision_data *data);

/* The data as a training uses it; and how it scales pixels. */
training_data *vision_data_base(vision_data *data);
const pixel_scale *vision_data_scale(const vision_data *data);

/* Sets the sides, channels, classes and positions of a configuration to those of the set. */
void vision_data_configure(const vision_data *data, transformer_config *config);

#endif
