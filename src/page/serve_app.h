/* SPDX-License-Identifier: MIT */
/*
 * The answers of "mha serve", without the server (http_server.h):
 *
 *      GET              the page of "mha view", made live: it sends the requests below
 *      POST api/view    {"text": "the cat sleeps", "to": "le chat dort", "changes": [
 *                           {"kind": "cross", "layer": 1, "head": 2, "change": "zero"}],
 *                        "effects": true}
 *
 *                      "picture": {...} of a model that reads pictures, whose "text" is its name
 *                      (serve_picture.h)
 *                      "compute": {"kind": "cross", "layer": 1} instead of a page requests the
 *                      steps and matrices of one attention (page_compute.h)
 *                      "probe": {"hidden": [2]} instead of a page requests an experiment: what the
 *                      changes, hidden words and patched heads do to every word (page_probe.h)
 *
 * The second answer is the JSON of such a page (page.h), of a model with these heads disabled
 * ("zero") or with equal weights on all columns that they see ("uniform"). With "effects" false it
 * has no losses without single heads, which take most of the time. Only "text" is required.
 * A wrong request is answered with {"error": "reason"} and status 400.
 *
 * A page of "mha view --live" has no server: its requests go to the same function, which runs in
 * the browser (js/src/mhajs_page.h).
 */
#ifndef PAGE_SERVE_APP_H
#define PAGE_SERVE_APP_H

#include "page/http_server.h"
#include "page/page.h"

typedef struct serve_app {
    subject *model;
    const char *model_file; /* as the user named it; NULL: the default model */
    const char *texts;      /* the file of --texts; NULL: none */
    mha_pool *pool;
    const page_study *study;      /* NULL: none */
    const page_lecture *lecture;  /* NULL: none */
    const page_example *examples; /* [example_count] of a model that reads pictures; the page begins
                                   * with the first */
    int example_count;
    const char *command; /* the command line of every answer; NULL: one that makes its page */
} serve_app;

/* For the routes of an http_service; `arg` is a serve_app. */
http_answer serve_page(void *arg, char *body, size_t length);
http_answer serve_view(void *arg, char *body, size_t length);

#endif
