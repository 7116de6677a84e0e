/* SPDX-License-Identifier: MIT */
/*
 * The losses of many texts under a model of libmha_model that predicts tokens: many texts in one
 * call, and no captures. For what changes heads again and again on the same texts.
 *
 *      texts --> batches --mha_model_run()--> logits --> losses
 *
 * What the encoder of an encoder-decoder has computed is kept and used again as long as its own
 * heads are unchanged.
 */
#ifndef HEADS_SUBJECT_BATCH_H
#define HEADS_SUBJECT_BATCH_H

#include "heads/head_eval.h"
#include "heads/subject.h"

typedef struct subject_batches subject_batches;

/* Whether the losses of such a model are computed here. */
bool subject_batches_fit(const subject *model, const subject_texts *texts);

/* Subject and texts must outlive the result. NULL: out of memory. */
subject_batches *subject_batches_create(const subject *s, const subject_texts *texts,
                                        mha_pool *pool);
void subject_batches_free(subject_batches *batches);

/* The losses of all texts, each[texts], with the changes and means of these options; the other
 * options have no effect. */
mha_status subject_batches_run(subject_batches *batches, const capture_options *options,
                               head_loss *each);

#endif
