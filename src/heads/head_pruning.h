/* SPDX-License-Identifier: MIT */
/*
 * Prunes heads one after another, each time the least important one: that with the smallest mean
 * |d loss / d gate| of those that are left, which is measured again after each step. Heads are
 * chosen on some sentences and the remaining model is evaluated on others.
 */
#ifndef HEADS_HEAD_PRUNING_H
#define HEADS_HEAD_PRUNING_H

#include "heads/head_eval.h"

typedef struct head_pruning head_pruning;

/* Begins with all heads. The model must outlive the result, the pairs are copied. NULL: out of
 * memory, or sentences that the model cannot read. */
head_pruning *head_pruning_create(const translator *model, const head_pair *choose,
                                  int choose_count, const head_pair *test, int test_count,
                                  mha_pool *pool);
void head_pruning_free(head_pruning *pruning);

typedef struct pruning_step {
    int pruned;        /* the head, by number; -1: none yet */
    double importance; /* its raw importance before */
    head_total total;  /* on the test sentences, afterwards */
} pruning_step;

/* Evaluates the model with the heads that are left. */
mha_status head_pruning_measure(head_pruning *pruning, pruning_step *step);
/* Prunes one head, and evaluates the model without it. At least one head must be left. */
mha_status head_pruning_prune(head_pruning *pruning, pruning_step *step);

int head_pruning_left(const head_pruning *pruning);
bool head_pruning_keeps(const head_pruning *pruning, int head);

/* The cost of all attention layers: bytes of their packed weights, and the time of one call of each
 * on 512 rows, the best of several. */
typedef struct attention_cost {
    size_t bytes;
    double seconds;
} attention_cost;

/* The cost of the layers of the model, and of those layers after mha_layer_prune(). A layer without
 * any head is only a bias, and costs nothing here. */
mha_status head_pruning_cost(const head_pruning *pruning, attention_cost *before,
                             attention_cost *after);

/* The parameters of the model with the columns of W_O that read pruned heads set to 0, for free():
 * the file has the same tensors as before. NULL: out of memory. */
float *head_pruning_values(const head_pruning *pruning);

#endif
