/* SPDX-License-Identifier: MIT */
/* Pictures in another size, and with other channels. */
#ifndef PICTURE_PICTURE_RESIZE_H
#define PICTURE_PICTURE_RESIZE_H

#include "picture/picture.h"

/* The picture with other sides: each pixel is a mean of its surroundings with weights that fall
 * linearly, over a pixel of the old picture or, if that is larger, of the new one. NULL pixels: no
 * memory. */
picture picture_resize(const picture *from, ptrdiff_t rows, ptrdiff_t columns);

/* to[channels][rows][columns], 1 or 3 channels: colours become grey by their luminance, grey
 * becomes three equal colours, and what is transparent shows black. */
void picture_planes(const picture *from, int channels, uint8_t *to);

/* to[channels][side][side] = a picture of any size as a model with such an input sees it. False: no
 * memory. */
bool picture_input(const picture *from, int side, int channels, uint8_t *to);

#endif
