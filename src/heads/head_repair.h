/* SPDX-License-Identifier: MIT */
/*
 * Self-repair: how far other parts of the model compensate for a disabled head.
 *
 * A head of the decoder adds to the logit of the right word directly (its direct effect) and
 * through later parts. If it is disabled, its direct effect is gone; the logit decreases by less
 * if later parts compensate:
 *
 *      repair = 1 - decrease of the logit / direct effect
 *
 * 0: no compensation, 1: complete compensation, below 0: other parts lose, too.
 *
 * The direct effect is what the logit loses when the head's output is taken out of the residual
 * stream and nothing else changes: all other parts give what they gave, and the norms on the way to
 * the logit divide by what they divided by. The logit is then a sum over heads. In a model whose
 * norms come before its parts, only the last norm is on the way; in one whose norms come after
 * them, every norm after the head is (direct_path.h).
 *
 * Some of the repair is due to these norms: without the head the deviations are smaller, so that
 * outputs of all other parts are scaled up. `norm` is that part of it. Logits are those of the
 * right word minus the mean of all words; all numbers are means over all rows.
 */
#ifndef HEADS_HEAD_REPAIR_H
#define HEADS_HEAD_REPAIR_H

#include "heads/token_batch.h"

typedef struct head_repair {
    bool known;     /* decoder or cross, with a direct effect of at least REPAIR_DIRECT_MIN */
    double direct;  /* direct effect per row */
    double removed; /* the same with norms that divide by what they then find */
    double lost;    /* decrease of the logit per row */
    double held;    /* the same with norms that divide by what they do in the whole model */
    double repair;  /* NaN: not known */
    double norm;    /* the part of `repair` that is due to norms; NaN: not known */
    int helper;     /* the head whose direct effect increases most; -1: none does */
    double help;    /* by how much, per row, at the deviations of the whole model */
} head_repair;

/* With a smaller direct effect per row, in absolute value, the quotient above is mostly noise; a
 * smaller increase of a direct effect is rounding. */
#define REPAIR_DIRECT_MIN 0.05
#define REPAIR_HELP_MIN 1e-5

/* Measures all heads: repairs[head_count()]. `watch` is called now and then; it may be NULL.
 * MHA_ERR_FLAG: logits of the model do not come from its residual stream alone, or it has none.
 * MHA_ERR_DTYPE: its matrices are stored in a type that cannot be read. */
mha_status head_repair_measure(const mha_model *model, head_shape shape, const token_texts *texts,
                               mha_pool *pool, head_repair *repairs,
                               void (*watch)(int done, int count));

#endif
