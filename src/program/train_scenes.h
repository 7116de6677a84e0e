/* SPDX-License-Identifier: MIT */
/* The scenes of "mha train --scenes", with captions or with boxes, and how well a model that is
 * written says what is in them, or finds it. */
#ifndef PROGRAM_TRAIN_SCENES_H
#define PROGRAM_TRAIN_SCENES_H

#include "format/safetensors.h"
#include "program/train_request.h"
#include "vision/caption_data.h"
#include "vision/detection_data.h"

typedef struct train_scenes {
    caption_data captions;
    detection_data things; /* with --detect, instead */
} train_scenes;

/* Sets the sizes in the configuration of the request, which is then checked. */
int train_scenes_open(train_scenes *scenes, train_request *request);

/* The data as a training uses it. */
training_data *train_scenes_base(train_scenes *scenes, const train_request *request);

/* Writes a model as a folder. */
mha_status train_scenes_write(const train_scenes *scenes, const train_request *request,
                              const training *t, const safetensors_pair *notes, size_t note_count,
                              const char *folder, char message[TRANSFORMER_MESSAGE_MAX]);

/* Opens the folder that was written and prints how many captions of validation scenes are right, or
 * the average precision on them. */
int train_scenes_judge(const train_request *request, uint64_t seed, mha_pool *pool);

#endif
