/* SPDX-License-Identifier: MIT */
#ifndef HEADS_HEAD_LIKENESS_H
#define HEADS_HEAD_LIKENESS_H

#include "heads/head_pairs.h"

/* How far all heads of a kind are from one of them: head_divergence() a row, over these pairs;
 * apart[head_count()], NaN for heads of other kinds. */
mha_status head_likeness_measure(const translator *model, const head_pair *pairs, int count,
                                 int head, mha_pool *pool, double *apart);

#endif
