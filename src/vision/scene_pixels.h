/* SPDX-License-Identifier: MIT */
/* Scenes as models read them. */
#ifndef VISION_SCENE_PIXELS_H
#define VISION_SCENE_PIXELS_H

#include "scenes/scene.h"
#include "translator/transformer.h"
#include "vision/augment.h"

/* How the pixels of scenes are scaled; the same for all. */
void scene_scale_fill(pixel_scale *scale);

/* to[channels][side][side] = the pixels of a scene. */
void scene_pixels_fill(const scene *s, const pixel_scale *scale, float *to);

/* Sets the side and channels of the pictures of a configuration. */
void scene_pixels_configure(transformer_config *config);

/* FNV-1a over the pixels of a scene, from `hash` on: a checkpoint belongs to these pictures. */
uint64_t scene_pixels_hash(uint64_t hash);

#endif
