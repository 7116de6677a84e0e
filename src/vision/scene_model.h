/* SPDX-License-Identifier: MIT */
/*
 * A trained model that reads scenes and has a decoder: it says what is in a picture (captioner.h),
 * or where (detector.h). It is a folder:
 *
 *      model.safetensors          the parameters, F16 or F32, with the settings of the training
 *      preprocessor_config.json   size of the pictures, means and deviations of their pixels
 *      config.json                "model_type", sizes, and what only one kind of models has
 *
 * Files are not trusted: one that is damaged, or of another kind of model, is refused with what is
 * wrong and where.
 */
#ifndef VISION_SCENE_MODEL_H
#define VISION_SCENE_MODEL_H

#include "format/safetensors.h"
#include "scenes/scene.h"
#include "translator/model_folder_read.h"
#include "translator/network.h"
#include "vision/augment.h"

/* What is different of two kinds of models. */
typedef struct scene_model_kind {
    const char *type, *architecture; /* "model_type", "architectures" of config.json */
    void (*put)(json *j, const transformer_config *config); /* members of its own */
    /* Checks these, and fills in form, words and positions. */
    void (*read)(folder_config *r, transformer_config *config);
} scene_model_kind;

typedef struct scene_model_content {
    const transformer_config *config;
    const float *values;
    mha_dtype type; /* MHA_F16 or MHA_F32 */
    const pixel_scale *scale;
    const safetensors_pair *notes; /* for the metadata */
    size_t note_count;
} scene_model_content;

/* Creates the folder if it does not exist. On an error returns its status, with the reason in
 * `message`: MHA_ERR_FORMAT if a value is not finite, or not in the requested type. */
mha_status scene_model_write(const scene_model_kind *kind, const char *folder,
                             const scene_model_content *content,
                             char message[TRANSFORMER_MESSAGE_MAX]);

/* Whether the config.json of a folder says that it is such a model. False also if it cannot be
 * read. */
bool scene_model_is_folder(const scene_model_kind *kind, const char *folder);

/* Reads the config.json of such a model, and closes it. */
mha_status scene_model_read_config(const scene_model_kind *kind, folder_config *r,
                                   transformer_config *config);

typedef struct scene_model {
    transformer_config config;
    pixel_scale scale;
    float *values;
    network *network;
} scene_model;

/* Returns NULL, with the reason in `message`. `pool` must stay valid until scene_model_free(). */
scene_model *scene_model_load(const scene_model_kind *kind, const char *folder,
                              mha_arithmetic arithmetic, mha_pool *pool,
                              char message[TRANSFORMER_MESSAGE_MAX]);
void scene_model_free(scene_model *model);

/* Floats of a picture; and maps of a decoder: its cross heads of all layers. */
size_t scene_model_floats(const scene_model *model);
size_t scene_model_maps(const scene_model *model);

/* Runs the model on a batch of one picture, and moves its cross weights to [rows of the
 * target][decoder layers][heads][patches]. */
mha_status scene_model_weights(const scene_model *model, const batch *b, float *weights);

#endif
