/* SPDX-License-Identifier: MIT */
/*
 * The logit lens: what the residual stream of a decoder would say if no further layer came, for
 * each row and after each layer. The stream goes through what the model itself has after its last
 * layer: the last norm, if there is one, and the output matrix. A model whose norms come after its
 * parts has no last norm; its stream leaves every layer normed already, and goes to the output
 * matrix as it is.
 */
#ifndef HEADS_LOGIT_LENS_H
#define HEADS_LOGIT_LENS_H

#include "heads/likely_words.h"
#include "heads/subject.h"

enum { LENS_WORDS = 3 }; /* of each row and level */

typedef struct logit_lens {
    int levels, rows; /* levels: before the first layer, and after each; the last is the output */
    likely_word *likely; /* [levels][rows][LENS_WORDS] */
    double *expected; /* [levels][rows] the log-probability of the expected token; NaN: not known */
} logit_lens;

/* `run` has its stream. MHA_ERR_MEMORY. logit_lens_free() either way. */
mha_status logit_lens_make(logit_lens *lens, const subject *model, const capture *run,
                           mha_pool *pool);
void logit_lens_free(logit_lens *lens);

/* Multiplications that it takes. */
double logit_lens_cost(const capture *run);

#endif
