/* SPDX-License-Identifier: MIT */
/* How similar the weights of heads are. */
#ifndef HEADS_HEAD_LIKENESS_H
#define HEADS_HEAD_LIKENESS_H

#include "heads/subject.h"

/* The distance of all heads from head number `head`: the mean head_divergence() per row over these
 * texts, in apart[head_count()]. NaN for heads of other kinds, whose rows and columns are other
 * words. */
mha_status head_likeness_measure(const subject *model, const subject_texts *texts, int head,
                                 mha_pool *pool, double *apart);

#endif
