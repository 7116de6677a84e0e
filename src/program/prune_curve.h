/* SPDX-License-Identifier: MIT */
#ifndef PROGRAM_PRUNE_CURVE_H
#define PROGRAM_PRUNE_CURVE_H

#include <stdio.h>

#include "heads/head_pruning.h"

typedef struct prune_curve {
    const pruning_step *steps; /* [count] */
    int count, heads;          /* heads of the whole model: those of step 0 */
    corpus_split split;
} prune_curve;

/* Draws words right and exact sentences over the number of disabled heads; for output_file_write().
 */
void prune_curve_svg(FILE *file, const void *curve);

#endif
