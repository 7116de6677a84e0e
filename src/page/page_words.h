/* SPDX-License-Identifier: MIT */
/*
 * The words of an imported page, from a file: one a line or, in a file whose name ends in ".json",
 *
 *      ["the", "cat", ...]                                  for all axes
 *      {"source": ["the", ...], "target": ["le", ...]}      where encoder and decoder read others
 */
#ifndef PAGE_WORDS_H
#define PAGE_WORDS_H

#include <stdbool.h>

#include "format/text_file.h"

enum { VIEW_SOURCE, VIEW_TARGET, VIEW_SIDES };

typedef struct view_words {
    const char **words[VIEW_SIDES];
    int *numbers[VIEW_SIDES]; /* [count] the same for the same word */
    int count[VIEW_SIDES];    /* 0: nothing has this side */
    char *text;               /* what they point into */
} view_words;

/* `count` says how many words each side has. `path` NULL: words are numbers, from 1. False, with a
 * message, where the file is none, or has another number of words. view_words_free() either way. */
bool view_words_read(view_words *words, const char *path, const int count[VIEW_SIDES],
                     char message[VIEW_MESSAGE_MAX]);
void view_words_free(view_words *words);

#endif
