/* SPDX-License-Identifier: MIT */
/* The chart of "mha prove data --svg": errors over the number of pictures. */
#ifndef PROGRAM_DATA_SVG_H
#define PROGRAM_DATA_SVG_H

#include <stdio.h>

#include "claims/data_study.h"

/* A panel for every task, with a curve for the convolution and one for attention and 95 %
 * intervals. `result` is a study_result; for output_file_write(). */
void data_svg(FILE *file, const void *result);

#endif
