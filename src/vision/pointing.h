/* SPDX-License-Identifier: MIT */
/*
 * Whether cross heads look at the shape that a row of the decoder is about. A head points at a
 * shape if the patch with its largest weight shows more of that shape than of any other. Rows have
 * places (that of a word in its caption, the number of a query); the control of all heads is the
 * best that looking at a fixed patch can give: of each place, the patch that would have been right
 * most often.
 */
#ifndef VISION_POINTING_H
#define VISION_POINTING_H

#include <mha/mha.h>

#include "base/mean_interval.h"
#include "scenes/scene.h"
#include "translator/batch.h"

/* Output. */
typedef struct pointing_result {
    int64_t rows; /* that were added */
    int layers, heads;
    mean_interval *shares; /* [layers][heads] of rows at whose shape it points, over scenes */
    mean_interval control;
} pointing_result;

/* While rows are added. */
typedef struct pointing pointing;

/* For at most `rows_max` rows of scenes [0, scenes), whose places are [0, places). Returns NULL if
 * out of memory. */
pointing *pointing_new(const transformer_config *config, int64_t scenes, int64_t rows_max,
                       int places);
void pointing_free(pointing *p);

/* Row `row` of pair `pair` of a batch is about shape `shape` of scene `number`; `cross` has the
 * weights of the batch, as network_mode.cross. */
void pointing_add(pointing *p, const scene *s, int64_t number, int place, int shape, const batch *b,
                  int pair, int row, const float *cross);

/* MHA_ERR_MEMORY. pointing_result_free() is needed in any case. */
mha_status pointing_finish(const pointing *p, pointing_result *result);
void pointing_result_free(pointing_result *result);

#endif
