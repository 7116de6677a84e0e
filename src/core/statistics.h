/* SPDX-License-Identifier: MIT */
/* Statistics of rows, heads and keys: what attention.c and output.c call while they compute. See
 * statistics.c for the method. All of these do nothing where no statistics are requested. */
#ifndef MHAI_STATISTICS_H
#define MHAI_STATISTICS_H

#include "core/region.h"
#include "core/tile.h"

/* Begins a task: its rows have seen no key. */
void mhai_statistics_begin(const mhai_worker *worker);

/* Folds a tile of scores, as kernels->fold does, and adds it to the statistics: keys
 * [first, last) of the block at `base`, whole vectors. `scores` is the place that fold
 * copies scores to, or NULL. */
void mhai_statistics_fold(const mhai_worker *worker, ptrdiff_t base, int row, int count, int first,
                          int last, const uint32_t *keep, const mhak_hold *scores,
                          const mhai_state *state);

/* Finishes a row, given the maximum and the sum of all its exponentials, with sink and
 * extra keys. */
void mhai_statistics_row(const mhai_run *run, const mhai_worker *worker, int r, float m, float l,
                         bool seen);

/* Sets the columns of some heads to 0. */
void mhai_statistics_clear_columns(const mhai_call *call, ptrdiff_t b, ptrdiff_t h,
                                   ptrdiff_t heads);

/* Means over the rows of one batch and head; numbers count [B][H]. */
void mhai_statistics_head(const mhai_run *run, ptrdiff_t number);

/* Checks the request; adds its outputs to a list of regions. */
mha_status mhai_check_statistics(const mhai_call *call);
void mhai_statistics_regions(mhai_regions *list, const mhai_call *call);

#endif
