/* SPDX-License-Identifier: MIT */
/* "mha see" with a model that says what is in pictures: captions of files, where its cross heads
 * look at each word, and how many captions of scenes are right. */
#ifndef PROGRAM_SEE_CAPTIONS_H
#define PROGRAM_SEE_CAPTIONS_H

#include "corpus/corpus.h"
#include "program/model_session.h"

typedef struct captions_request {
    const char *language; /* NULL: all */
    int64_t scenes;       /* to measure; 0: none */
    const char *split;    /* of these; NULL: test */
    uint64_t seed;
} captions_request;

/* Checks names before anything is opened. */
int see_captions_check(const captions_request *request);

/* Says what is in the pictures of `count` files, or measures scenes. `heads` is NULL, or where to
 * draw. Returns the exit code. */
int see_captions(const captions_request *request, const model_request *model, const char *folder,
                 const char *heads, bool as_json, int count, char **paths);

#endif
