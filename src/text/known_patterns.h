/* SPDX-License-Identifier: MIT */
/* The patterns that divide texts for well-known vocabularies, whose files only have their name. */
#ifndef TEXT_KNOWN_PATTERNS_H
#define TEXT_KNOWN_PATTERNS_H

#include <stdbool.h>
#include <stddef.h>

enum { KNOWN_PATTERNS_MAX = 4 };

typedef struct known_patterns {
    const char *patterns[KNOWN_PATTERNS_MAX]; /* one after another; NULL past the last */
    bool whole_words;                         /* a word that is a piece is not divided */
    bool adds_begin;                          /* unless the file says otherwise */
} known_patterns;

/* tokenizer.ggml.pre of GGUF files; false for an unknown name. */
bool known_patterns_of_gguf(const char *name, size_t length, known_patterns *found);

/* A mark that a list of ranks does not contain. */
typedef struct known_mark {
    const char *text;
    int id;
} known_mark;

/* The encoding of a *.tiktoken file by its number of ranks; NULL if it is not known. */
typedef struct known_ranks {
    const char *name;
    int ranks; /* one more than the last */
    const char *pattern;
    known_mark marks[12]; /* text NULL: past the last */
} known_ranks;
const known_ranks *known_ranks_of(int ranks);

#endif
