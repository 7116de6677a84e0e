/* SPDX-License-Identifier: MIT */
/*
 * A trained model of FORM_VISION as a folder in Hugging Face's form, which libmha_model opens:
 *
 *      model.safetensors          the parameters, F16 or F32, with the settings of the training
 *      preprocessor_config.json   size of the pictures, means and deviations of their pixels
 *      config.json                architecture, sizes, names of the classes
 *
 * If the patches do not overlap and there is a token of the class, it is a ViT, which transformers
 * opens as ViTForImageClassification. Else the family is "mha_vit", which only libmha_model knows.
 */
#ifndef VISION_VISION_FOLDER_H
#define VISION_VISION_FOLDER_H

#include "format/json_writer.h"
#include "format/safetensors.h"
#include "picture/picture_set.h"
#include "translator/transformer.h"
#include "vision/augment.h"

typedef struct vision_content {
    const transformer_config *config;
    const float *values;
    mha_dtype type; /* MHA_F16 or MHA_F32 */
    const pixel_scale *scale;
    const picture_class_name *names;
    const safetensors_pair *notes; /* for the metadata */
    size_t note_count;
} vision_content;

/* Creates the folder if it does not exist. On an error returns its status, with the reason in
 * `message`: MHA_ERR_FORMAT if a value is not finite, or not in the requested type. */
mha_status vision_folder_write(const char *folder, const vision_content *content,
                               char message[TRANSFORMER_MESSAGE_MAX]);

/* The members of preprocessor_config.json. */
void vision_folder_preprocessor(json *j, const vision_shape *shape, const pixel_scale *scale);

#endif
