/* SPDX-License-Identifier: MIT */
/* Ablation: what a model loses when heads are disabled, replaced by their mean or made uniform, one
 * at a time or together. */
#ifndef HEADS_HEAD_ABLATION_H
#define HEADS_HEAD_ABLATION_H

#include "heads/head_eval.h"
#include "heads/head_study.h"

typedef struct head_ablation head_ablation;

/* Prepares the measurement on these texts. HEAD_MEAN takes the mean outputs on the texts `means`,
 * which may be NULL for other modes. Subject and texts must outlive the result. NULL: out of
 * memory, or sentences that the model cannot read. */
head_ablation *head_ablation_create(const subject *model, const subject_texts *texts,
                                    head_mode mode, const subject_texts *means, mha_pool *pool);
void head_ablation_free(head_ablation *ablation);

/* The result of the whole model. That of an encoder, which predicts no words, is a loss of 0 per
 * text. */
head_total head_ablation_plain(const head_ablation *ablation);

typedef struct head_damage {
    head_total total;       /* without the heads; of an encoder the loss is per text */
    double delta;           /* loss per word, minus that of the whole model */
    head_interval interval; /* of delta, 95 %, by resampling sentences */
} head_damage;

/* Measures the model with these heads, by number, all changed at once. */
mha_status head_ablation_measure(head_ablation *ablation, const int *heads, int count,
                                 head_damage *damage);

#endif
