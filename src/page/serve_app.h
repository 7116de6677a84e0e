/* SPDX-License-Identifier: MIT */
/*
 * What "mha serve" answers, without the server:
 *
 *      GET              the page of "mha view", with what it needs to ask for more
 *      POST api/view    {"text": "the cat sleeps", "to": "le chat dort", "changes": [
 *                           {"kind": "cross", "layer": 1, "head": 2, "change": "zero"}]}
 *
 * The second gives the data of such a page, as page.h has them, of a translator whose heads
 * are changed so: closed ("zero") or looking at all they may see alike ("uniform"). Only "text"
 * must be there. What cannot be is answered by {"error": "why"} and status 400.
 */
#ifndef PAGE_SERVE_APP_H
#define PAGE_SERVE_APP_H

#include "page/http_server.h"
#include "page/page_sentence.h"

typedef struct serve_app {
    const translator *model;
    const char *model_file; /* as it was asked for; NULL: it was not */
    mha_pool *pool;
    const page_study *study; /* NULL: none */
    head_words words;        /* of the model */
} serve_app;

/* For the routes of an http_service, with a serve_app. */
http_answer serve_page(void *arg, char *body, size_t length);
http_answer serve_view(void *arg, char *body, size_t length);

#endif
