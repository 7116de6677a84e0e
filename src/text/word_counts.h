/* SPDX-License-Identifier: MIT */
/* Counts how often each distinct word occurs. Words are strings of bytes, in the order in which
 * they were first added. */
#ifndef TEXT_WORD_COUNTS_H
#define TEXT_WORD_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct counted_word {
    size_t at, length; /* in `bytes` */
    uint64_t hash;
    uint64_t count;
} counted_word;

/* All zero is an empty one. */
typedef struct word_counts {
    counted_word *words;
    size_t count, room;
    char *bytes;
    size_t used, bytes_room;
    size_t *slots; /* numbers of words plus 1; 0: empty */
    size_t slot_count;
    uint64_t key;
} word_counts;

/* False: out of memory. The word is then not counted. */
bool word_counts_add(word_counts *counts, const char *word, size_t length);
void word_counts_free(word_counts *counts);

#endif
