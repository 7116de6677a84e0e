/* SPDX-License-Identifier: MIT */
/* What a head does on one sentence, in the numbers of "mha heads" and under their names. */
#ifndef PAGE_MEASURES_H
#define PAGE_MEASURES_H

#include "format/json_writer.h"
#include "heads/capture.h"
#include "heads/head_metrics.h"

typedef enum view_measure {
    VIEW_ENTROPY,
    VIEW_BROAD,
    VIEW_CONFIDENCE,
    VIEW_DISTANCE,
    VIEW_FAR,
    VIEW_FIRST,
    VIEW_END, /* not of the decoder */
    VIEW_PREV,
    VIEW_SELF,
    VIEW_NEXT,
    VIEW_DUPLICATE, /* not of cross-attention, as the next */
    VIEW_INDUCTION,
    VIEW_OFFSET, /* the fixed one, not 0, that the head is nearest to; two numbers there: */
    VIEW_OFFSET_MASS,
    VIEW_OFFSET_SHARE, /* of rows whose largest weight it has */
    VIEW_SAYS,         /* where the grammar knows the alignment, as all that follow */
    VIEW_READS,
    VIEW_AER_SAYS,
    VIEW_AER_READS,
    VIEW_MEASURES
} view_measure;

/* The words of a matrix. */
typedef struct view_scene {
    attention_kind kind;
    const int *tokens;       /* [columns] the same number for the same word */
    const bool *special;     /* [columns] begin and end; NULL: none */
    const corpus_pair *gold; /* NULL: not known */
} view_scene;

/* NaN for what a head of this kind does not have. */
void view_measure_head(const head_matrix *m, const view_scene *scene, double *values);

/* An object "measures" with an array for each of them; values: [count][VIEW_MEASURES]. */
void view_measures_put(json *j, const double *values, int count);

#endif
