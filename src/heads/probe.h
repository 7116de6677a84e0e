/* SPDX-License-Identifier: MIT */
/*
 * An experiment on one text: the model runs on it as it is, and once more while it is interfered
 * with (heads disabled, words hidden, outputs of heads replaced). Both runs read the same tokens,
 * so every word of the one can be compared with the same word of the other.
 *
 *      p(word | tokens before it)  before  --  after
 *
 * A model that translates also writes its translation again, both times token by token, each the
 * likeliest (subject_write()).
 */
#ifndef HEADS_PROBE_H
#define HEADS_PROBE_H

#include "heads/subject.h"

typedef struct probe {
    capture *before, *after;              /* with their capture_stream, if the model predicts */
    char *written_before, *written_after; /* NULL: the model does not translate, nothing is changed,
                                           * or outputs are replaced, which only fit this target */
} probe;

/* `changed` has changes, hidden words and patches; what is captured is added here. With `vectors`
 * the second run has those of all heads. False: out of memory. probe_free() either way. */
bool probe_make(probe *probe, const subject *model, const subject_text *text,
                const capture_options *changed, bool vectors, mha_pool *pool);
void probe_free(probe *probe);

/* The log-probability of a word in a row of a capture with a stream. */
double probe_log_probability(const capture *run, int row, int word);

#endif
