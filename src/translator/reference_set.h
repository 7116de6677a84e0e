/* SPDX-License-Identifier: MIT */
/* Reference translations of sentences, several for each, from files of the user. */
#ifndef TRANSLATOR_REFERENCE_SET_H
#define TRANSLATOR_REFERENCE_SET_H

#include "format/line_file.h"
#include "translator/pair_file.h"

typedef struct reference_set {
    size_t sentences;
    size_t *starts;          /* [sentences + 1] */
    const char **references; /* those of sentence n are [starts[n], starts[n + 1]) */
    const char **sources;    /* [sentences]; NULL if the files have none */
    line_file *files;        /* own the texts */
    int file_count;
    char *text; /* owns them, if they do not come from files */
} reference_set;

/* The line n of every file is a reference of sentence n. All files have as many lines. */
bool reference_set_read(reference_set *set, const char *const *paths, int count,
                        char message[TEXT_FILE_MESSAGE_MAX]);

/* Lines of a source, a tab and a reference; further columns are ignored. Lines with the same source
 * need not be neighbours: sentences are in the order in which their source appears first, and so
 * are the references of each. */
bool reference_set_read_tsv(reference_set *set, const char *path,
                            char message[TEXT_FILE_MESSAGE_MAX]);

/* The same from pairs in memory, which are copied. False if out of memory. */
bool reference_set_of_pairs(reference_set *set, const pair_file *pairs);

/* After success and after failure. */
void reference_set_free(reference_set *set);

#endif
