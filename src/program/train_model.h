/* SPDX-License-Identifier: MIT */
/* The model of a training: written as a file of the laboratory or as a folder, and judged by its
 * translations (train_images.h by the pictures it recognises). */
#ifndef PROGRAM_TRAIN_MODEL_H
#define PROGRAM_TRAIN_MODEL_H

#include "program/train_images.h"
#include "program/train_scenes.h"
#include "program/train_text.h"
#include "program/translation_score.h"

/* What a training learns from; all NULL: the laboratory. */
typedef struct train_sources {
    const train_text *text;     /* pairs */
    const train_images *images; /* pictures with classes */
    const train_scenes *scenes; /* scenes with captions, or with boxes */
} train_sources;

typedef struct train_model {
    const train_request *request;
    train_sources sources;
    reference_set references;
    mha_pool *pool;
} train_model;

/* Reads the validation sentences with all their translations; does nothing for the laboratory and
 * pictures. The caller ends with train_model_close() in any case. */
int train_model_open(train_model *model, const train_request *request, train_sources sources,
                     mha_pool *pool);
void train_model_close(train_model *model);

/* Writes training_values() to `path`, with the settings and the last validation as notes. On an
 * error prints a message and returns the status. */
mha_status train_model_write(const train_model *model, const training *t, const char *path);

/* Translations of up to `most` validation sentences by the model as it is now, written to a folder
 * beside the output, which is then deleted. Only for pairs. */
int train_model_score(const train_model *model, const training *t, int64_t most,
                      translation_score *score);

/* The same by a model that is written. */
int train_model_score_folder(const train_model *model, const char *folder, int64_t most,
                             translation_score *score);

#endif
