/* SPDX-License-Identifier: MIT */
/* The cross-attention of a translation by any model, as heat maps of whole words. */
#ifndef PROGRAM_TRANSLATE_MAPS_H
#define PROGRAM_TRANSLATE_MAPS_H

#include <stdbool.h>

#include "base/terminal.h"
#include "program/session.h"

typedef struct translate_maps_request {
    int layer, head; /* from 1 on; layer 0: the last; head 0: all, and their mean */
    bool attention;  /* draws on the terminal */
    const char *svg; /* writes this file; NULL: none */
} translate_maps_request;

/* Whether the model has the layer and the head: EXIT_GO_ON, or the exit code after a message. */
int translate_maps_check(const session *opened, const translate_maps_request *request);

/* Draws what each word of the target, a translation, attends to in the text. Returns EXIT_GO_ON, or
 * the exit code after a message. */
int translate_maps_draw(const session *opened, const translate_maps_request *request,
                        const char *text, const char *target, const terminal *screen);

#endif
