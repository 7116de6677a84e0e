/* SPDX-License-Identifier: MIT */
/*
 * Self-repair: how far other parts of the model compensate for a disabled head.
 *
 * A head of the decoder adds to the logit of the right word directly (its direct effect) and
 * through later layers. If it is disabled, its direct effect is gone; the logit decreases by less
 * if later layers compensate:
 *
 *      repair = 1 - decrease of the logit / direct effect
 *
 * 0: no compensation, 1: complete compensation, below 0: other parts lose, too. Some of it is due
 * to the last norm: without the head its deviation is smaller, so that it scales the outputs of all
 * other parts up. Logits are those of the right word minus the mean of all words; all numbers are
 * means over all rows.
 */
#ifndef HEADS_HEAD_REPAIR_H
#define HEADS_HEAD_REPAIR_H

#include "heads/head_pairs.h"

typedef struct head_repair {
    bool known;    /* decoder or cross, with a direct effect of at least REPAIR_DIRECT_MIN */
    double direct; /* direct effect per row */
    double lost;   /* decrease of the logit per row */
    double repair; /* NaN: not known */
    double norm;   /* the part of `repair` that is due to the last norm; NaN: not known */
    int helper;    /* the head whose direct effect increases most; -1: none does */
    double help;   /* by how much, per row, at the deviations of the whole model */
} head_repair;

/* With a smaller direct effect per row, in absolute value, the quotient above is mostly noise. */
#define REPAIR_DIRECT_MIN 0.05

/* Measures all heads: repairs[head_count()]. `watch` is called after each head; it may be NULL. */
mha_status head_repair_measure(const translator *model, const head_pair *pairs, int count,
                               mha_pool *pool, head_repair *repairs,
                               void (*watch)(int done, int count));

#endif
