/* SPDX-License-Identifier: MIT */
/*
 * What the Worker of a page of "mha view --live" calls of mha_page.wasm: the answers of "mha serve"
 * (src/page/serve_app.h), for one model.
 */
#ifndef MHAJS_PAGE_H
#define MHAJS_PAGE_H

#include <stdint.h>

#define MHAJS_API __attribute__((used))

/* Opens the model, once: a translator of "mha train", or any other if `is_translator` is 0.
 * `command` is the command line of the page. NULL, or a message in static memory. */
MHAJS_API const char *mhajs_page_open(const char *path, int32_t is_translator, const char *command);

/* Answers a request of `length` bytes, which are overwritten: JSON, for free(). NULL: out of
 * memory. *status is 200, or 400 for a wrong request. */
MHAJS_API char *mhajs_page_ask(char *body, int32_t length, int32_t *status);

#endif
