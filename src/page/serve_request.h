/* SPDX-License-Identifier: MIT */
/* The body of a request to "mha serve", a stranger's JSON, as a request. */
#ifndef PAGE_SERVE_REQUEST_H
#define PAGE_SERVE_REQUEST_H

#include "page/page_sentence.h"

enum { SERVE_HEADS_MAX = 4096 }; /* of a kind, in a model that can be served */

typedef struct serve_request {
    pair_request request; /* its texts lie in the body, its changes here */
    bool changed;         /* there are some */
    uint8_t changes[ATTENTION_KINDS][SERVE_HEADS_MAX];
} serve_request;

/* The body is overwritten. False, with a message, for what is no request. */
bool serve_request_read(serve_request *request, const transformer_config *config, char *body,
                        size_t length, char message[PAIR_MESSAGE_MAX]);

#endif
