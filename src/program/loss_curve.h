/* SPDX-License-Identifier: MIT */
/* The losses of a training as a chart (SVG) and as a table (CSV). */
#ifndef PROGRAM_LOSS_CURVE_H
#define PROGRAM_LOSS_CURVE_H

#include <stdio.h>

#include "translator/training.h"

/* Losses over steps, the loss on a logarithmic axis; light or dark as the reader's screen is. Both
 * take a training, as output_file_write() passes it. */
void loss_curve_svg(FILE *file, const void *shown);

/* One line per step: step, learning rate, loss, and after a validation its loss and its share of
 * words right. */
void loss_curve_csv(FILE *file, const void *shown);

#endif
