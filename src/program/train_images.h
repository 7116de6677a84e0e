/* SPDX-License-Identifier: MIT */
/* The pictures of "mha train --images", and how well a model that is written recognises them. */
#ifndef PROGRAM_TRAIN_IMAGES_H
#define PROGRAM_TRAIN_IMAGES_H

#include "format/safetensors.h"
#include "program/train_request.h"
#include "vision/confusion.h"
#include "vision/vision_data.h"

typedef struct train_images {
    picture_set train, test;
    vision_data *data;
} train_images;

/* Reads the set, names its classes, and sets the sizes in the configuration of the request, which
 * is then checked. Says what was read. Initialised to zero by the caller, who calls
 * train_images_close() in any case. */
int train_images_open(train_images *images, train_request *request);
void train_images_close(train_images *images);

/* Writes a model as a folder. */
mha_status train_images_write(const train_images *images, const train_request *request,
                              const training *t, const safetensors_pair *notes, size_t note_count,
                              const char *folder, char message[TRANSFORMER_MESSAGE_MAX]);

/* Opens the folder that was written and lets it classify the pictures for the test or, if the set
 * has none, those for validation. Prints what it gets right, and draws --confusion. */
int train_images_judge(const train_images *images, const train_request *request, mha_pool *pool);

#endif
