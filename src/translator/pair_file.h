/* SPDX-License-Identifier: MIT */
/*
 * Sentence pairs in text files, which are not trusted: one file whose lines are a sentence, a tab
 * and its translation (further columns are ignored), or two files with corresponding lines.
 *
 * Lines that cannot be used are skipped, and the first of them are described with their numbers:
 * without a tab, with an empty side, not UTF-8, with a zero byte, or longer than PAIR_LINE_MAX.
 */
#ifndef TRANSLATOR_PAIR_FILE_H
#define TRANSLATOR_PAIR_FILE_H

#include "format/mapped_file.h"
#include "translator/transformer.h"

enum { PAIR_LINE_MAX = 1 << 16, PAIR_FAULTS_SHOWN = 5 };

typedef struct pair_text {
    const char *text[TRANSFORMER_SIDES]; /* not terminated */
    size_t length[TRANSFORMER_SIDES];
    int64_t line; /* counted from 1 */
} pair_text;

typedef struct pair_fault {
    int64_t line;
    const char *reason;
} pair_fault;

typedef struct pair_file {
    pair_text *pairs;
    int64_t count, lines; /* usable pairs, all lines */
    int64_t fault_count;
    pair_fault faults[PAIR_FAULTS_SHOWN]; /* the first of them */
    mapped_file files[TRANSFORMER_SIDES];
    size_t room;
} pair_file;

/* Reads a file of pairs, or two files if `target` is not NULL. On an error, also if no pair can be
 * used or two files have different numbers of lines, returns the status with the reason in
 * `message`, and *file is all zero. The texts are valid until pair_file_close(). */
mha_status pair_file_open(pair_file *file, const char *path, const char *target,
                          char message[TRANSFORMER_MESSAGE_MAX]);
/* A file that is all zero is allowed. */
void pair_file_close(pair_file *file);

#endif
