/* SPDX-License-Identifier: MIT */
/* The body of a request to "mha serve", a stranger's JSON, as a wish. */
#ifndef CLI_SERVE_WISH_H
#define CLI_SERVE_WISH_H

#include "view_item.h"

enum { SERVE_HEADS_MAX = 4096 }; /* of a kind, in a model that can be served */

typedef struct serve_wish {
    pair_wish wish; /* its texts lie in the body, its changes here */
    bool changed;   /* there are some */
    uint8_t changes[CAPTURE_KINDS][SERVE_HEADS_MAX];
} serve_wish;

/* The body is overwritten. False, with a message, for what is no wish. */
bool serve_wish_read(serve_wish *wish, const transformer_config *config, char *body, size_t length,
                     char message[PAIR_MESSAGE_MAX]);

#endif
