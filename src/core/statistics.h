/* SPDX-License-Identifier: MIT */
/* Statistics of rows, heads and keys: what attention.c calls while it works. statistics.c says how
 * they come about. Where none are wanted nothing happens. */
#ifndef MHAI_STATISTICS_H
#define MHAI_STATISTICS_H

#include "core/region.h"
#include "core/tile.h"

/* The rows of the task have seen nothing. */
void mhai_statistics_begin(const mhai_worker *worker);

/* Fold a tile of scores, as kernels->fold does, and watch it. Keys [first, last) of the block at
 * `base`, whole vectors. Their scores are held as fold does. */
void mhai_statistics_fold(const mhai_worker *worker, ptrdiff_t base, int row, int count, int first,
                          int last, const uint32_t *keep, const mhak_hold *scores,
                          const mhai_state *state);

/* A row is done: the maximum and the sum of all its exponentials, sink and extra keys included. */
void mhai_statistics_row(const mhai_run *run, const mhai_worker *worker, int r, float m, float l,
                         bool seen);

/* Columns of some heads begin at 0. */
void mhai_statistics_clear_columns(const mhai_call *call, ptrdiff_t b, ptrdiff_t h,
                                   ptrdiff_t heads);

/* Means of one batch and head; numbers count [B][H]. */
void mhai_statistics_head(const mhai_run *run, ptrdiff_t number);

/* Can what is wanted be given? Its outputs, in a list of regions. */
mha_status mhai_check_statistics(const mhai_call *call);
void mhai_statistics_regions(mhai_regions *list, const mhai_call *call);

#endif
