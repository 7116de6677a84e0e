/* SPDX-License-Identifier: MIT */
/* What generate.c, which chooses one token after another, generate_check.c and generate_beams.c
 * share. */
#ifndef MODEL_GENERATE_PARTS_H
#define MODEL_GENERATE_PARTS_H

#include "base/beam.h"
#include "model/forward.h"
#include "model/sample.h"
#include "model/text_stream.h"

/* One text. */
typedef struct generated {
    int32_t *tokens; /* what the decoder has read or will read: context, then new tokens */
    ptrdiff_t context, count, most;
    ptrdiff_t fed; /* tokens that the state has, or that the current call appends */
    uint64_t seed;
    text_stream stream;
    double log_probability; /* of the new tokens */
    double end_log;         /* of the end mark; 0: there is none */
    int32_t chosen;         /* by the last step */
    double chosen_log;
    bool live, ended, marked; /* marked: by an end mark */
    beam_search beam;         /* of a beam search */
} generated;

typedef struct generator {
    const mha_model *model;
    const mha_generate_config *config;
    const mha_tokenizer *tokenizer;
    mha_pool *pool;
    ptrdiff_t first, B, words;    /* first: the number of the first text in the caller's call */
    ptrdiff_t beams, best;        /* sequences of the state and results, per text */
    const int64_t *prompt_starts; /* of the caller: prompts, or source texts */
    const int32_t *prompt_ids;
    generated *sequences; /* [B] */
    mha_state *state;
    generate_memory *memory; /* of the model: the state, unless it is the caller's, logits, work */
    float *logits;           /* [B * beams][words] */
    float *scores;           /* [threads][words] */
    int32_t *order;          /* [threads][words] */
    int64_t *starts, *source_starts, *numbers, *rows;
    int32_t *ids;
    ptrdiff_t *owners; /* texts whose logits are there, in their order */
    ptrdiff_t owner_count;
    int32_t ends[2 * MODEL_ENDS_MAX];
    int end_count;

    int choice_room;      /* of a beam search: choices per row */
    beam_choice *choices; /* [B * beams][choice_room] */
    int64_t *parents;     /* [sequences of the state] */
} generator;

#define generate_fail(g, status, ...) \
    model_fail((g)->config->message, (g)->config->message_size, status, __VA_ARGS__)

static inline bool generate_is_pair(const generator *g)
{
    return g->model->files.description.kind == MHA_MODEL_ENCODER_DECODER;
}

/* Tokens that the state has of a text, and that this call will give it. */
static inline ptrdiff_t generate_past(const generator *g, ptrdiff_t b)
{
    return g->config->state ? mha_state_length(g->config->state, b) : 0;
}
static inline ptrdiff_t generate_prompt(const generator *g, ptrdiff_t b)
{
    return generate_is_pair(g) ? 1 : (ptrdiff_t)(g->prompt_starts[b + 1] - g->prompt_starts[b]);
}

/* generate_check.c: the configuration of beams, then everything else. */
mha_status generate_check_beams(const generator *g);
mha_status generate_check(const generator *g);

/* generate_memory.c: what the model has kept, and back to it; not if something has failed. A state
 * without tokens; room for so many logits; a workspace, `available` bytes of it. NULL: no memory.
 */
mha_status generate_memory_take(generator *g);
void generate_memory_give(generator *g, bool usable);
mha_status generate_memory_state(generator *g, const mha_state_config *wanted, mha_state **state);
float *generate_memory_logits(generator *g, size_t count);
void *generate_memory_work(generator *g, size_t size, size_t *available);

/* A call without rows, and one that runs; logits of sequences that have read all their tokens are
 * then in the order of owners. */
mha_model_call generate_begin_call(generator *g);
mha_status generate_run_call(generator *g, mha_model_call *call);

bool generate_is_end(const generator *g, int32_t id);

/* The token that the model's files say is the first of every text; -1: none, or not now. */
int32_t generate_forced(const generator *g, ptrdiff_t count);

mha_status generate_not_finite(const generator *g, ptrdiff_t b);

/* What a text has become; its stream has its text. */
mha_status generate_result(const generator *g, ptrdiff_t b, mha_generation *result);

/* generate_beams.c: memory of the search; the choices of all owners after a call; calls until all
 * searches are over; results[best] of one text. */
mha_status beams_begin(generator *g);
void beams_free(generator *g);
mha_status beams_accept(generator *g);
mha_status beams_decode(generator *g);
mha_status beams_results(generator *g, ptrdiff_t b, mha_generation *results);

#endif
