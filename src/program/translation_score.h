/* SPDX-License-Identifier: MIT */
/* BLEU and chrF of a model's translations of sentences with known translations. */
#ifndef PROGRAM_TRANSLATION_SCORE_H
#define PROGRAM_TRANSLATION_SCORE_H

#include <mha/mha_model.h>

#include "translator/reference_set.h"

typedef struct translation_score {
    double bleu, chrf; /* from 0 to 100 */
    int64_t sentences;
} translation_score;

/* Translates the first `most` sentences of the set, which has sources, and compares them with its
 * references. `what` is named in the progress on a terminal; NULL: no progress. Returns EXIT_GO_ON,
 * or EXIT_FAILED after a message on stderr. */
int translation_score_measure(const mha_model *model, const reference_set *set, int64_t most,
                              const char *what, mha_pool *pool, translation_score *score);

#endif
