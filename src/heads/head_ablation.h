/* SPDX-License-Identifier: MIT */
/* Ablation: what a model loses when heads are disabled, replaced by their mean or made uniform, one
 * at a time or together. */
#ifndef HEADS_HEAD_ABLATION_H
#define HEADS_HEAD_ABLATION_H

#include "heads/head_eval.h"
#include "heads/head_study.h"

typedef struct head_ablation head_ablation;

/* Prepares the measurement on these pairs. HEAD_MEAN takes the mean outputs on the pairs `means`,
 * which may be NULL for other modes. The model must outlive the result. NULL: out of memory, or
 * sentences that the model cannot read. */
head_ablation *head_ablation_create(const translator *model, const head_pair *pairs, int count,
                                    head_mode mode, const head_pair *means, int mean_count,
                                    mha_pool *pool);
void head_ablation_free(head_ablation *ablation);

/* The result of the whole model. */
head_total head_ablation_plain(const head_ablation *ablation);

typedef struct head_damage {
    head_total total;       /* without the heads */
    double delta;           /* loss per word, minus that of the whole model */
    head_interval interval; /* of delta, 95 %, by resampling sentences */
} head_damage;

/* Measures the model with these heads, by number, all changed at once. */
mha_status head_ablation_measure(head_ablation *ablation, const int *heads, int count,
                                 head_damage *damage);

#endif
