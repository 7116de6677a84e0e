/* SPDX-License-Identifier: MIT */
/*
 * How well a model says what is in scenes, and whether its cross heads look at the shape that a
 * word is about.
 *
 * A caption is right if every word of it is the most likely one after the true words before it:
 * then saying the most likely word at a time says exactly it. A head points at a shape if the patch
 * with its largest weight shows more of that shape than of any other. Pointing is measured on the
 * words for size, colour and kind that are right. The control of all heads is the best that looking
 * at a fixed place can give: of each place in the caption, in each language, the patch that would
 * have been right most often.
 */
#ifndef VISION_CAPTION_STUDY_H
#define VISION_CAPTION_STUDY_H

#include "base/mean_interval.h"
#include "vision/captioner.h"

typedef struct caption_study {
    int64_t scenes[SCENE_LANGUAGES], right[SCENE_LANGUAGES];
    int64_t words, words_right; /* of all captions, with their ends */
    int64_t pointed;            /* words that pointing is measured on */
    int layers, heads;
    mean_interval *pointing; /* [layers][heads] share of these words, over scenes */
    mean_interval control;
} caption_study;

/* Measures scenes [0, count) of a split; those with odd numbers in French. The caller ends with
 * caption_study_free() in any case. MHA_ERR_SHAPE: the model does not read pictures of the size of
 * scenes. */
mha_status caption_study_measure(caption_study *study, const captioner *model, uint64_t seed,
                                 corpus_split split, int64_t count);
void caption_study_free(caption_study *study);

#endif
