/* SPDX-License-Identifier: MIT */
/*
 * Word alignments in a text file, which is not trusted. Line n belongs to sentence pair n:
 *
 *      0-0 1-2 2p1         links, separated by spaces: i-j is sure, ipj or i?j is possible
 *      17<tab>0-0 1-2      the same after the number of the pair
 *
 * Words count from 0. An empty line is a pair without links.
 */
#ifndef HEADS_ALIGNMENT_FILE_H
#define HEADS_ALIGNMENT_FILE_H

#include <stdbool.h>
#include <stdint.h>

enum { ALIGNMENT_MESSAGE_MAX = 768 };

/* Words of the two sides, in the order in which the file has them. */
typedef struct word_link {
    int first, second;
    bool sure;
} word_link;

typedef struct alignment_file {
    int lines;
    int64_t *numbers; /* [lines] the number before a tab; -1: none */
    int64_t *starts;  /* [lines + 1] the links of line n are [starts[n], starts[n + 1]) */
    word_link *links;
} alignment_file;

/* False, with the reason and the number of the line: the file cannot be read, or has something else
 * than links in it. alignment_file_free() either way. */
bool alignment_file_read(alignment_file *file, const char *path,
                         char message[ALIGNMENT_MESSAGE_MAX]);
void alignment_file_free(alignment_file *file);

#endif
