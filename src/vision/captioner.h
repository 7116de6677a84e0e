/* SPDX-License-Identifier: MIT */
/*
 * A trained model of FORM_CAPTIONS, which says what is in a picture: a scene_model with the list of
 * its words in config.json, "model_type": "mha_captions". A model with other words is refused.
 */
#ifndef VISION_CAPTIONER_H
#define VISION_CAPTIONER_H

#include "scenes/scene_caption.h"
#include "vision/scene_model.h"

extern const scene_model_kind captioner_kind;

typedef struct caption_said {
    int count;
    int words[CAPTION_WORDS_MAX]; /* numbers in the list of captions; -1: a mark, which is none */
    bool complete;                /* the model ended it */
    double score;                 /* log-probability of what it said, with the end if complete */
} caption_said;

/* Says what is in pixels[channels][side][side], which are scaled, the most likely word at a time.
 */
mha_status captioner_say(const scene_model *model, const float *pixels, scene_language language,
                         caption_said *said);

/* Where the cross heads look while it says this: [words + 1, the last for the end][decoder
 * layers][heads][patches]. */
mha_status captioner_weights(const scene_model *model, const float *pixels, scene_language language,
                             const caption_said *said, float *weights);

#endif
