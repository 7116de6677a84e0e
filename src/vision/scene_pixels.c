/* SPDX-License-Identifier: MIT */
/* The pixels of scenes, scaled for models (scene_pixels.h). */
#include "vision/scene_pixels.h"

/* About the mean and the deviation of all pixels. */
#define PIXEL_MEAN 0.25f
#define PIXEL_DEVIATION 0.2f

void scene_scale_fill(pixel_scale *scale)
{
    for (int c = 0; c < SCENE_CHANNELS; c++) {
        scale->mean[c] = PIXEL_MEAN;
        scale->deviation[c] = PIXEL_DEVIATION;
    }
    pixel_scale_fill(scale, SCENE_CHANNELS);
}

void scene_pixels_fill(const scene *s, const pixel_scale *scale, float *to)
{
    for (int n = 0; n < SCENE_CHANNELS * SCENE_PIXELS; n++)
        to[n] = scale->table[n / SCENE_PIXELS][s->pixels[n]];
}

void scene_pixels_configure(transformer_config *config)
{
    config->vision.side = SCENE_SIDE;
    config->vision.channels = SCENE_CHANNELS;
}

uint64_t scene_pixels_hash(uint64_t hash)
{
    scene s;
    scene_generate(1, CORPUS_TRAIN, 0, &s);
    for (int n = 0; n < SCENE_CHANNELS * SCENE_PIXELS; n++)
        hash = (hash ^ s.pixels[n]) * UINT64_C(0x100000001b3);
    return hash;
}
