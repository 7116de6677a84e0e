/* SPDX-License-Identifier: MIT */
/* What the files of the convolution share. */
#ifndef CLAIMS_CONVOLUTION_PARTS_H
#define CLAIMS_CONVOLUTION_PARTS_H

#include "claims/convolution.h"

/* Channels that tell the heads of CONV_ABSOLUTE where a token is: row, column, row^2 + column^2,
 * and 1. They stand behind those of the pixel. */
enum { CONV_PLACE_CHANNELS = 4 };

/* Sets E, D and Dv, and makes q, k, v and o. */
mha_status conv_matrices(conv_heads *heads);

/* The layer of these matrices, in f32. */
mha_status conv_layer(conv_heads *heads);

#endif
