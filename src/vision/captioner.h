/* SPDX-License-Identifier: MIT */
/*
 * A trained model of FORM_CAPTIONS, which says what is in a picture. It is a folder:
 *
 *      model.safetensors          the parameters, F16 or F32, with the settings of the training
 *      preprocessor_config.json   size of the pictures, means and deviations of their pixels
 *      config.json                "model_type": "mha_captions", sizes, words
 *
 * Files are not trusted: one that is damaged, or of a model with other words, is refused with what
 * is wrong and where.
 */
#ifndef VISION_CAPTIONER_H
#define VISION_CAPTIONER_H

#include "format/safetensors.h"
#include "scenes/scene_caption.h"
#include "translator/model_folder_read.h"
#include "translator/network.h"
#include "vision/augment.h"

typedef struct captioner_content {
    const transformer_config *config;
    const float *values;
    mha_dtype type; /* MHA_F16 or MHA_F32 */
    const pixel_scale *scale;
    const safetensors_pair *notes; /* for the metadata */
    size_t note_count;
} captioner_content;

/* Creates the folder if it does not exist. On an error returns its status, with the reason in
 * `message`: MHA_ERR_FORMAT if a value is not finite, or not in the requested type. */
mha_status captioner_write(const char *folder, const captioner_content *content,
                           char message[TRANSFORMER_MESSAGE_MAX]);

/* Whether the config.json of a folder says that it is such a model. False also if it cannot be
 * read. */
bool captioner_is_folder(const char *folder);

/* Reads the config.json of such a model, and closes it. */
mha_status captioner_read_config(folder_config *r, transformer_config *config);

typedef struct captioner {
    transformer_config config;
    pixel_scale scale;
    float *values;
    network *network;
} captioner;

/* Returns NULL, with the reason in `message`. `pool` must stay valid until captioner_free(). */
captioner *captioner_load(const char *folder, mha_arithmetic arithmetic, mha_pool *pool,
                          char message[TRANSFORMER_MESSAGE_MAX]);
void captioner_free(captioner *model);

typedef struct caption_said {
    int count;
    int words[CAPTION_WORDS_MAX]; /* numbers in the list of captions; -1: a mark, which is none */
    bool complete;                /* the model ended it */
    double score;                 /* log-probability of what it said, with the end if complete */
} caption_said;

/* Says what is in pixels[channels][side][side], which are scaled, the most likely word at a time.
 */
mha_status captioner_say(const captioner *model, const float *pixels, scene_language language,
                         caption_said *said);

/* Where the cross heads look while it says this: [words + 1, the last for the end][decoder
 * layers][heads][patches]. */
mha_status captioner_weights(const captioner *model, const float *pixels, scene_language language,
                             const caption_said *said, float *weights);

#endif
