/* SPDX-License-Identifier: MIT */
/*
 * Texts as the token numbers of a model of libmha_model, packed into batches for mha_model_run().
 *
 *      subject_texts --token_texts_make()--> token_text --token_batches_make()--> batches
 *
 * A state keeps what the encoder of an encoder-decoder has computed for a batch, so that the
 * decoder can be run on it many times.
 */
#ifndef HEADS_TOKEN_BATCH_H
#define HEADS_TOKEN_BATCH_H

#include "heads/subject.h"

typedef struct token_text {
    const int32_t *source, *target; /* with the marks that the model reads */
    int source_count, target_count;
    int32_t end; /* the token that is expected after the last one; -1: not known */
} token_text;

typedef struct token_texts {
    token_text *texts; /* [count] */
    int32_t *ids;      /* their tokens */
    int count;
} token_texts;

/* The texts of a subject, which may be a translator; its numbers of words are those of the model
 * that mha_model_open() opens. False: out of memory. token_texts_free() either way. */
bool token_texts_make(token_texts *made, const subject *subject, const subject_texts *texts);
void token_texts_free(token_texts *texts);

typedef struct token_batch {
    int first, count;                /* of the texts */
    int64_t *starts, *source_starts; /* [count + 1] */
    int32_t *ids, *source_ids;       /* [rows] */
    int32_t *expected;               /* [rows]; -1: not known */
    mha_state *state;                /* with the encoder's keys and values; NULL: not kept */
} token_batch;

typedef struct token_batches {
    token_batch *batches; /* [count] */
    int count;
    int64_t most_rows; /* of a batch */
} token_batches;

/* All texts in batches of at most BATCH_ROWS rows of either side, and `most_rows` of the decoder. A
 * text that is larger is a batch of its own. False: out of memory. token_batches_free() either
 * way. */
enum { BATCH_ROWS = 1024 };
bool token_batches_make(token_batches *made, const token_texts *texts, int64_t most_rows);
void token_batches_free(token_batches *batches);

/* Rows of the decoder, and whether there is a source text. */
int64_t token_batch_rows(const token_batch *batch);
bool token_batch_has_source(const token_batch *batch);

/* Runs the encoder into a state of the batch. */
mha_status token_batch_keep(token_batch *batch, const mha_model *model, mha_pool *pool);

/* A call for all rows of the batch, without outputs. From the state, which is emptied for it, if it
 * is kept and `again` is false; else the encoder runs again. */
mha_status token_batch_call(const token_batch *batch, bool again, mha_model_call *call);

#endif
