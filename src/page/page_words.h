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

enum { PAGE_SOURCE, PAGE_TARGET, PAGE_SIDES };

typedef struct page_words {
    const char **words[PAGE_SIDES];
    int *numbers[PAGE_SIDES]; /* [count] the same for the same word */
    int count[PAGE_SIDES];    /* 0: nothing has this side */
    char *text;               /* what they point into */
} page_words;

/* `count` says how many words each side has. `path` NULL: words are numbers, from 1. False, with a
 * message, where the file is none, or has another number of words. page_words_free() either way. */
bool page_words_read(page_words *words, const char *path, const int count[PAGE_SIDES],
                     char message[TEXT_FILE_MESSAGE_MAX]);
void page_words_free(page_words *words);

#endif
