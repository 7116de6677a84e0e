/* SPDX-License-Identifier: MIT */
/* mha heads --alignments: heads of cross-attention compared with alignments that people have made.
 */
#ifndef PROGRAM_HEADS_ALIGNMENT_H
#define PROGRAM_HEADS_ALIGNMENT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct alignment_request {
    const char *model_file; /* NULL: the installed one */
    const char *pairs;      /* "FILE" or "SOURCE,TARGET" */
    const char *alignments;
    bool target_first; /* links have the word of the target first */
    int64_t sentences; /* the first of them; 0: all */
    int64_t threads;
    bool as_json;
} alignment_request;

/* Reads the files, measures and prints. Returns the exit code. */
int heads_alignment(const alignment_request *request);

#endif
