/* SPDX-License-Identifier: MIT */
/*
 * Heads closed one after another, each time the one that matters least: the smallest mean
 * |d loss / d gate| of those that are left, measured anew after each. It is chosen on some
 * sentences and what is left of the model is measured on others.
 */
#ifndef HEADS_HEAD_PRUNING_H
#define HEADS_HEAD_PRUNING_H

#include "heads/head_eval.h"

typedef struct head_pruning head_pruning;

/* NULL: no memory, or sentences that the model cannot read. */
head_pruning *head_pruning_create(const translator *model, const head_pair *choose,
                                  int choose_count, const head_pair *test, int test_count,
                                  mha_pool *pool);
void head_pruning_free(head_pruning *pruning);

typedef struct pruning_step {
    int pruned; /* the head, by number; -1: none yet */
    double importance;
    head_total total; /* on the test sentences, afterwards */
} pruning_step;

/* As it is. */
mha_status head_pruning_measure(head_pruning *pruning, pruning_step *step);
/* With one head less; there must be one. */
mha_status head_pruning_prune(head_pruning *pruning, pruning_step *step);

int head_pruning_left(const head_pruning *pruning);
bool head_pruning_keeps(const head_pruning *pruning, int head);

/* All attention layers: bytes of their packed weights, and the time of one call of each on 512
 * rows, the best of some. */
typedef struct attention_cost {
    size_t bytes;
    double seconds;
} attention_cost;

/* As they are, and after mha_layer_prune(); a layer without any head left is only a bias, and
 * counts nothing. */
mha_status head_pruning_cost(const head_pruning *pruning, attention_cost *before,
                             attention_cost *after);

/* The parameters of the model, with columns of W_O that read closed heads 0: for free(). NULL: no
 * memory. */
float *head_pruning_values(const head_pruning *pruning);

#endif
