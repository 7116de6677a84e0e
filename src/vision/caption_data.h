/* SPDX-License-Identifier: MIT */
/*
 * Scenes with captions as the data of a training: every step has new ones, of which those with even
 * numbers have captions in English and the others in French. The decoder reads the mark of the
 * language first. The number of a word is its number in the list of captions plus WORDS_SPECIAL.
 */
#ifndef VISION_CAPTION_DATA_H
#define VISION_CAPTION_DATA_H

#include "scenes/scene_caption.h"
#include "translator/training_data.h"
#include "vision/scene_pixels.h"

typedef struct caption_data {
    training_data base;
    pixel_scale scale; /* the same for all scenes */
} caption_data;
void caption_data_init(caption_data *data);

/* Sets the sides, channels, words and positions of a configuration to those of captions of scenes.
 */
void caption_data_configure(transformer_config *config);

/* The language of scene `index` of a split. */
static inline scene_language caption_language(int64_t index)
{
    return index % 2 == 0 ? SCENE_ENGLISH : SCENE_FRENCH;
}

/* Scenes [first, first + count) of a split with their captions; `scenes` and `captions`, [count],
 * receive what they are made from, and may be NULL. Returns NULL if out of memory. */
batch *caption_batch(const transformer_config *config, const pixel_scale *scale, uint64_t seed,
                     corpus_split split, int64_t first, int count, scene *scenes,
                     scene_caption *captions);

#endif
