/* SPDX-License-Identifier: MIT */
/* Internals that convolution.c shares with convolution_weights.c and convolution_run.c. */
#ifndef CLAIMS_CONVOLUTION_PARTS_H
#define CLAIMS_CONVOLUTION_PARTS_H

#include "claims/convolution.h"

/* Channels with the position of a token, for heads with CONV_ABSOLUTE: row, column,
 * row^2 + column^2, and 1. They follow the channels of the pixel. */
enum { CONV_PLACE_CHANNELS = 4 };

/* Sets E, D and Dv, and allocates and fills q, k, v and o. */
mha_status conv_matrices(conv_heads *heads);

/* Creates the f32 layer with these matrices. */
mha_status conv_layer(conv_heads *heads);

#endif
