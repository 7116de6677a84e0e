/* SPDX-License-Identifier: MIT */
/* What a page of "mha view --live" contains besides its data: the model and the module that runs
 * it. */
#ifndef PROGRAM_LIVE_ENGINE_H
#define PROGRAM_LIVE_ENGINE_H

#include "format/mapped_file.h"
#include "page/page.h"
#include "program/session.h"

enum { LIVE_FILES_MAX = 64, LIVE_NAME_MAX = 256 };

typedef struct live_engine {
    mapped_file module;
    mapped_file contents[LIVE_FILES_MAX];
    char names[LIVE_FILES_MAX][LIVE_NAME_MAX]; /* relative to the model's folder */
    page_file files[LIVE_FILES_MAX];
    int count;
    bool is_file, is_translator; /* one file; else a folder in the form of Hugging Face */
} live_engine;

/* Opens the module and all files of the session's model that a browser needs. False after a message
 * on stderr. live_engine_close() either way. */
bool live_engine_open(live_engine *engine, const session *session);
void live_engine_close(live_engine *engine);

/* The page with these data; it borrows from the engine. */
page_live live_engine_page(const live_engine *engine, const char *json_text);

#endif
