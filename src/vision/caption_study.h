/* SPDX-License-Identifier: MIT */
/*
 * How well a model says what is in scenes, and whether its cross heads look at the shape that a
 * word is about.
 *
 * A caption is right if every word of it is the most likely one after the true words before it:
 * then saying the most likely word at a time says exactly it. Pointing (pointing.h) is measured on
 * the words for size, colour and kind that are right; the place of a word is that in the caption of
 * a language.
 */
#ifndef VISION_CAPTION_STUDY_H
#define VISION_CAPTION_STUDY_H

#include "vision/captioner.h"
#include "vision/pointing.h"

typedef struct caption_study {
    int64_t scenes[SCENE_LANGUAGES], right[SCENE_LANGUAGES];
    int64_t words, words_right; /* of all captions, with their ends */
    pointing_result pointing;
} caption_study;

/* Measures scenes [0, count) of a split; those with odd numbers in French. The caller ends with
 * caption_study_free() in any case. MHA_ERR_SHAPE: the model does not read pictures of the size of
 * scenes. */
mha_status caption_study_measure(caption_study *study, const scene_model *model, uint64_t seed,
                                 corpus_split split, int64_t count);
void caption_study_free(caption_study *study);

#endif
