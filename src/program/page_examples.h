/* SPDX-License-Identifier: MIT */
/* The pictures that a live page of a model of pictures begins with. */
#ifndef PROGRAM_PAGE_EXAMPLES_H
#define PROGRAM_PAGE_EXAMPLES_H

#include "page/page.h"
#include "program/session.h"

typedef struct page_examples {
    page_example *list; /* [count] */
    int count;
    uint8_t *bytes; /* of all of them */
} page_examples;

/* Reads the pictures of these files as the model reads them. Without any there is one, a scene of
 * "mha scenes". Returns EXIT_GO_ON, or EXIT_FAILED after a message; page_examples_free() either
 * way.
 */
int page_examples_read(page_examples *examples, const session *session, char **paths, int count);
void page_examples_free(page_examples *examples);

#endif
