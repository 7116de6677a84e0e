/* SPDX-License-Identifier: MIT */
/* Pictures as a training sees them: moved, mirrored, partly erased, as numbers of mean 0. */
#ifndef VISION_AUGMENT_H
#define VISION_AUGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

enum { AUGMENT_CHANNELS_MAX = 3 };

/* The number that each byte of a channel becomes: (byte / 255 - mean) / deviation. */
typedef struct pixel_scale {
    float mean[AUGMENT_CHANNELS_MAX], deviation[AUGMENT_CHANNELS_MAX];
    float table[AUGMENT_CHANNELS_MAX][256];
} pixel_scale;

/* Means and deviations of pictures[count][channels][size]. A channel that never changes gets a
 * deviation of 1. */
void pixel_scale_measure(pixel_scale *scale, const uint8_t *pictures, ptrdiff_t count, int channels,
                         size_t size);
/* Fills in the table, after mean and deviation. */
void pixel_scale_fill(pixel_scale *scale, int channels);

/* What happens to one picture. */
typedef struct augmentation {
    int down, right; /* by how many pixels it is moved; what comes in is black */
    bool flip;
    int top, left, height, width; /* of the rectangle that becomes noise; height 0: none */
} augmentation;

/* A random one: moved by up to `crop`, and with these probabilities mirrored and erased. */
augmentation augmentation_draw(rng *r, int side, int crop, double flip, double erase);

/* to[channels][side][side] = the bytes of a picture, changed and scaled. Noise is drawn from r. */
void augment(const augmentation *a, rng *r, const uint8_t *picture, int channels, int side,
             const pixel_scale *scale, float *to);

/* A share from the distribution Beta(shape, shape), 0 < shape <= 1, or 1 minus it: at most half. */
double mix_share_draw(rng *r, double shape);

#endif
