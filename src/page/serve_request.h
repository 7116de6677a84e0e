/* SPDX-License-Identifier: MIT */
/* Reads the body of a request to "mha serve" (serve_app.h). The JSON is not trusted. */
#ifndef PAGE_SERVE_REQUEST_H
#define PAGE_SERVE_REQUEST_H

#include "heads/subject.h"
#include "page/serve_picture.h"

enum {
    SERVE_HEADS_MAX = 4096, /* heads of one kind that a request can change */
    SERVE_TOKENS_MAX = 4096 /* tokens of a text that a request can hide */
};

/* What an experiment (page_probe.h) interferes with, besides the changes of heads. */
typedef struct serve_probe {
    bool asked; /* it is requested, not a page */
    bool hidden[SERVE_TOKENS_MAX];
    int hidden_end;                        /* the last hidden token + 1; 0: none */
    int row;                               /* whose word is taken apart; -1: none */
    int word;                              /* its number; -1: the one that is expected */
    bool lens;                             /* what each layer would say is requested */
    const char *patch_text, *patch_target; /* another text, from which outputs are taken, and what
                                            * its decoder reads; NULL: none */
    uint8_t patched[ATTENTION_KINDS][SERVE_HEADS_MAX]; /* [layers][heads] not 0: these heads */
} serve_probe;

typedef struct serve_request {
    pair_request request; /* its texts point into the body, its changes into `changes` */
    serve_picture picture;
    bool changed; /* at least one head is changed */
    bool effects; /* the effect of each single head is requested too */
    bool compute; /* the steps of the attention below are requested, not a page */
    attention_kind kind;
    int layer;                                         /* from 0 */
    uint8_t changes[ATTENTION_KINDS][SERVE_HEADS_MAX]; /* [layers][heads] of head_mode */
    serve_probe probe;
} serve_request;

/* Reads `length` bytes, which are overwritten and must outlive the request. False, with a message:
 * they are not a valid request for a model with these heads. */
bool serve_request_read(serve_request *request, head_shape shape, char *body, size_t length,
                        char message[SUBJECT_MESSAGE_MAX]);

#endif
