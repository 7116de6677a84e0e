/* SPDX-License-Identifier: MIT */
/* One run of "mha generate", and its chats. */
#ifndef PROGRAM_GENERATE_CHAT_H
#define PROGRAM_GENERATE_CHAT_H

#include "program/model_session.h"

typedef struct generate_request {
    model_request model;
    const char *temperature, *top_p, *min_p, *penalty, *stop, *system, *prompt_cache;
    int64_t most, top_k, context;
    uint64_t seed;
    bool chat, quiet;
    mha_sampling sampling;
} generate_request;

typedef struct generate_run {
    const generate_request *request;
    model_session session;
    const mha_tokenizer *tokenizer;
    mha_state *state; /* NULL for an encoder-decoder */
} generate_run;

/* Continues `text`, which is tokenised with these flags, and prints the new text. The reply, if
 * requested, is for free(). */
int generate_turn(generate_run *run, const char *text, unsigned flags, char **reply);

/* A chat of one turn if `text` is given, else one that is read line by line. */
int generate_chat(generate_run *run, const char *text);

#endif
