/* SPDX-License-Identifier: MIT */
/*
 * The words of an imported page, from a file: one per line or, if its name ends in ".json",
 *
 *      ["the", "cat", ...]                                  the same words for rows and columns
 *      {"source": ["the", ...], "target": ["le", ...]}      encoder and decoder read different
 * words
 *
 * Marks such as [CLS] are known by their form. Pieces of words are known by the form that their
 * tokenizer gives them: "##" before a piece that continues a word, or, if any word has one, "▁" or
 * "Ġ" before a piece that begins one.
 */
#ifndef PAGE_WORDS_H
#define PAGE_WORDS_H

#include <stdbool.h>

#include "format/json_writer.h"
#include "format/text_file.h"

enum { PAGE_SOURCE, PAGE_TARGET, PAGE_SIDES };

typedef struct page_words {
    const char **words[PAGE_SIDES];
    int *numbers[PAGE_SIDES];    /* [count] equal for equal words */
    bool *marks[PAGE_SIDES];     /* [count] marks such as [CLS], </s> and <|endoftext|>, not text */
    bool *continues[PAGE_SIDES]; /* [count] continues the word that the one before it began */
    int count[PAGE_SIDES];       /* 0: no weights have this side */
    char *text;                  /* the words point into it */
} page_words;

/* Reads the words; each side must have `count` of them. Without a path the words are the numbers
 * from 1. False, with a message: the file cannot be read, or has another number of words.
 * page_words_free() is called in either case. */
bool page_words_read(page_words *words, const char *path, const int count[PAGE_SIDES],
                     char message[TEXT_FILE_MESSAGE_MAX]);
void page_words_free(page_words *words);

/* Writes the words of a side into the open object, and which of them are marks or continue a word:
 * "source": [...], "source_marks": [...], "source_continues": [...]. */
void page_side_put(json *j, const char *name, const char *const *words, const bool *marks,
                   const bool *continues, int count);

#endif
