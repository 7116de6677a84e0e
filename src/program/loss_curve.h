/* SPDX-License-Identifier: MIT */
/* How a training went, as a picture (SVG) and as a table (CSV). */
#ifndef PROGRAM_LOSS_CURVE_H
#define PROGRAM_LOSS_CURVE_H

#include <stdio.h>

#include "model/training.h"

/* Losses over steps, the loss on a logarithmic axis; light or dark as the reader's screen is. Both
 * show a training, as output_file_write() hands it on. */
void loss_curve_svg(FILE *file, const void *shown);

/* A line a step: step, learning rate, loss, and where there was a validation its loss and share of
 * words right. */
void loss_curve_csv(FILE *file, const void *shown);

#endif
