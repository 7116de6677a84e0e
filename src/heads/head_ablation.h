/* SPDX-License-Identifier: MIT */
/* What closing heads costs, alone and together. */
#ifndef HEADS_HEAD_ABLATION_H
#define HEADS_HEAD_ABLATION_H

#include "heads/head_eval.h"
#include "heads/head_study.h"

typedef struct head_ablation head_ablation;

/* `change`: what is done to heads. Means are those on `means`, which may be NULL for other
 * changes. NULL: no memory, or sentences that the model cannot read. */
head_ablation *head_ablation_create(const translator *model, const head_pair *pairs, int count,
                                    head_mode change, const head_pair *means, int mean_count,
                                    mha_pool *pool);
void head_ablation_free(head_ablation *ablation);

/* Of the whole model. */
head_total head_ablation_plain(const head_ablation *ablation);

typedef struct head_damage {
    head_total total;
    double delta;           /* loss of a word, less the whole model's */
    head_interval interval; /* of it, 95 %, sentence by sentence */
} head_damage;

/* Heads by number, all changed at once. */
mha_status head_ablation_measure(head_ablation *ablation, const int *heads, int count,
                                 head_damage *damage);

#endif
