/* SPDX-License-Identifier: MIT */
/*
 * Who makes up for a head that is closed.
 *
 * A head of the decoder adds to the logit of the right word by itself (its direct effect) and by
 * what later parts make of it. Closed, it takes its direct effect away; what the logit really
 * loses is less if others step in:
 *
 *      repair = 1 - loss of logit / direct effect
 *
 * 0: nobody does, 1: the whole loss is made up for, below 0: others lose with it. A part of it is
 * no one's deed: without the head the last norm has less to divide by, and what all others add
 * weighs more. Logits are those of the right word less the mean of all words; sums are over all
 * rows.
 */
#ifndef HEADS_HEAD_REPAIR_H
#define HEADS_HEAD_REPAIR_H

#include "heads/head_pairs.h"

typedef struct head_repair {
    bool known;    /* a head of decoder or cross, whose direct effect is not next to nothing */
    double direct; /* a row */
    double lost;   /* a row */
    double repair;
    double norm; /* the part of it that is the last norm's */
    int helper;  /* the head that adds most more, the norm's deviation held; -1: none */
    double help; /* by how much, a row */
} head_repair;

/* A direct effect that is smaller, per row, says nothing about repair. */
#define REPAIR_DIRECT_MIN 0.05

/* Of all heads, [head_count()]. `watch` is told how far it is; NULL: nobody. */
mha_status head_repair_measure(const translator *model, const head_pair *pairs, int count,
                               mha_pool *pool, head_repair *repairs,
                               void (*watch)(int done, int count));

#endif
